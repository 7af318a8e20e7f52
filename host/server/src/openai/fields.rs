//! Typed reading of one JSON object, with errors that name the field.

use std::fmt::Display;
use std::ops::RangeInclusive;

use serde_json::{Map, Value};

use crate::error::ApiError;

/// One object of a request and where it stands in it. A field that is `null` counts as absent.
#[derive(Clone)]
pub(crate) struct Fields<'a> {
    map: &'a Map<String, Value>,
    prefix: String,
}

/// The numbers a field takes, and how to say so.
pub(crate) struct Range {
    low: f64,
    high: f64,
    low_is_in: bool,
}

impl Range {
    pub(crate) const fn closed(low: f64, high: f64) -> Range {
        Range { low, high, low_is_in: true }
    }

    pub(crate) const fn above(low: f64, high: f64) -> Range {
        Range { low, high, low_is_in: false }
    }

    fn holds(&self, value: f64) -> bool {
        (value > self.low || (self.low_is_in && value == self.low)) && value <= self.high
    }

    fn wanted(&self) -> String {
        let low = if self.low_is_in { "at least" } else { "more than" };
        format!("{low} {} and at most {}", self.low, self.high)
    }
}

impl<'a> Fields<'a> {
    pub(crate) fn root(map: &'a Map<String, Value>) -> Self {
        Fields { map, prefix: String::new() }
    }

    /// The object `value`, which stands at `path`.
    pub(crate) fn at(value: &'a Value, path: &str) -> Result<Self, ApiError> {
        match value {
            Value::Object(map) => Ok(Fields { map, prefix: format!("{path}.") }),
            other => Err(wrong_type(path, "an object", other)),
        }
    }

    /// The whole path of a field of this object.
    pub(crate) fn path(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }

    pub(crate) fn get(&self, name: &str) -> Option<&'a Value> {
        self.map.get(name).filter(|value| !value.is_null())
    }

    pub(crate) fn required(&self, name: &str) -> Result<&'a Value, ApiError> {
        self.get(name).ok_or_else(|| {
            let path = self.path(name);
            let message = format!("`{path}` is required");
            ApiError::invalid(path, "missing_required_parameter", message)
        })
    }

    pub(crate) fn object(&self, name: &str) -> Result<Option<Fields<'a>>, ApiError> {
        self.get(name).map(|value| Fields::at(value, &self.path(name))).transpose()
    }

    pub(crate) fn text(&self, name: &str) -> Result<Option<&'a str>, ApiError> {
        self.get(name).map(|value| text(value, &self.path(name))).transpose()
    }

    pub(crate) fn flag(&self, name: &str) -> Result<Option<bool>, ApiError> {
        self.get(name)
            .map(|value| value.as_bool().ok_or_else(|| wrong_type(&self.path(name), "true or false", value)))
            .transpose()
    }

    pub(crate) fn array(&self, name: &str) -> Result<Option<&'a [Value]>, ApiError> {
        self.get(name).map(|value| array(value, &self.path(name))).transpose()
    }

    pub(crate) fn number(&self, name: &str, range: &Range) -> Result<Option<f64>, ApiError> {
        self.get(name).map(|value| number(value, &self.path(name), range)).transpose()
    }

    pub(crate) fn integer<T>(&self, name: &str, range: RangeInclusive<T>) -> Result<Option<T>, ApiError>
    where
        T: TryFrom<i64> + PartialOrd + Display,
    {
        self.get(name).map(|value| integer(value, &self.path(name), range)).transpose()
    }

    pub(crate) fn entries(&self) -> impl Iterator<Item = (&'a String, &'a Value)> + use<'a> {
        self.map.iter()
    }
}

pub(crate) fn text<'a>(value: &'a Value, path: &str) -> Result<&'a str, ApiError> {
    value.as_str().ok_or_else(|| wrong_type(path, "a string", value))
}

pub(crate) fn array<'a>(value: &'a Value, path: &str) -> Result<&'a [Value], ApiError> {
    value.as_array().map(Vec::as_slice).ok_or_else(|| wrong_type(path, "an array", value))
}

pub(crate) fn number(value: &Value, path: &str, range: &Range) -> Result<f64, ApiError> {
    let number = value.as_f64().ok_or_else(|| wrong_type(path, "a number", value))?;
    if range.holds(number) {
        return Ok(number);
    }
    Err(invalid(path, format!("is {number}; it must be {}", range.wanted())))
}

pub(crate) fn integer<T>(value: &Value, path: &str, range: RangeInclusive<T>) -> Result<T, ApiError>
where
    T: TryFrom<i64> + PartialOrd + Display,
{
    if !value.is_number() || value.is_f64() && value.as_f64().is_some_and(|number| number.fract() != 0.0) {
        return Err(wrong_type(path, "an integer", value));
    }
    let whole = value.as_i64().and_then(|whole| T::try_from(whole).ok());
    whole.filter(|whole| range.contains(whole)).ok_or_else(|| {
        invalid(path, format!("is {value}; it must be an integer from {} to {}", range.start(), range.end()))
    })
}

/// 400 `invalid_value`: `problem` follows the field's name in the message.
pub(crate) fn invalid(path: &str, problem: impl Display) -> ApiError {
    ApiError::invalid(path, "invalid_value", format!("`{path}` {problem}"))
}

/// 400 `invalid_type`.
pub(crate) fn wrong_type(path: &str, wanted: &str, found: &Value) -> ApiError {
    let found = match found {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    };
    ApiError::invalid(path, "invalid_type", format!("`{path}` must be {wanted}, not {found}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn integers_keep_to_their_range() {
        let read = |value: Value| integer::<u32>(&value, "n", 1..=8);
        assert_eq!(read(json!(8)), Ok(8));
        for value in [json!(0), json!(9), json!(-1), json!(1u64 << 40), json!(u64::MAX), json!(2.0e30)] {
            assert_eq!(read(value).unwrap_err().code, "invalid_value");
        }
        for value in [json!("5"), json!(1.5), json!(true), json!([]), json!(null)] {
            assert_eq!(read(value).unwrap_err().code, "invalid_type");
        }
    }

    #[test]
    fn an_open_bound_is_outside() {
        let range = Range::above(0.0, 1.0);
        assert!(
            number(&json!(0), "top_p", &range).unwrap_err().message.contains("more than 0 and at most 1")
        );
        assert_eq!(number(&json!(1), "top_p", &range), Ok(1.0));
    }

    #[test]
    fn null_is_absent_and_paths_nest() {
        let value = json!({"a": null, "b": {"c": 1}});
        let root = Fields::at(&value, "x").unwrap();
        assert_eq!(root.text("a"), Ok(None));
        let inner = root.object("b").unwrap().unwrap();
        assert_eq!(inner.text("c").unwrap_err().param.as_deref(), Some("x.b.c"));
    }
}
