//! JSON as a request may use it: bounded in depth and in values, and no key twice in one object.

use std::cell::Cell;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use crate::error::{ApiError, shorten};

/// Values (numbers, strings, arrays, …) one body may hold; bounds the memory of a body of `[[],[],…]`.
const MOST_VALUES: usize = 500_000;

/// Reads a body that must be one JSON object.
///
/// # Errors
/// 400 for an empty body, a syntax error, a number outside double precision, nesting beyond 128, a key that an object
/// names twice, or anything but an object.
pub(crate) fn object(body: &[u8]) -> Result<Map<String, Value>, ApiError> {
    if body.iter().all(u8::is_ascii_whitespace) {
        return Err(ApiError::bad_request("invalid_json", "The body is empty; send a JSON object"));
    }
    match parse(body) {
        Ok(Value::Object(map)) => Ok(map),
        Ok(_) => Err(ApiError::bad_request("invalid_json", "The body must be a JSON object")),
        Err(error) => {
            Err(ApiError::bad_request("invalid_json", format!("The body is not usable JSON: {error}")))
        }
    }
}

fn parse(body: &[u8]) -> Result<Value, serde_json::Error> {
    let left = Cell::new(MOST_VALUES);
    let mut reader = serde_json::Deserializer::from_slice(body);
    let value = Strict { left: &left }.deserialize(&mut reader)?;
    reader.end()?;
    Ok(value)
}

/// Builds a [`Value`], counting values down and refusing double keys.
#[derive(Clone, Copy)]
struct Strict<'a> {
    left: &'a Cell<usize>,
}

impl<'de> DeserializeSeed<'de> for Strict<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        let left = self.left.get().checked_sub(1).ok_or_else(|| D::Error::custom("too many values"))?;
        self.left.set(left);
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict<'_> {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Number::from_f64(value).map(Value::Number).ok_or_else(|| E::custom("a number out of range"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = sequence.next_element_seed(self)? {
            items.push(item);
        }
        Ok(Value::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            if map.contains_key(&key) {
                return Err(A::Error::custom(format!(
                    "the key `{}` appears twice in one object",
                    shorten(&key)
                )));
            }
            let value = entries.next_value_seed(self)?;
            map.insert(key, value);
        }
        Ok(Value::Object(map))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(body: &str) -> String {
        let error = object(body.as_bytes()).expect_err(body);
        assert_eq!((error.status.as_u16(), error.code), (400, "invalid_json"), "{body}");
        error.message
    }

    #[test]
    fn a_plain_object_is_read() {
        let map =
            object(br#"{"a": [1, -2, 0.5, true, null, "x"], "b": {"c": 18446744073709551615}}"#).unwrap();
        assert_eq!(
            Value::Object(map).to_string(),
            r#"{"a":[1,-2,0.5,true,null,"x"],"b":{"c":18446744073709551615}}"#
        );
    }

    #[test]
    fn hostile_bodies_are_refused() {
        for body in [
            "",
            "  \n",
            "[]",
            "1",
            "\"x\"",
            "{",
            "{}{}",
            "{\"a\":NaN}",
            "{\"a\":1e999}",
            "{\"a\":\"\\ud800\"}",
        ] {
            refused(body);
        }
        assert!(object(b"{\"a\":\"\xff\"}").is_err());
    }

    #[test]
    fn a_key_named_twice_is_refused_at_any_depth() {
        assert!(refused(r#"{"n":1,"n":2}"#).contains("`n` appears twice"));
        assert!(refused(r#"{"n":{"x":1,"\u0078":2}}"#).contains("`x` appears twice"));
    }

    #[test]
    fn depth_and_number_of_values_are_bounded() {
        let deep = format!("{{\"a\":{}1{}}}", "[".repeat(500), "]".repeat(500));
        assert!(refused(&deep).contains("recursion"));
        let wide = format!("{{\"a\":[{}0]}}", "[],".repeat(MOST_VALUES));
        assert!(refused(&wide).contains("too many values"));
    }
}
