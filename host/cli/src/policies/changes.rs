//! In what two JSON values differ, by place.

use std::collections::BTreeSet;

use serde_json::Value;

/// A place where two values differ.
#[derive(Debug, PartialEq)]
pub(super) struct Change {
    /// JSON pointer to it; empty for the whole.
    pub(super) path: String,
    /// None where there was nothing.
    pub(super) before: Option<Value>,
    /// None where there is nothing any more.
    pub(super) after: Option<Value>,
}

/// Every place where two values differ, members by name and elements by position.
pub(super) fn changes(before: &Value, after: &Value) -> Vec<Change> {
    let mut found = Vec::new();
    compare(String::new(), Some(before), Some(after), &mut found);
    found
}

fn compare(path: String, before: Option<&Value>, after: Option<&Value>, found: &mut Vec<Change>) {
    match (before, after) {
        (Some(Value::Object(a)), Some(Value::Object(b))) => {
            let names: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
            for name in names {
                let part = name.replace('~', "~0").replace('/', "~1");
                compare(format!("{path}/{part}"), a.get(name), b.get(name), found);
            }
        }
        (Some(Value::Array(a)), Some(Value::Array(b))) => {
            for at in 0..a.len().max(b.len()) {
                compare(format!("{path}/{at}"), a.get(at), b.get(at), found);
            }
        }
        _ if before == after => {}
        _ => found.push(Change { path, before: before.cloned(), after: after.cloned() }),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_place_is_found() {
        let before = json!({ "same": 1, "a/b": "x", "list": [1, 2], "gone": null });
        let after = json!({ "same": 1, "a/b": "y", "list": [1, 3, 4] });
        let found = changes(&before, &after);
        let paths: Vec<&str> = found.iter().map(|change| change.path.as_str()).collect();
        assert_eq!(paths, ["/a~1b", "/gone", "/list/1", "/list/2"]);
        assert_eq!((&found[3].before, &found[3].after), (&None, &Some(json!(4))));
        assert_eq!((&found[1].before, &found[1].after), (&Some(Value::Null), &None));
        assert_eq!(changes(&before, &before), []);
        assert_eq!(changes(&json!(1), &json!("1"))[0].path, "");
    }
}
