//! What the golden tests share: where references and the model are, and a small GGUF writer.
//!
//! The writer shares no code with the host's reader, so that a mistake in one is not hidden by the other.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use jackfield_model::Tokenizer;
use serde_json::Value;

/// Of the file that the references were made from.
pub(crate) const MODEL_SHA256: &str = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53";

/// The default model: `JACKFIELD_TEST_MODEL`, or where `jackfield model pull` keeps it.
pub(crate) fn model_file() -> PathBuf {
    let path = env::var_os("JACKFIELD_TEST_MODEL")
        .map_or_else(|| models().join("SmolLM2-135M-Instruct.Q4_1.gguf"), PathBuf::from);
    assert!(
        path.is_file(),
        "{} is not there: fetch it with `cargo run --release -- model pull`, or name a copy in JACKFIELD_TEST_MODEL",
        path.display()
    );
    path
}

/// The model for embeddings: `JACKFIELD_TEST_EMBEDDINGS`, or where `jackfield model pull minilm` keeps it.
pub(crate) fn embeddings_folder() -> PathBuf {
    let path = env::var_os("JACKFIELD_TEST_EMBEDDINGS")
        .map_or_else(|| models().join("all-MiniLM-L6-v2"), PathBuf::from);
    assert!(
        path.is_dir(),
        "{} is not there: fetch it with `cargo run --release -- model pull minilm`, or name a copy in \
         JACKFIELD_TEST_EMBEDDINGS",
        path.display()
    );
    path
}

/// Where `jackfield model pull` keeps models.
fn models() -> PathBuf {
    let set = env::var_os("XDG_CACHE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let cache = set.unwrap_or_else(|| env::home_dir().unwrap_or_default().join(".cache"));
    cache.join("jackfield/models")
}

/// The text of a reference.
pub(crate) fn read(file: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("golden").join(file);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A reference of JSON lines: the header and the cases.
pub(crate) fn lines(file: &str) -> (Value, Vec<Value>) {
    let text = read(file);
    let mut lines = text.lines().map(|line| serde_json::from_str(line).expect("each line is JSON"));
    let header = lines.next().expect("the first line is the header");
    (header, lines.collect())
}

/// Counts comparisons and remembers those that failed.
#[derive(Default)]
pub(crate) struct Differences {
    pub(crate) compared: usize,
    pub(crate) label: String,
    found: Vec<String>,
}

impl Differences {
    /// Remembers a text whose tokens are not the reference's.
    pub(crate) fn compare(&mut self, text: &str, tokenizer: &Tokenizer, wanted: &[u32]) {
        self.compared += 1;
        let ours = tokenizer.encode(text).unwrap_or_else(|error| panic!("{text:?}: {error}"));
        if ours != wanted {
            self.found.push(format!("{} {text:?}: ours {ours:?}, llama.cpp {wanted:?}", self.label));
        }
    }

    /// Fails with the first differences.
    pub(crate) fn none(&self) {
        let shown = self.found.iter().take(30).map(String::as_str).collect::<Vec<_>>().join("\n");
        assert!(self.found.is_empty(), "{} of {} differ:\n{shown}", self.found.len(), self.compared);
    }
}

/// A metadata value.
#[derive(Clone)]
pub(crate) enum Meta {
    Text(String),
    Integer(u32),
    Float(f32),
    Boolean(bool),
    Texts(Vec<String>),
    Floats(Vec<f32>),
    Integers(Vec<i32>),
}

/// A GGUF file in the making. Shapes are innermost first.
pub(crate) struct GgufFile {
    meta: Vec<(String, Meta)>,
    tensors: Vec<(String, Vec<u64>, u32, Vec<u8>)>,
}

impl GgufFile {
    pub(crate) fn new(architecture: &str) -> Self {
        let meta = vec![("general.architecture".to_owned(), Meta::Text(architecture.to_owned()))];
        Self { meta, tensors: Vec::new() }
    }

    pub(crate) fn meta(mut self, key: &str, value: Meta) -> Self {
        self.meta.push((key.to_owned(), value));
        self
    }

    pub(crate) fn tensor(&mut self, name: &str, shape: &[usize], ggml_type: u32, data: Vec<u8>) {
        self.tensors.push((name.to_owned(), shape.iter().map(|&it| it as u64).collect(), ggml_type, data));
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut out = b"GGUF".to_vec();
        out.extend(3_u32.to_le_bytes());
        out.extend((self.tensors.len() as u64).to_le_bytes());
        out.extend((self.meta.len() as u64).to_le_bytes());
        for (key, value) in &self.meta {
            put_text(&mut out, key);
            put_value(&mut out, value);
        }
        let mut offset = 0_u64;
        for (name, shape, ggml_type, data) in &self.tensors {
            put_text(&mut out, name);
            out.extend((shape.len() as u32).to_le_bytes());
            shape.iter().for_each(|it| out.extend(it.to_le_bytes()));
            out.extend(ggml_type.to_le_bytes());
            out.extend(offset.to_le_bytes());
            offset += data.len().next_multiple_of(32) as u64;
        }
        for (_, _, _, data) in &self.tensors {
            out.resize(out.len().next_multiple_of(32), 0);
            out.extend(data);
        }
        out.resize(out.len().next_multiple_of(32), 0);
        out
    }
}

fn put_text(out: &mut Vec<u8>, text: &str) {
    out.extend((text.len() as u64).to_le_bytes());
    out.extend(text.as_bytes());
}

/// The number of a value's type comes first, as in the GGUF specification.
fn put_value(out: &mut Vec<u8>, value: &Meta) {
    let kind = |out: &mut Vec<u8>, id: u32| out.extend(id.to_le_bytes());
    let list = |out: &mut Vec<u8>, id: u32, len: usize| {
        out.extend(9_u32.to_le_bytes());
        out.extend(id.to_le_bytes());
        out.extend((len as u64).to_le_bytes());
    };
    match value {
        Meta::Integer(it) => {
            kind(out, 4);
            out.extend(it.to_le_bytes());
        }
        Meta::Float(it) => {
            kind(out, 6);
            out.extend(it.to_le_bytes());
        }
        Meta::Boolean(it) => {
            kind(out, 7);
            out.push(u8::from(*it));
        }
        Meta::Text(it) => {
            kind(out, 8);
            put_text(out, it);
        }
        Meta::Integers(all) => {
            list(out, 5, all.len());
            all.iter().for_each(|it| out.extend(it.to_le_bytes()));
        }
        Meta::Floats(all) => {
            list(out, 6, all.len());
            all.iter().for_each(|it| out.extend(it.to_le_bytes()));
        }
        Meta::Texts(all) => {
            list(out, 8, all.len());
            all.iter().for_each(|it| put_text(out, it));
        }
    }
}
