//! GGUF files, versions 2 and 3, little-endian: header, metadata and tensor table.
//!
//! Opening a file walks over all of its structure once and checks it; nothing is allocated from a length that
//! the file claims before that length is compared with the bytes that are there.

mod error;
mod map;
mod reader;
mod tensor;
#[cfg(test)]
mod tests;
mod value;

use std::collections::HashMap;
use std::path::Path;

pub use error::{Fault, GgufError};
pub use tensor::TensorInfo;
pub use value::{Value, ValueType};

use map::Bytes;
use reader::{Reader, utf8};
use tensor::Tensors;
use value::{Entry, MAX_NAME, MAX_TEXT};

/// The largest alignment accepted; files use 32.
pub const MAX_ALIGNMENT: u64 = 1 << 16;
const DEFAULT_ALIGNMENT: u64 = 32;
const MAX_KEYS: u64 = 1 << 14;
const MAX_TENSORS: u64 = 1 << 16;

/// An open model file. The mapping lives as long as this value: load, then drop it.
pub struct Gguf {
    bytes: Bytes,
    version: u32,
    keys: Vec<String>,
    entries: HashMap<String, Entry>,
    tensors: Tensors,
}

impl Gguf {
    /// Maps and checks a file.
    pub fn open(path: &Path) -> Result<Self, GgufError> {
        let bytes = Bytes::map(path).map_err(|source| GgufError::Open { path: path.to_owned(), source })?;
        Self::parse(bytes)
    }

    /// Checks a file that is already in memory.
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Self, GgufError> {
        Self::parse(Bytes::Held(bytes))
    }

    fn parse(bytes: Bytes) -> Result<Self, GgufError> {
        let mut reader = Reader::new(&bytes, 0);
        let version = read_version(&mut reader)?;
        let tensor_count = read_count(&mut reader, "header.tensor_count", MAX_TENSORS)?;
        let key_count = read_count(&mut reader, "header.metadata_kv_count", MAX_KEYS)?;
        let (keys, entries) = read_metadata(&mut reader, key_count)?;
        let mut tensors = tensor::read(&mut reader, tensor_count)?;
        let described = reader.at() as u64;
        let alignment = read_alignment(&bytes, &entries)?;
        tensor::place(&mut tensors, described.next_multiple_of(alignment), alignment, bytes.len() as u64)?;
        Ok(Self { version, keys, entries, tensors, bytes })
    }

    /// The format's version: 2 or 3.
    pub fn version(&self) -> u32 {
        self.version
    }

    /// The whole file.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Metadata keys in the file's order.
    pub fn keys(&self) -> &[String] {
        &self.keys
    }

    /// Tensors in the file's order.
    pub fn tensors(&self) -> &[TensorInfo] {
        &self.tensors.list
    }

    /// One tensor by name.
    pub fn tensor(&self, name: &str) -> Option<&TensorInfo> {
        self.tensors.by_name.get(name).map(|&i| &self.tensors.list[i])
    }

    /// The data of a tensor of this file.
    pub fn data(&self, info: &TensorInfo) -> &[u8] {
        let start = info.start as usize;
        // The range was checked when the file was opened; a tensor of another file gets nothing.
        self.bytes.get(start..start.saturating_add(info.bytes as usize)).unwrap_or_default()
    }

    /// One metadata value, none when the key is not there.
    pub fn get(&self, key: &str) -> Result<Option<Value<'_>>, GgufError> {
        let Some(entry) = self.entries.get(key) else { return Ok(None) };
        let mut reader = Reader::new(&self.bytes, entry.at);
        value::decode(&mut reader, entry.kind, &|| key.to_owned()).map(Some)
    }

    /// A text value.
    pub fn text(&self, key: &str) -> Result<Option<&str>, GgufError> {
        match self.get(key)? {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(self.wrong_type(key, "a string")),
        }
    }

    /// A whole number of any integer type that is not negative.
    pub fn unsigned(&self, key: &str) -> Result<Option<u64>, GgufError> {
        match self.get(key)? {
            None => Ok(None),
            Some(Value::Unsigned(n)) => Ok(Some(n)),
            Some(Value::Signed(n)) if n >= 0 => Ok(Some(n as u64)),
            Some(Value::Signed(n)) => Err(self.error(key, Fault::Value(format!("{n} is negative")))),
            Some(_) => Err(self.wrong_type(key, "an integer")),
        }
    }

    /// A float of either width.
    pub fn float(&self, key: &str) -> Result<Option<f32>, GgufError> {
        match self.get(key)? {
            None => Ok(None),
            Some(Value::Float(x)) => Ok(Some(x as f32)),
            Some(_) => Err(self.wrong_type(key, "a float")),
        }
    }

    /// A boolean.
    pub fn boolean(&self, key: &str) -> Result<Option<bool>, GgufError> {
        match self.get(key)? {
            None => Ok(None),
            Some(Value::Bool(b)) => Ok(Some(b)),
            Some(_) => Err(self.wrong_type(key, "a boolean")),
        }
    }

    /// An array of strings, borrowed from the file.
    pub fn texts(&self, key: &str) -> Result<Option<Vec<&str>>, GgufError> {
        let read = |reader: &mut Reader<'_>, field: &dyn Fn() -> String| {
            let bytes = reader.string(MAX_TEXT, field)?;
            let end = reader.at();
            utf8(bytes, end - bytes.len(), field)?;
            Ok(end - bytes.len()..end)
        };
        let Some(ranges) = self.elements(key, "an array of strings", |t| t == ValueType::String, read)?
        else {
            return Ok(None);
        };
        // Checked above; an empty default cannot be reached.
        Ok(Some(
            ranges.into_iter().map(|r| std::str::from_utf8(&self.bytes[r]).unwrap_or_default()).collect(),
        ))
    }

    /// An array of 32-bit floats.
    pub fn floats(&self, key: &str) -> Result<Option<Vec<f32>>, GgufError> {
        self.elements(
            key,
            "an array of f32",
            |t| t == ValueType::F32,
            |reader, field| Ok(f32::from_bits(reader.u32(field)?)),
        )
    }

    /// An array of 32-bit integers, signed or not, as their bits.
    pub fn integers(&self, key: &str) -> Result<Option<Vec<u32>>, GgufError> {
        let fits = |t| matches!(t, ValueType::I32 | ValueType::U32);
        self.elements(key, "an array of 32-bit integers", fits, |reader, field| reader.u32(field))
    }

    fn elements<T>(
        &self,
        key: &str,
        wanted: &'static str,
        fits: impl Fn(ValueType) -> bool,
        read: impl Fn(&mut Reader<'_>, &dyn Fn() -> String) -> Result<T, GgufError>,
    ) -> Result<Option<Vec<T>>, GgufError> {
        let Some(entry) = self.entries.get(key) else { return Ok(None) };
        if entry.kind != ValueType::Array {
            return Err(self.wrong_type(key, wanted));
        }
        let mut reader = Reader::new(&self.bytes, entry.at);
        let (element, len) = value::array_head(&mut reader, &|| key.to_owned())?;
        if !fits(element) {
            return Err(self.error(key, Fault::WrongType { wanted, found: element }));
        }
        (0..len)
            .map(|i| read(&mut reader, &|| format!("{key}[{i}]")))
            .collect::<Result<Vec<T>, _>>()
            .map(Some)
    }

    fn wrong_type(&self, key: &str, wanted: &'static str) -> GgufError {
        let found = self.entries.get(key).map_or(ValueType::Array, |entry| entry.kind);
        self.error(key, Fault::WrongType { wanted, found })
    }

    /// An error about a key of this file, or about its absence.
    pub fn error(&self, key: &str, fault: Fault) -> GgufError {
        GgufError::bad(key, self.entries.get(key).map_or(0, |entry| entry.at as u64), fault)
    }

    /// An error about a tensor of this file, or about its absence.
    pub fn tensor_error(&self, name: &str, fault: Fault) -> GgufError {
        match self.tensor(name) {
            Some(info) => info.error(fault),
            None => GgufError::bad(format!("tensor {name}"), 0, fault),
        }
    }
}

fn read_version(reader: &mut Reader<'_>) -> Result<u32, GgufError> {
    let field = || "header.magic".to_owned();
    let magic = reader.take(4, field)?;
    if magic != b"GGUF" {
        let found = [magic[0], magic[1], magic[2], magic[3]];
        return Err(GgufError::bad(field(), 0, Fault::Magic(found)));
    }
    let field = || "header.version".to_owned();
    let fault = match reader.u32(field)? {
        version @ (2 | 3) => return Ok(version),
        swapped if matches!(swapped.swap_bytes(), 1..=3) => Fault::BigEndian,
        other => Fault::Version(other),
    };
    Err(GgufError::bad(field(), 4, fault))
}

fn read_count(reader: &mut Reader<'_>, field: &str, limit: u64) -> Result<u64, GgufError> {
    let at = reader.at() as u64;
    let found = reader.u64(|| field.to_owned())?;
    if found > limit {
        return Err(GgufError::bad(field, at, Fault::TooMany { found, limit }));
    }
    Ok(found)
}

type Metadata = (Vec<String>, HashMap<String, Entry>);

fn read_metadata(reader: &mut Reader<'_>, count: u64) -> Result<Metadata, GgufError> {
    let (mut keys, mut entries) = (Vec::new(), HashMap::new());
    for i in 0..count {
        let start = reader.at() as u64;
        let unnamed = || format!("metadata[{i}].key");
        let key = reader.string(MAX_NAME, unnamed)?;
        let key = utf8(key, reader.at() - key.len(), unnamed)?;
        let field = || key.to_owned();
        let at = reader.at() as u64;
        let id = reader.u32(field)?;
        let kind = ValueType::from_id(id).ok_or_else(|| GgufError::bad(key, at, Fault::ValueType(id)))?;
        let entry = Entry { kind, at: reader.at() };
        value::skip(reader, kind, &field)?;
        if entries.insert(key.to_owned(), entry).is_some() {
            return Err(GgufError::bad(key, start, Fault::Duplicate));
        }
        keys.push(key.to_owned());
    }
    Ok((keys, entries))
}

fn read_alignment(bytes: &[u8], entries: &HashMap<String, Entry>) -> Result<u64, GgufError> {
    let key = "general.alignment";
    let Some(entry) = entries.get(key) else { return Ok(DEFAULT_ALIGNMENT) };
    let found = match value::decode(&mut Reader::new(bytes, entry.at), entry.kind, &|| key.to_owned())? {
        Value::Unsigned(n) => n,
        _ => {
            let fault = Fault::WrongType { wanted: "an unsigned integer", found: entry.kind };
            return Err(GgufError::bad(key, entry.at as u64, fault));
        }
    };
    if !found.is_power_of_two() || found > MAX_ALIGNMENT {
        return Err(GgufError::bad(key, entry.at as u64, Fault::Alignment(found)));
    }
    Ok(found)
}
