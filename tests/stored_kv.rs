//! Keys and values that were stored: of which model, whose, and how near an answer over them is to one without.

use std::fs;
use std::path::{Path, PathBuf};

use jackfield_testkit::answer::{CHAT, chat, with};
use jackfield_testkit::generate::default_model;
use jackfield_testkit::host::{HostOptions, RunningHost, tiny_model_file};
use jackfield_testkit::http::Client;
use jackfield_testkit::tiny_model::TinyModel;
use serde_json::{Value, json};
use tempfile::TempDir;

/// Of two tokens whose logits are closer than this either may be the likelier one, as in golden/README.md.
const NEAR: f64 = 0.8;
/// Tokens that all prompts of a tenant may have in common: two blocks.
const TEMPLATE: u64 = 33;

fn turn(session: &str, text: &str) -> Value {
    chat(text, json!({"session": session, "max_tokens": 8, "temperature": 0}))
}

/// Tokens of a prompt that were not computed, and the answer.
fn reused(api: &Client, body: &Value) -> (u64, String) {
    let answer = api.post(CHAT, body).json();
    let cached = answer["usage"]["prompt_tokens_details"]["cached_tokens"].as_u64();
    let text = answer["choices"][0]["message"]["content"].as_str();
    (cached.unwrap_or_else(|| panic!("{answer}")), text.expect("a text").to_owned())
}

/// What a session remembers, as messages for a request.
fn dialog(api: &Client, session: &str) -> Vec<Value> {
    let shown = api.get(&format!("/v1/sessions/{session}")).json();
    let messages = shown["messages"].as_array().unwrap_or_else(|| panic!("{shown}"));
    messages.iter().map(|message| json!({"role": message["role"], "content": message["content"]})).collect()
}

/// A request that has nothing to do with a session.
fn without_session(messages: &[Value]) -> Value {
    with(turn("", ""), json!({"session": null, "messages": messages}))
}

/// Two models that have nothing in common but the name of their file.
fn namesakes() -> (TempDir, [PathBuf; 2]) {
    let folder = tempfile::tempdir().expect("a folder");
    let files = [1, 2].map(|seed| {
        let path = folder.path().join(seed.to_string()).join("model.gguf");
        fs::create_dir(path.parent().expect("a folder")).expect("a folder");
        fs::write(&path, TinyModel { seed, ..TinyModel::default() }.bytes()).expect("a model");
        path
    });
    (folder, files)
}

#[test]
fn a_session_that_goes_on_with_another_model_finds_nothing_of_the_first() {
    let state = tempfile::tempdir().expect("a folder");
    let (_folder, [first, second]) = namesakes();
    let start = |model: &Path, state: Option<&Path>| {
        RunningHost::start(&HostOptions {
            model: model.to_owned(),
            state: state.map(Path::to_owned),
            config: "[engine]\nkv_store = 'same'".into(),
            ..HostOptions::default()
        })
    };
    let text = "the quick brown fox jumps over the lazy dog ".repeat(3);
    let mut before = Vec::new();
    for (model, finds) in [(&first, false), (&second, false), (&first, true)] {
        let mut host = start(model, Some(state.path()));
        let messages = [&before[..], &[json!({"role": "user", "content": text})]].concat();
        let (held, answer) = reused(&host.api, &turn("s", &text));
        let cold = start(model, None);
        assert_eq!(reused(&cold.api, &without_session(&messages)), (0, answer), "{}", model.display());
        assert_eq!(held > 100, finds, "{held} tokens, {}", model.display());
        before = dialog(&host.api, "s");
        host.terminate();
        assert!(host.wait().success(), "{}", host.log());
    }
    assert_eq!(before.len(), 6);
}

#[test]
fn nothing_in_a_request_opens_what_is_another_tenants() {
    let host = RunningHost::start(&HostOptions {
        model: tiny_model_file(),
        config: "[[keys]]\nkey = 'sk-key-of-a'\ntenant = 'a'\n[[keys]]\nkey = 'sk-key-of-b'\ntenant = 'b'"
            .into(),
        ..HostOptions::default()
    });
    let (a, b) = (host.api.with_key("sk-key-of-a"), host.api.with_key("sk-key-of-b"));
    let fields =
        ["tenant", "user", "salt", "cache_salt", "prompt_cache_key", "organization", "safety_identifier"];
    for field in fields {
        let secret = chat(&format!("{field} that is nobody else's ").repeat(8), json!({"max_tokens": 1}));
        assert!(reused(&a, &secret).0 < TEMPLATE);
        let reply = b.post(CHAT, &with(secret, json!({field: "a"})));
        let cached = reply.json()["usage"]["prompt_tokens_details"]["cached_tokens"].as_u64();
        assert!(
            reply.status == 400 || cached.is_some_and(|cached| cached < TEMPLATE),
            "{field}: {}",
            reply.text()
        );
    }
    let headers = ["x-tenant", "x-jackfield-tenant", "openai-organization", "openai-project"];
    let other = chat(&"another long text that is nobody else's ".repeat(8), json!({"max_tokens": 1}));
    assert!(reused(&a, &other).0 < TEMPLATE);
    let pretends = headers.iter().fold(b, |client, header| client.with_header(header, "a"));
    assert!(reused(&pretends, &other).0 < TEMPLATE);
    assert!(reused(&a, &other).0 > 100, "its own is found");
}

/// Tokens of an answer with their likeliest alternatives.
fn steps(answer: &Value) -> Vec<Value> {
    let content = answer["choices"][0]["logprobs"]["content"].as_array();
    content.unwrap_or_else(|| panic!("{answer}")).clone()
}

#[test]
fn over_blocks_in_eight_bits_only_near_ties_fall_otherwise() {
    let start = |config: &str| {
        RunningHost::start(&HostOptions {
            model: default_model(),
            config: config.into(),
            ..HostOptions::default()
        })
    };
    // About 360 tokens: each dialog pushes the others out.
    let (host, cold) =
        (start("[engine]\nkv_mib = 8"), start("[engine]\nprefix_cache = false\nkv_memory_mib = 0"));
    let topics = ["rivers of Europe", "bread and how it is baked", "the planets", "old ships"];
    let extra = json!({"max_tokens": 24, "logprobs": true, "top_logprobs": 5});
    let (mut compared, mut parted) = (0, 0);
    for ask in [
        "Tell me about {}, please. Begin with what matters most.",
        "Go on about {}.",
        "Why is that so, of {}?",
    ] {
        for (number, topic) in topics.iter().enumerate() {
            let (session, text) = (format!("s{number}"), ask.replace("{}", topic));
            let before = match host.api.get(&format!("/v1/sessions/{session}")).status {
                200 => dialog(&host.api, &session),
                _ => Vec::new(),
            };
            let warm = host.api.post(CHAT, &with(turn(&session, &text), extra.clone())).json();
            let messages = [&before[..], &[json!({"role": "user", "content": text})]].concat();
            let exact = cold.api.post(CHAT, &with(without_session(&messages), extra.clone())).json();
            for (warm, exact) in steps(&warm).iter().zip(&steps(&exact)) {
                compared += 1;
                if warm["token"] == exact["token"] {
                    continue;
                }
                let likely = exact["top_logprobs"].as_array().expect("a list");
                let theirs = likely.iter().find(|other| other["token"] == warm["token"]);
                let gap = exact["logprob"].as_f64().zip(theirs.and_then(|other| other["logprob"].as_f64()));
                assert!(gap.is_some_and(|(best, other)| best - other <= NEAR), "{topic}: {warm} and {exact}");
                parted += 1;
                break;
            }
        }
    }
    println!("{compared} tokens compared, {parted} of 12 answers part at a near tie");
    assert!(compared > 100, "{compared}");
    let stored = host.metric("jackfield_kv_promoted_blocks_total", "");
    assert!(stored > 20.0, "only {stored} blocks came back");
}
