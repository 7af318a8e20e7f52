//! Writes the first files of the corpus: `seeds FOLDER` makes `FOLDER/gguf/*` and `FOLDER/request/*`.

use std::path::Path;

use jackfield_tiny::gguf_writer::{GgufWriter, Quant};
use jackfield_tiny::tiny_model::{TinyModel, TinyTemplate, TinyTokenizer};

fn main() -> std::io::Result<()> {
    let folder = std::env::args_os().nth(1).unwrap_or_else(|| "corpus".into());
    let folder = Path::new(&folder);
    write(&folder.join("gguf"), models())?;
    write(&folder.join("request"), requests())
}

fn write(folder: &Path, files: Vec<(&'static str, Vec<u8>)>) -> std::io::Result<()> {
    std::fs::create_dir_all(folder)?;
    files.into_iter().try_for_each(|(name, bytes)| std::fs::write(folder.join(name), bytes))
}

/// Every field that the decoder knows is in one of them; the first byte picks the endpoint, as in the target.
fn requests() -> Vec<(&'static str, Vec<u8>)> {
    let chat = r#"{"model":"default","messages":[{"role":"developer","content":"a"},{"role":"user","content":[{"type":"text",
        "text":"b"}],"name":"n"},{"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"function","function":
        {"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"1","content":"c"}],"max_completion_tokens":5,
        "temperature":0.7,"top_p":0.9,"top_k":40,"min_p":0.05,"n":2,"seed":7,"stop":["x","y"],"stream":true,
        "stream_options":{"include_usage":true},"logprobs":true,"top_logprobs":3,"logit_bias":{"5":-100},"user":"u",
        "presence_penalty":0.5,"frequency_penalty":-0.5,"repetition_penalty":1.1,"metadata":{"k":"v"},"session":"s",
        "response_format":{"type":"text"},"tools":[],"ignore_eos":true}"#;
    let raw = r#"{"model":"default","prompt":"text","max_tokens":16,"logprobs":2,"echo":false,"best_of":1,"suffix":null,
        "stop":"z","n":1,"stream":false,"temperature":0,"seed":-1}"#;
    let of = |which: u8, body: &str| [&[which], body.as_bytes()].concat();
    vec![
        ("chat", of(0, chat)),
        ("completion", of(1, raw)),
        ("completion-tokens", of(1, r#"{"model":"default","prompt":[1,2,3]}"#)),
        ("tokenize", of(2, r#"{"prompt":"a","add_special_tokens":true,"return_token_strs":true}"#)),
        ("tokenize-messages", of(2, r#"{"messages":[{"role":"user","content":"a"}]}"#)),
        ("detokenize", of(3, r#"{"tokens":[1,2,49151]}"#)),
    ]
}

fn models() -> Vec<(&'static str, Vec<u8>)> {
    let mut small = GgufWriter::default();
    small.text("general.architecture", "llama").u32("general.alignment", 32).boolean("yes", true);
    small.texts("texts", &["a".into(), "b".into()]).floats("floats", &[1.0]).integers("integers", &[1]);
    small.tensor("a", &[32, 2], Quant::Q4_0, &[0.5; 64]).tensor("b", &[8], Quant::F32, &[1.0; 8]);
    let of = |architecture: &str, tokenizer, template| TinyModel {
        architecture: architecture.into(),
        tokenizer,
        template,
        ..TinyModel::default()
    };
    // Without weights, so that damage hits the metadata.
    let head = |model: TinyModel| {
        let mut writer = model.writer();
        writer.tensors.truncate(1);
        writer.build()
    };
    vec![
        ("small", small.build()),
        ("llama", of("llama", TinyTokenizer::Bpe, TinyTemplate::ChatMl).bytes()),
        ("qwen2", head(of("qwen2", TinyTokenizer::Bpe, TinyTemplate::None))),
        ("qwen3-spm", head(of("qwen3", TinyTokenizer::SentencePiece, TinyTemplate::None))),
    ]
}
