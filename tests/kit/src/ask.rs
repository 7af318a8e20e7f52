//! Requests whose answers are known, however long: a tiny model that may say one word only says it until it is stopped.

use serde_json::{Value, json};

use crate::answer::chat;
use crate::http::Client;

/// The word.
pub const WORD: &str = " the";

/// A greedy chat answered by so many times [`WORD`].
pub fn words(api: &Client, count: usize) -> Value {
    let found = api.post("/tokenize", &json!({"prompt": WORD})).json();
    let [id] = found["tokens"].as_array().expect("tokens").as_slice() else {
        panic!("one token, not {found}")
    };
    let only = json!({id.to_string(): 100});
    chat("hello", json!({"max_tokens": count, "ignore_eos": true, "logit_bias": only}))
}

/// The text of a first choice, as far as its chunks go.
pub fn text_of(chunks: &[Value]) -> String {
    chunks.iter().filter_map(|chunk| chunk["choices"][0]["delta"]["content"].as_str()).collect()
}

/// The reason with which a first choice finished; none when it did not.
pub fn finish_of(chunks: &[Value]) -> Option<&str> {
    chunks.iter().find_map(|chunk| chunk["choices"][0]["finish_reason"].as_str())
}
