//! The functions and filters that published templates expect, with Python's output.

use std::fmt::Write;

use minijinja::value::{Kwargs, Value, ValueKind};
use minijinja::{Environment, Error, ErrorKind};
use serde_json::Value as Json;

/// What a template said through `raise_exception`.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct Raised(pub(super) String);

/// Adds them to an environment.
pub(super) fn install(env: &mut Environment<'_>) {
    env.set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
    env.add_function("raise_exception", raise_exception);
    env.add_filter("tojson", to_json);
    env.add_filter("string", |value: &Value| text_of(value));
    env.set_formatter(|out, _, value| Ok(out.write_str(&text_of(value))?));
    env.add_test("iterable", |v: &Value| !v.is_none() && v.try_iter().is_ok());
    // In Python a string and a dict have a length and items, and that is what the test asks for.
    env.add_test("sequence", |v: &Value| {
        matches!(v.kind(), ValueKind::Seq | ValueKind::String | ValueKind::Map)
    });
}

/// `str` of a value, which differs from the engine's own for floats alone.
fn text_of(value: &Value) -> String {
    match f64::try_from(value.clone()) {
        Ok(x) if value.is_number() && !value.is_integer() && x.is_finite() => {
            let mut out = String::new();
            float(x, &mut out);
            out
        }
        _ => value.to_string(),
    }
}

fn raise_exception(message: String) -> Result<Value, Error> {
    Err(Error::new(ErrorKind::InvalidOperation, "raised").with_source(Raised(message)))
}

/// `json.dumps`: nothing escaped for HTML, nothing beyond ASCII escaped unless asked.
fn to_json(value: &Value, indent: Option<usize>, options: Kwargs) -> Result<String, Error> {
    let indent = options.get::<Option<usize>>("indent")?.or(indent);
    let ascii = options.get::<Option<bool>>("ensure_ascii")?.unwrap_or(false);
    let sort = options.get::<Option<bool>>("sort_keys")?.unwrap_or(false);
    let separators = options.get::<Option<Vec<String>>>("separators")?;
    options.assert_all_used()?;
    let json = serde_json::to_value(value)
        .map_err(|e| Error::new(ErrorKind::BadSerialization, "value is not JSON").with_source(e))?;
    let default_item = if indent.is_some() { "," } else { ", " };
    let (item, key) = match separators.as_deref() {
        Some([item, key]) => (item.as_str(), key.as_str()),
        _ => (default_item, ": "),
    };
    let mut dump = Dump { out: String::new(), indent: indent.map(|n| n.min(64)), item, key, ascii, sort };
    dump.value(&json, 1);
    Ok(dump.out)
}

struct Dump<'a> {
    out: String,
    indent: Option<usize>,
    item: &'a str,
    key: &'a str,
    ascii: bool,
    sort: bool,
}

impl Dump<'_> {
    fn value(&mut self, value: &Json, depth: usize) {
        match value {
            Json::Null => self.out.push_str("null"),
            Json::Bool(b) => self.out.push_str(if *b { "true" } else { "false" }),
            Json::Number(n) if n.is_f64() => float(n.as_f64().unwrap_or(0.0), &mut self.out),
            Json::Number(n) => self.out.push_str(&n.to_string()),
            Json::String(text) => self.string(text),
            Json::Array(items) => {
                self.all('[', ']', items.iter(), depth, |dump, item| dump.value(item, depth + 1));
            }
            Json::Object(fields) => {
                let mut fields: Vec<_> = fields.iter().collect();
                if self.sort {
                    fields.sort_by_key(|field| field.0);
                }
                self.all('{', '}', fields.into_iter(), depth, |dump, (name, value)| {
                    dump.string(name);
                    dump.out.push_str(dump.key);
                    dump.value(value, depth + 1);
                });
            }
        }
    }

    fn all<T>(
        &mut self,
        open: char,
        close: char,
        items: impl ExactSizeIterator<Item = T>,
        depth: usize,
        mut one: impl FnMut(&mut Self, T),
    ) {
        self.out.push(open);
        let empty = items.len() == 0;
        for (i, item) in items.enumerate() {
            if i > 0 {
                self.out.push_str(self.item);
            }
            self.new_line(depth);
            one(self, item);
        }
        if !empty {
            self.new_line(depth - 1);
        }
        self.out.push(close);
    }

    fn new_line(&mut self, depth: usize) {
        if let Some(width) = self.indent {
            self.out.push('\n');
            self.out.extend(std::iter::repeat_n(' ', width * depth));
        }
    }

    fn string(&mut self, text: &str) {
        self.out.push('"');
        for c in text.chars() {
            self.character(c);
        }
        self.out.push('"');
    }

    fn character(&mut self, c: char) {
        match c {
            '"' => self.out.push_str("\\\""),
            '\\' => self.out.push_str("\\\\"),
            '\n' => self.out.push_str("\\n"),
            '\r' => self.out.push_str("\\r"),
            '\t' => self.out.push_str("\\t"),
            '\u{8}' => self.out.push_str("\\b"),
            '\u{c}' => self.out.push_str("\\f"),
            c if c < ' ' || (self.ascii && c >= '\u{7f}') => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    let _ = write!(self.out, "\\u{unit:04x}"); // writing to a string cannot fail
                }
            }
            c => self.out.push(c),
        }
    }
}

/// Python's `repr` of a float.
fn float(x: f64, out: &mut String) {
    let size = x.abs();
    if size == 0.0 || (1e-4..1e16).contains(&size) {
        let _ = write!(out, "{x:?}");
        return;
    }
    let text = format!("{x:e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let (sign, exponent) = exponent.strip_prefix('-').map_or(('+', exponent), |e| ('-', e));
    let _ = write!(out, "{digits}e{sign}{exponent:0>2}");
}
