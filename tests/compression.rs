//! What the host takes of what compressors propose: never at the price of a cached prefix, and, where that is asked for, only
//! what leaves the model's next word as it was.

use jackfield_testkit::admin::{patient_policies, put_guest};
use jackfield_testkit::answer::{CHAT, RAW};
use jackfield_testkit::generate::default_model;
use jackfield_testkit::guest::{Guest, World};
use jackfield_testkit::host::{HostOptions, RunningHost};
use serde_json::{Value, json};
use tempfile::TempDir;

fn host(server: &str) -> (RunningHost, TempDir) {
    let folder = tempfile::tempdir().expect("a folder");
    patient_policies(&["compress-courtesy"], folder.path());
    let config = format!("[engine]\nkv_mib = 128\n[server]\ncompress_to = 0.5\n{server}\n");
    let policies = Some(folder.path().to_owned());
    (
        RunningHost::start(&HostOptions {
            model: default_model(),
            config,
            policies,
            ..HostOptions::default()
        }),
        folder,
    )
}

/// A dialog with more courtesy than content.
fn courteous() -> Value {
    let polite = "Hello there! Good morning! I hope you are doing well today. Thank you so much for your help, I really \
                  appreciate it! ";
    let first = format!(
        "{polite}Could you please tell me, if you don't mind, what the capital of France is? {polite}"
    );
    json!([
        {"role": "user", "content": first},
        {"role": "assistant", "content": "The capital of France is Paris."},
        {"role": "user", "content": "And of Italy?"},
    ])
}

fn turn() -> Value {
    json!({"model": "default", "messages": courteous(), "max_tokens": 8, "temperature": 0})
}

/// A turn's usage, and what the trace says of it.
fn taken(host: &RunningHost) -> (Value, String) {
    let reply = host.api.with_header("x-jackfield-trace", "1").post(CHAT, &turn());
    let trace = reply.header("x-jackfield-trace").expect("a trace").to_owned();
    (reply.json()["usage"].clone(), trace)
}

fn whole_prompt(host: &RunningHost) -> Value {
    let reply = host.api.post("/tokenize", &json!({"model": "default", "messages": courteous()}));
    reply.json()["tokens"].clone()
}

/// A host whose only compressor drops the beginning of the first message, whatever is cached.
fn careless() -> RunningHost {
    let host = RunningHost::start(&HostOptions {
        model: default_model(),
        config: "[engine]\nkv_mib = 128\n[server]\ncompress_to = 0.5\n".into(),
        ..HostOptions::default()
    });
    let mut guest = Guest::new(World::Compressor);
    guest.work = guest.edits(&[(0, 0, 30)]);
    put_guest(&host.admin, "careless", &guest);
    host
}

#[test]
fn what_breaks_a_cached_prefix_is_not_taken() {
    let host = careless();
    let tokens = whole_prompt(&host);
    let whole = tokens.as_array().expect("tokens").len() as u64;
    let (usage, trace) = taken(&host);
    assert!(usage["prompt_tokens"].as_u64() < Some(whole), "nothing is cached yet: {trace}");

    let host = careless();
    // Raw tokens meet no compressor, and leave the same blocks as the dialog would.
    let raw = host.api.post(RAW, &json!({"model": "default", "prompt": tokens, "max_tokens": 1}));
    assert_eq!(raw.status, 200, "{}", raw.text());
    let (usage, trace) = taken(&host);
    assert_eq!(usage["prompt_tokens"].as_u64(), Some(whole), "{trace}");
    assert!(trace.contains("original kept, of which only"), "{trace}");
}

#[test]
fn a_compressed_prompt_is_taken_when_the_model_would_go_on_alike() {
    let (host, _folder) = host("verify_share = 1.0\nverify_divergence = 1000.0");
    let (usage, trace) = taken(&host);
    assert!(trace.contains("diverges by") && trace.contains(": taken"), "{trace}");
    let whole = whole_prompt(&host).as_array().map(Vec::len).expect("tokens") as u64;
    assert!(usage["prompt_tokens"].as_u64() < Some(whole), "{usage}");
    assert_eq!(host.metric("jackfield_compression_verified_total", "outcome=\"taken\""), 1.0);
    let cost = host.metric("jackfield_compression_verify_tokens_total", "");
    assert!(cost > 0.0 && cost < whole as f64, "the original, but for its beginning: {cost} of {whole}");
}

#[test]
fn and_the_original_when_it_would_not() {
    let (host, _folder) = host("verify_share = 1.0\nverify_divergence = 0.0");
    let (usage, trace) = taken(&host);
    assert!(trace.contains("diverges by") && trace.contains(": not taken"), "{trace}");
    let whole = whole_prompt(&host).as_array().map(|tokens| tokens.len() as u64);
    assert_eq!(usage["prompt_tokens"].as_u64(), whole);
    assert_eq!(host.metric("jackfield_compression_verified_total", "outcome=\"diverged\""), 1.0);
    let cost = host.metric("jackfield_compression_verify_tokens_total", "");
    let needed = whole.expect("tokens") as f64;
    assert!(cost > 0.0 && cost < needed, "the compressed prompt, not the original, which is used: {cost}");
}

#[test]
fn what_would_begin_with_a_part_of_a_character_is_compared_too() {
    let (host, _folder) = host("verify_share = 1.0\nverify_divergence = 1000.0");
    // Chinese characters are two or three tokens of this model, of which the first is what would come next.
    let polite = "你好！早上好！非常感谢您的帮助，辛苦了！";
    let messages = json!([
        {"role": "user", "content": format!("{polite}请问一下，法国的首都是哪里？{polite}")},
        {"role": "assistant", "content": "法国的首都是巴黎。"},
        {"role": "user", "content": "那意大利的首都呢？请用中文回答。"},
        {"role": "assistant", "content": "意大利的首都是罗马。"},
        {"role": "user", "content": "西班牙的首都呢？"},
    ]);
    let body = json!({"model": "default", "messages": messages, "max_tokens": 8, "temperature": 0});
    let reply = host.api.with_header("x-jackfield-trace", "1").post(CHAT, &body);
    let trace = reply.header("x-jackfield-trace").expect("a trace").to_owned();
    assert!(trace.contains("diverges by") && trace.contains(": taken"), "{trace}");
}
