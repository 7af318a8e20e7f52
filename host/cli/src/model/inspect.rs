//! What a model file says of itself, for people.

use std::collections::BTreeMap;
use std::path::Path;

use jackfield_model::gguf::{Gguf, Value};

use crate::Failure;

/// Longer texts are cut.
const SHOWN_BYTES: usize = 100;

pub(super) fn print(path: &Path) -> Result<(), Failure> {
    let file = Gguf::open(path).map_err(|error| Failure::failed(format!("{}: {error}", path.display())))?;
    println!("{}: GGUF version {}, {} bytes", path.display(), file.version(), file.bytes().len());
    for key in file.keys() {
        if let Some(value) = file.get(key).map_err(Failure::failed)? {
            println!("{key} = {}", shown(&value));
        }
    }
    let mut sizes: BTreeMap<&str, (usize, u64)> = BTreeMap::new();
    for tensor in file.tensors() {
        let (count, bytes) = sizes.entry(tensor.quantisation.name()).or_default();
        *count += 1;
        *bytes += tensor.bytes;
    }
    for (name, (count, bytes)) in sizes {
        println!("{count} tensors in {name}, {bytes} bytes");
    }
    Ok(())
}

fn shown(value: &Value<'_>) -> String {
    match value {
        Value::Unsigned(n) => n.to_string(),
        Value::Signed(n) => n.to_string(),
        Value::Float(x) => x.to_string(),
        Value::Bool(b) => b.to_string(),
        Value::String(text) => cut(&format!("{text:?}")),
        Value::Array { element, len } => format!("{len} of {element}"),
    }
}

fn cut(text: &str) -> String {
    if text.len() <= SHOWN_BYTES {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(SHOWN_BYTES);
    format!("{}… ({} bytes)", &text[..end], text.len())
}
