//! Whether an answer holds what a case expects.

use serde_json::Value;

/// Numbers are equal within this, relative to the larger: the contract has 32-bit floats.
const TOLERANCE: f64 = 1e-5;

/// # Errors
/// The first place where it does not, with what was expected and found.
pub(super) fn holds(answer: &Value, expect: &Value) -> Result<(), String> {
    if let Some(part) = expect.get("error").and_then(Value::as_str) {
        return match answer.get("error").and_then(Value::as_str) {
            Some(message) if message.contains(part) => Ok(()),
            _ => Err(format!("expected an error with {part:?}, found {answer}")),
        };
    }
    at("", answer, expect)
}

fn at(path: &str, answer: &Value, expect: &Value) -> Result<(), String> {
    let differs = || {
        let place = if path.is_empty() { "the answer" } else { path };
        Err(format!("{place}: expected {expect}, found {answer}"))
    };
    match (answer, expect) {
        (Value::Object(answer), Value::Object(expect)) => {
            for (name, expect) in expect {
                let found = answer.get(name).unwrap_or(&Value::Null);
                at(&format!("{path}/{name}"), found, expect)?;
            }
            Ok(())
        }
        (Value::Array(answer), Value::Array(expect)) if answer.len() == expect.len() => {
            let pairs = answer.iter().zip(expect).enumerate();
            for (index, (answer, expect)) in pairs {
                at(&format!("{path}/{index}"), answer, expect)?;
            }
            Ok(())
        }
        (Value::Number(answer), Value::Number(expect)) => {
            let (answer, expect) = (answer.as_f64(), expect.as_f64());
            let close = |a: f64, b: f64| (a - b).abs() <= TOLERANCE * a.abs().max(b.abs());
            match answer.zip(expect) {
                Some((answer, expect)) if close(answer, expect) => Ok(()),
                _ => differs(),
            }
        }
        _ if answer == expect => Ok(()),
        _ => differs(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_expected_is_a_part_of_the_answer() {
        let answer = json!({ "state": "s", "set": [{ "name": "a", "confidence": 0.9f32 }], "next": "model", "task": null });
        for expect in [
            json!({}),
            json!({ "state": "s" }),
            json!({ "set": [{ "confidence": 0.9 }] }),
            json!({ "task": null, "absent": null }),
        ] {
            assert_eq!(holds(&answer, &expect), Ok(()), "{expect}");
        }
    }

    #[test]
    fn a_difference_is_shown_with_its_place() {
        let answer = json!({ "set": [{ "name": "a" }], "next": "model" });
        let differs = |expect: Value| holds(&answer, &expect).expect_err("differs");
        assert_eq!(differs(json!({ "set": [{ "name": "b" }] })), r#"/set/0/name: expected "b", found "a""#);
        assert!(differs(json!({ "set": [] })).starts_with("/set: "));
        assert!(differs(json!({ "next": null })).starts_with("/next: "));
        assert!(differs(json!({ "nxet": "model" })).contains("found null"));
        assert!(differs(json!([])).starts_with("the answer: "));
        assert!(differs(json!({ "error": "x" })).contains("expected an error"));
    }

    #[test]
    fn an_error_is_expected_by_a_part_of_its_message() {
        let answer = json!({ "error": "no rule for this" });
        assert_eq!(holds(&answer, &json!({ "error": "no rule" })), Ok(()));
        assert!(holds(&answer, &json!({ "error": "other" })).is_err());
        assert!(holds(&answer, &json!({ "state": "s" })).is_err());
    }
}
