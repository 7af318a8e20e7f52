//! Writes the first files of the corpus: `seeds FOLDER` makes `FOLDER/gguf/*`.

use std::path::PathBuf;

use jackfield_tiny::gguf_writer::{GgufWriter, Quant};
use jackfield_tiny::tiny_model::{TinyModel, TinyTemplate, TinyTokenizer};

fn main() -> std::io::Result<()> {
    let folder = PathBuf::from(std::env::args_os().nth(1).unwrap_or_else(|| "corpus".into())).join("gguf");
    std::fs::create_dir_all(&folder)?;
    for (name, bytes) in files() {
        std::fs::write(folder.join(name), bytes)?;
    }
    Ok(())
}

fn files() -> Vec<(&'static str, Vec<u8>)> {
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
