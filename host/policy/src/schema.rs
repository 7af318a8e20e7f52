//! A policy's configuration, held to the schema that the policy itself gives.
//!
//! The schema comes from the guest, so it may be hostile: it is bounded in size, references stay within it and may not be
//! recursive, what it comes to with all references written out is bounded, and patterns run in linear time.

use jsonschema::PatternOptions;
use serde_json::Value;

use crate::{ConfigProblem, Refusal};

const MAX_SCHEMA_BYTES: usize = 256 << 10;
const MAX_CONFIG_BYTES: usize = 4 << 20;
/// Parts of a schema with its references written out.
const MAX_PARTS: usize = 100_000;

/// Hold a configuration to a schema.
///
/// # Errors
/// [`Refusal::Description`] when the schema is of no use, [`Refusal::Config`] when the configuration does not fit it.
pub(crate) fn check(schema: &str, config: &Value) -> Result<(), Refusal> {
    let validator = validator(schema)?;
    measure_config(config)?;
    validator.validate(config).map_err(|error| Refusal::Config {
        at: error.instance_path().to_string(),
        message: error.to_string(),
    })
}

/// Everything in which a configuration does not fit a schema.
///
/// # Errors
/// [`Refusal::Description`] when the schema is of no use, [`Refusal::Config`] when the configuration is too large.
pub(crate) fn problems(schema: &str, config: &Value) -> Result<Vec<ConfigProblem>, Refusal> {
    let validator = validator(schema)?;
    measure_config(config)?;
    let problem = |error: jsonschema::ValidationError<'_>| ConfigProblem {
        at: error.instance_path().to_string(),
        message: error.to_string(),
    };
    Ok(validator.iter_errors(config).map(problem).collect())
}

fn validator(schema: &str) -> Result<jsonschema::Validator, Refusal> {
    let useless = |what: String| Refusal::Description { what };
    if schema.len() > MAX_SCHEMA_BYTES {
        let bytes = schema.len();
        return Err(useless(format!("a schema of {bytes} bytes; at most {MAX_SCHEMA_BYTES}")));
    }
    let schema: Value = serde_json::from_str(schema)
        .map_err(|error| useless(format!("a schema that is not JSON: {error}")))?;
    let mut left = MAX_PARTS;
    Expansion { root: &schema, open: Vec::new() }.measure(&schema, &mut left).map_err(useless)?;
    jsonschema::options()
        .with_pattern_options(PatternOptions::regex())
        .build(&schema)
        .map_err(|error| useless(format!("a schema that is not one: {error}")))
}

fn measure_config(config: &Value) -> Result<(), Refusal> {
    if config.to_string().len() <= MAX_CONFIG_BYTES {
        return Ok(());
    }
    Err(Refusal::Config { at: String::new(), message: format!("it has more than {MAX_CONFIG_BYTES} bytes") })
}

/// Counts the parts of a schema as if its references were written out.
struct Expansion<'a> {
    root: &'a Value,
    /// References that are being followed.
    open: Vec<&'a str>,
}

impl<'a> Expansion<'a> {
    fn measure(&mut self, part: &'a Value, left: &mut usize) -> Result<(), String> {
        *left = left.checked_sub(1).ok_or("a schema that is too large with its references written out")?;
        match part {
            Value::Array(parts) => parts.iter().try_for_each(|part| self.measure(part, left)),
            Value::Object(parts) => parts.iter().try_for_each(|(name, part)| match part {
                Value::String(reference) if name == "$ref" => self.follow(reference, left),
                Value::String(_) if name == "$dynamicRef" || name == "$recursiveRef" => {
                    Err(format!("a schema with `{name}`, which is not supported"))
                }
                part => self.measure(part, left),
            }),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(()),
        }
    }

    fn follow(&mut self, reference: &'a str, left: &mut usize) -> Result<(), String> {
        let pointer = reference
            .strip_prefix('#')
            .filter(|pointer| pointer.is_empty() || pointer.starts_with('/'))
            .ok_or_else(|| format!("a schema that refers to `{reference}`; only `#/…` is supported"))?;
        if self.open.contains(&pointer) {
            return Err(format!("a schema that refers to itself by `{reference}`"));
        }
        let target = self
            .root
            .pointer(pointer)
            .ok_or_else(|| format!("a schema that refers to `{reference}`, which it does not hold"))?;
        self.open.push(pointer);
        let measured = self.measure(target, left);
        self.open.pop();
        measured
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_configuration_is_held_to_its_schema() {
        let schema = json!({
            "type": "object",
            "required": ["words"],
            "additionalProperties": false,
            "properties": { "words": { "$ref": "#/$defs/words" }, "level": { "type": "integer", "minimum": 1 } },
            "$defs": { "words": { "type": "array", "items": { "type": "string" } } },
        })
        .to_string();
        assert_eq!(check(&schema, &json!({ "words": ["a"] })), Ok(()));
        let refused = |config: Value| match check(&schema, &config) {
            Err(Refusal::Config { at, message }) => (at, message),
            other => panic!("{other:?}"),
        };
        assert_eq!(refused(json!({ "words": ["a", 1] })).0, "/words/1");
        assert_eq!(refused(json!({ "words": [], "level": 0 })).0, "/level");
        assert!(refused(json!({})).1.contains("words"));
        assert!(refused(json!({ "words": [], "wrods": [] })).1.contains("wrods"));
    }

    #[test]
    fn all_that_does_not_fit_is_found() {
        let schema = json!({ "properties": { "a": { "type": "string" }, "b": { "type": "string" } } });
        let found = problems(&schema.to_string(), &json!({ "a": 1, "b": 2, "c": 3 })).expect("a schema");
        assert_eq!(found.iter().map(|problem| problem.at.as_str()).collect::<Vec<_>>(), ["/a", "/b"]);
        assert!(problems("{", &json!({})).is_err());
    }

    #[test]
    fn an_empty_schema_takes_anything() {
        assert_eq!(check("{}", &json!(null)), Ok(()));
        assert_eq!(check("{}", &json!({ "a": 1 })), Ok(()));
    }

    #[test]
    fn hostile_schemas_are_refused() {
        let refused = |schema: &str| match check(schema, &json!({})) {
            Err(Refusal::Description { what }) => what,
            other => panic!("{schema}: {other:?}"),
        };
        assert!(refused("not json").contains("not JSON"));
        assert!(refused(r#"{"type": "strnig"}"#).contains("not one"));
        assert!(refused(r##"{"$ref": "#"}"##).contains("itself"));
        assert!(refused(r#"{"$ref": "file:///etc/passwd"}"#).contains("passwd"));
        assert!(refused(r#"{"$ref": "http://example.org/s"}"#).contains("example.org"));
        assert!(refused(r##"{"$ref": "#/$defs/none"}"##).contains("does not hold"));
        assert!(refused(&" ".repeat(300 << 10)).contains("bytes"));
        // Each definition is twice the one before: 2^40 parts.
        let definitions: Vec<String> = (0..40)
            .map(|n| {
                let next = format!("{{\"$ref\": \"#/$defs/d{}\"}}", n + 1);
                format!("\"d{n}\": {{\"allOf\": [{next}, {next}]}}")
            })
            .collect();
        let bomb =
            format!("{{\"$ref\": \"#/$defs/d0\", \"$defs\": {{{}, \"d40\": {{}}}}}}", definitions.join(","));
        assert!(refused(&bomb).contains("too large"));
    }
}
