//! Tokenisers against llama.cpp: see golden/README.md.

#[path = "golden/support.rs"]
#[allow(dead_code, reason = "each test binary uses its part")]
mod support;

use std::collections::BTreeSet;

use jackfield_model::{Gguf, Tokenizer, TokenizerError};
use serde::Deserialize;
use serde_json::Value;
use support::{Differences, GgufFile, Meta};

/// What a tokeniser of the GPT-2 family must know by name. Others may be refused, never guessed.
const MUST: &[&str] = &[
    "default",
    "gpt-2",
    "smollm",
    "llama-bpe",
    "qwen2",
    "tekken",
    "deepseek-llm",
    "deepseek-coder",
    "deepseek-r1-qwen",
    "starcoder",
    "refact",
    "command-r",
    "falcon",
    "olmo",
    "stablelm2",
];

#[test]
fn the_default_model_makes_the_tokens_of_llama_cpp() {
    let (header, cases) = support::lines("tokens.jsonl");
    let gguf = Gguf::open(&support::model_file()).expect("the model file is whole");
    assert_eq!(header["file_sha256"], support::MODEL_SHA256);
    let tokenizer = Tokenizer::from_gguf(&gguf).expect("its tokenizer is known");

    let mut differences = Differences::default();
    for case in &cases {
        let (text, ids): (String, Vec<u32>) =
            serde_json::from_value(case.clone()).expect("a line is [text, ids]");
        differences.compare(&text, &tokenizer, &ids);
    }
    assert_eq!(differences.compared, 1000);
    differences.none();
}

#[test]
fn byte_level_bpe_splits_as_each_pre_tokeniser_says() {
    let (header, cases) = support::lines("bpe.jsonl");
    let vocab: Bpe = serde_json::from_value(header).expect("the first line holds the vocabulary");
    let must: BTreeSet<&str> = MUST.iter().copied().collect();
    assert!(must.iter().all(|name| vocab.variants.iter().any(|it| it == name)));

    let mut differences = Differences::default();
    for (variant, pre) in vocab.variants.iter().enumerate() {
        let gguf = Gguf::from_bytes(vocab.file(pre)).expect("the file is well formed");
        match Tokenizer::from_gguf(&gguf) {
            Ok(tokenizer) => hold(&mut differences, pre, &tokenizer, &cases, variant),
            Err(TokenizerError::PreTokeniser { .. }) if !must.contains(pre.as_str()) => {}
            Err(error) => panic!("{pre}: {error}"),
        }
    }
    assert!(differences.compared >= must.len() * 300);
    differences.none();
}

#[test]
fn sentencepiece_merges_by_score_and_falls_back_to_bytes() {
    let (header, cases) = support::lines("spm.jsonl");
    let vocab: SentencePiece = serde_json::from_value(header).expect("the first line holds the vocabulary");

    let mut differences = Differences::default();
    for (variant, options) in vocab.variants.iter().enumerate() {
        let gguf = Gguf::from_bytes(vocab.file(options)).expect("the file is well formed");
        let tokenizer = Tokenizer::from_gguf(&gguf).expect("the tokenizer is known");
        hold(&mut differences, &format!("{options:?}"), &tokenizer, &cases, variant);
    }
    assert_eq!(differences.compared, 600);
    differences.none();
}

/// Compares all lines of one variant. A line is `[text, [[variants], [ids]], ...]`.
fn hold(differences: &mut Differences, label: &str, tokenizer: &Tokenizer, cases: &[Value], variant: usize) {
    differences.label = label.to_owned();
    for case in cases {
        let parts = case.as_array().expect("a line is a list");
        let text = parts[0].as_str().expect("a line begins with its text");
        let ids = parts[1..].iter().find_map(|group| {
            let (variants, ids): (Vec<usize>, Vec<u32>) = serde_json::from_value(group.clone()).ok()?;
            variants.contains(&variant).then_some(ids)
        });
        differences.compare(text, tokenizer, &ids.expect("each variant is in one group"));
    }
}

#[derive(Deserialize)]
struct Bpe {
    variants: Vec<String>,
    tokens: Vec<String>,
    merges: Vec<String>,
    types: Vec<i32>,
}

impl Bpe {
    fn file(&self, pre: &str) -> Vec<u8> {
        let id =
            |token: &str| self.tokens.iter().position(|it| it == token).expect("the token is there") as u32;
        GgufFile::new("llama")
            .meta("tokenizer.ggml.model", Meta::Text("gpt2".into()))
            .meta("tokenizer.ggml.pre", Meta::Text(pre.into()))
            .meta("tokenizer.ggml.tokens", Meta::Texts(self.tokens.clone()))
            .meta("tokenizer.ggml.merges", Meta::Texts(self.merges.clone()))
            .meta("tokenizer.ggml.token_type", Meta::Integers(self.types.clone()))
            .meta("tokenizer.ggml.bos_token_id", Meta::Integer(id("<|im_start|>")))
            .meta("tokenizer.ggml.eos_token_id", Meta::Integer(id("<|im_end|>")))
            .meta("tokenizer.ggml.add_bos_token", Meta::Boolean(false))
            .bytes()
    }
}

#[derive(Deserialize)]
struct SentencePiece {
    variants: Vec<SentencePieceOptions>,
    tokens: Vec<String>,
    scores: Vec<f32>,
    types: Vec<i32>,
}

#[derive(Deserialize, Debug)]
struct SentencePieceOptions {
    add_space_prefix: bool,
    add_bos_token: bool,
}

impl SentencePiece {
    fn file(&self, options: &SentencePieceOptions) -> Vec<u8> {
        GgufFile::new("llama")
            .meta("tokenizer.ggml.model", Meta::Text("llama".into()))
            .meta("tokenizer.ggml.tokens", Meta::Texts(self.tokens.clone()))
            .meta("tokenizer.ggml.scores", Meta::Floats(self.scores.clone()))
            .meta("tokenizer.ggml.token_type", Meta::Integers(self.types.clone()))
            .meta("tokenizer.ggml.bos_token_id", Meta::Integer(1))
            .meta("tokenizer.ggml.eos_token_id", Meta::Integer(2))
            .meta("tokenizer.ggml.unknown_token_id", Meta::Integer(0))
            .meta("tokenizer.ggml.add_space_prefix", Meta::Boolean(options.add_space_prefix))
            .meta("tokenizer.ggml.add_bos_token", Meta::Boolean(options.add_bos_token))
            .bytes()
    }
}
