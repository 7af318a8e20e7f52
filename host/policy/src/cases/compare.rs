//! Where an answer does not hold what a case expects.

use serde_json::{Map, Value};

/// Numbers are equal within this, relative to the larger: the contract has 32-bit floats.
const TOLERANCE: f64 = 1e-5;

/// A place where an answer is not what a case expects.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// JSON pointer to the place; empty for the answer as a whole.
    pub path: String,
    /// What the case expects there.
    pub expected: Value,
    /// What the answer has there; null where it has nothing.
    pub found: Value,
}

impl std::fmt::Display for Difference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let place = if self.path.is_empty() { "the answer" } else { &self.path };
        write!(f, "{place}: expected {}, found {}", self.expected, self.found)
    }
}

/// Every place where an answer does not hold what is expected.
pub(super) fn differences(answer: &Value, expect: &Value) -> Vec<Difference> {
    match (answer.get("error").and_then(Value::as_str), expect.get("error").and_then(Value::as_str)) {
        (Some(message), Some(part)) if message.contains(part) => Vec::new(),
        (Some(_), None) | (None, Some(_)) => {
            vec![Difference { path: String::new(), expected: expect.clone(), found: answer.clone() }]
        }
        (Some(message), Some(_)) => vec![Difference {
            path: "/error".into(),
            expected: expect["error"].clone(),
            found: message.into(),
        }],
        (None, None) => {
            let mut found = Vec::new();
            at("", answer, expect, &mut found);
            found
        }
    }
}

fn at(path: &str, answer: &Value, expect: &Value, differences: &mut Vec<Difference>) {
    match (answer, expect) {
        (Value::Object(answer), Value::Object(expect)) if !are_other_cases(answer, expect) => {
            for (name, expect) in expect {
                let found = answer.get(name).unwrap_or(&Value::Null);
                at(&format!("{path}/{}", escape(name)), found, expect, differences);
            }
        }
        (Value::Array(answer), Value::Array(expect)) if answer.len() == expect.len() => {
            for (index, (answer, expect)) in answer.iter().zip(expect).enumerate() {
                at(&format!("{path}/{index}"), answer, expect, differences);
            }
        }
        (Value::Number(a), Value::Number(b)) if close(a.as_f64(), b.as_f64()) => {}
        _ if answer == expect => {}
        _ => differences.push(Difference {
            path: path.to_owned(),
            expected: expect.clone(),
            found: answer.clone(),
        }),
    }
}

/// Whether these are two cases of a variant, `run` and `answer` say: then the found one is of interest, and not that the other
/// is missing.
fn are_other_cases(answer: &Map<String, Value>, expect: &Map<String, Value>) -> bool {
    let missing = |(name, value): (&String, &Value)| !answer.contains_key(name) && !value.is_null();
    answer.len() == 1 && expect.len() == 1 && expect.iter().all(missing)
}

fn close(a: Option<f64>, b: Option<f64>) -> bool {
    a.zip(b).is_some_and(|(a, b)| (a - b).abs() <= TOLERANCE * a.abs().max(b.abs()))
}

/// A name as a part of a JSON pointer.
fn escape(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn shown(answer: &Value, expect: Value) -> Vec<String> {
        differences(answer, &expect).iter().map(Difference::to_string).collect()
    }

    #[test]
    fn what_is_expected_is_a_part_of_the_answer() {
        let answer = json!({ "state": "s", "set": [{ "name": "a", "confidence": 0.9f32 }], "next": "model", "task": null });
        for expect in [
            json!({}),
            json!({ "state": "s" }),
            json!({ "set": [{ "confidence": 0.9 }] }),
            json!({ "task": null, "absent": null }),
        ] {
            assert_eq!(differences(&answer, &expect), [], "{expect}");
        }
    }

    #[test]
    fn every_difference_is_shown_with_its_place() {
        let answer = json!({ "set": [{ "name": "a" }], "next": "model", "a/b": 1 });
        let all = shown(&answer, json!({ "a/b": 2, "next": null, "nxet": 1, "set": [{ "name": "b" }] }));
        assert_eq!(
            all,
            [
                "/a~1b: expected 2, found 1",
                "/next: expected null, found \"model\"",
                "/nxet: expected 1, found null",
                "/set/0/name: expected \"b\", found \"a\"",
            ]
        );
        assert_eq!(shown(&answer, json!({ "set": [] })), ["/set: expected [], found [{\"name\":\"a\"}]"]);
        assert!(shown(&answer, json!([]))[0].starts_with("the answer: "));
    }

    #[test]
    fn where_another_case_is_found_it_is_shown() {
        let run = json!({ "run": { "mode": "generate" } });
        assert_eq!(
            shown(&run, json!({ "answer": "hi" })),
            ["the answer: expected {\"answer\":\"hi\"}, found {\"run\":{\"mode\":\"generate\"}}"]
        );
        let next = shown(&json!({ "next": run, "state": "s" }), json!({ "next": { "answer": "hi" } }));
        assert!(next[0].starts_with("/next: expected {\"answer\":\"hi\"}, found {\"run\""), "{next:?}");
        assert_eq!(shown(&run, json!({ "answer": null })), [""; 0]);
        let record = json!({ "run": { "mode": "generate", "task": null } });
        assert_eq!(shown(&record, json!({ "run": { "task": 1 } })), ["/run/task: expected 1, found null"]);
    }

    #[test]
    fn an_error_is_expected_by_a_part_of_its_message() {
        let answer = json!({ "error": "no rule for this" });
        assert!(shown(&answer, json!({ "error": "no rule" })).is_empty());
        assert_eq!(
            shown(&answer, json!({ "error": "other" })),
            ["/error: expected \"other\", found \"no rule for this\""]
        );
        let unexpected = shown(&answer, json!({ "state": "s" }));
        assert!(unexpected[0].contains("found {\"error\":\"no rule for this\"}"), "{unexpected:?}");
        let missing = shown(&json!({ "state": "s" }), json!({ "error": "x" }));
        assert!(missing[0].contains("found {\"state\":\"s\"}"), "{missing:?}");
    }
}
