//! Vectors of texts against another implementation: see golden/README.md.

#[path = "golden/support.rs"]
#[allow(dead_code, reason = "each test binary uses its part")]
mod support;

use jackfield_model::{EmbedError, Embedder};
use serde::Deserialize;

/// Stored vectors are rounded to five places, and both sides add 32-bit floats in orders of their own.
const COSINE_TOLERANCE: f32 = 1e-5;
const PLACE_TOLERANCE: f32 = 2e-5;

#[derive(Deserialize)]
struct Reference {
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    name: String,
    text: String,
    vector: Vec<f32>,
}

#[test]
fn vectors_are_those_of_transformers() {
    let reference: Reference =
        serde_json::from_str(&support::read("embeddings.json")).expect("it has this shape");
    assert!(reference.cases.len() >= 10);
    let embedder = Embedder::load(&support::embeddings_folder()).expect("the model loads");
    for Case { name, text, vector } in &reference.cases {
        let ours = embedder.embed(text).expect("a vector");
        assert_eq!(ours.len(), vector.len());
        let cosine: f32 = ours.iter().zip(vector).map(|(a, b)| a * b).sum();
        let furthest = ours.iter().zip(vector).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        println!("{name:24} cosine {cosine:.7}, furthest {furthest:.1e}");
        assert!((cosine - 1.0).abs() <= COSINE_TOLERANCE, "{name}: {cosine}");
        assert!(furthest <= PLACE_TOLERANCE, "{name}: {furthest}");
    }
}

#[test]
fn a_text_of_words_that_the_vocabulary_lacks_is_not_known() {
    let embedder = Embedder::load(&support::embeddings_folder()).expect("the model loads");
    for known in ["a trip to Kyoto", "naïve café", "12,000 €", ""] {
        assert!(embedder.knows(known), "{known}");
    }
    for unknown in ["铁路通票划算吗？", "回到刚才的CSV问题"] {
        assert!(!embedder.knows(unknown), "{unknown}");
    }
    let again = Embedder::load(&support::embeddings_folder()).expect("the model loads");
    assert_eq!(embedder.fingerprint(), again.fingerprint());
    assert_ne!(embedder.fingerprint(), 0);
}

#[test]
fn a_text_has_a_bound() {
    let embedder = Embedder::load(&support::embeddings_folder()).expect("the model loads");
    assert!(embedder.embed(&"a ".repeat(8 << 10)).is_ok());
    let error = embedder.embed(&"a ".repeat((8 << 10) + 1)).expect_err("too long");
    assert!(matches!(error, EmbedError::TooLong { bytes: 16_386 }), "{error}");
}

#[test]
fn a_folder_without_a_model_is_named_by_what_it_lacks() {
    let folder = tempfile::tempdir().expect("a folder");
    let error = |folder: &std::path::Path| Embedder::load(folder).expect_err("no model").to_string();
    assert!(error(folder.path()).starts_with("config.json: "), "{}", error(folder.path()));
    for file in ["config.json", "tokenizer.json"] {
        std::fs::copy(support::embeddings_folder().join(file), folder.path().join(file)).expect("copied");
    }
    assert!(error(folder.path()).starts_with("model.safetensors: "));
    std::fs::write(folder.path().join("model.safetensors"), b"not tensors").expect("written");
    assert!(error(folder.path()).starts_with("model.safetensors: "));
}
