//! Metadata values: checked when the file is opened, decoded when they are asked for.

use std::fmt;

use super::reader::{Reader, utf8};
use super::{Fault, GgufError};

/// The type of a metadata value, by GGUF's numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum ValueType {
    U8,
    I8,
    U16,
    I16,
    U32,
    I32,
    F32,
    Bool,
    String,
    Array,
    U64,
    I64,
    F64,
}

impl ValueType {
    pub(super) fn from_id(id: u32) -> Option<Self> {
        use ValueType::*;
        const ALL: [ValueType; 13] = [U8, I8, U16, I16, U32, I32, F32, Bool, String, Array, U64, I64, F64];
        ALL.get(id as usize).copied()
    }

    /// Bytes of one value; none for those whose length is in the file.
    pub(super) fn width(self) -> Option<u64> {
        use ValueType::*;
        match self {
            U8 | I8 | Bool => Some(1),
            U16 | I16 => Some(2),
            U32 | I32 | F32 => Some(4),
            U64 | I64 | F64 => Some(8),
            String | Array => None,
        }
    }
}

impl fmt::Display for ValueType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", format!("{self:?}").to_lowercase())
    }
}

/// One metadata value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value<'a> {
    /// Any unsigned integer.
    Unsigned(u64),
    /// Any signed integer.
    Signed(i64),
    /// Either float.
    Float(f64),
    /// A boolean.
    Bool(bool),
    /// Text.
    String(&'a str),
    /// An array; its elements are read through the typed getters of [`super::Gguf`].
    Array {
        /// Type of the elements.
        element: ValueType,
        /// How many there are.
        len: u64,
    },
}

/// The longest key or tensor name; the format's own limit for keys.
pub(super) const MAX_NAME: u64 = 65_535;
/// The longest text value: a chat template or a licence, not a gigabyte.
pub(super) const MAX_TEXT: u64 = 16 << 20;
/// The most elements in one array; vocabularies have some hundred thousand.
pub(super) const MAX_ELEMENTS: u64 = 16 << 20;

/// Where a value lies.
#[derive(Clone, Copy)]
pub(super) struct Entry {
    pub(super) kind: ValueType,
    /// Byte of the value itself, after its type.
    pub(super) at: usize,
}

/// Walks over one value without keeping it.
pub(super) fn skip(
    reader: &mut Reader<'_>,
    kind: ValueType,
    field: &dyn Fn() -> String,
) -> Result<(), GgufError> {
    match kind {
        ValueType::String => reader.string(MAX_TEXT, field).map(drop),
        ValueType::Array => skip_array(reader, field),
        ValueType::Bool => {
            let at = reader.at() as u64;
            match reader.u8(field)? {
                0 | 1 => Ok(()),
                other => Err(GgufError::bad(
                    field(),
                    at,
                    Fault::Value(format!("boolean byte is {other}, not 0 or 1")),
                )),
            }
        }
        fixed => reader.take(fixed.width().unwrap_or(0), field).map(drop),
    }
}

fn skip_array(reader: &mut Reader<'_>, field: &dyn Fn() -> String) -> Result<(), GgufError> {
    let (element, len) = array_head(reader, field)?;
    match element.width() {
        // `len` is at most MAX_ELEMENTS: the product fits.
        Some(width) => reader.take(len * width, field).map(drop),
        None => {
            for i in 0..len {
                reader.string(MAX_TEXT, || format!("{}[{i}]", field()))?;
            }
            Ok(())
        }
    }
}

/// Element type and count of an array.
pub(super) fn array_head(
    reader: &mut Reader<'_>,
    field: &dyn Fn() -> String,
) -> Result<(ValueType, u64), GgufError> {
    let start = reader.at() as u64;
    let id = reader.u32(field)?;
    let element =
        ValueType::from_id(id).ok_or_else(|| GgufError::bad(field(), start, Fault::ValueType(id)))?;
    if element == ValueType::Array {
        return Err(GgufError::bad(field(), start, Fault::NestedArray));
    }
    let at = reader.at() as u64;
    let len = reader.u64(field)?;
    if len > MAX_ELEMENTS {
        return Err(GgufError::bad(field(), at, Fault::TooMany { found: len, limit: MAX_ELEMENTS }));
    }
    Ok((element, len))
}

/// Decodes one value. An array gives its head and leaves the reader at its first element.
pub(super) fn decode<'a>(
    reader: &mut Reader<'a>,
    kind: ValueType,
    field: &dyn Fn() -> String,
) -> Result<Value<'a>, GgufError> {
    use ValueType::*;
    Ok(match kind {
        U8 => Value::Unsigned(reader.u8(field)?.into()),
        U16 => Value::Unsigned(reader.u16(field)?.into()),
        U32 => Value::Unsigned(reader.u32(field)?.into()),
        U64 => Value::Unsigned(reader.u64(field)?),
        I8 => Value::Signed((reader.u8(field)? as i8).into()),
        I16 => Value::Signed((reader.u16(field)? as i16).into()),
        I32 => Value::Signed((reader.u32(field)? as i32).into()),
        I64 => Value::Signed(reader.u64(field)? as i64),
        F32 => Value::Float(f32::from_bits(reader.u32(field)?).into()),
        F64 => Value::Float(f64::from_bits(reader.u64(field)?)),
        Bool => Value::Bool(reader.u8(field)? != 0),
        String => {
            let bytes = reader.string(MAX_TEXT, field)?;
            Value::String(utf8(bytes, reader.at() - bytes.len(), field)?)
        }
        Array => {
            let (element, len) = array_head(reader, field)?;
            Value::Array { element, len }
        }
    })
}
