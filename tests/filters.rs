//! What an output filter holds back: secrets cut at every place, on every way out of the host.

use std::fs;
use std::path::PathBuf;

use jackfield_testkit::admin::{configure, mask_text, patient_policies, put_guest};
use jackfield_testkit::answer::{Answer, CHAT, RAW, chat, raw, streamed, twin, whole, with};
use jackfield_testkit::guest::Guest;
use jackfield_testkit::host::{HostOptions, RunningHost};
use jackfield_testkit::reciter::Reciter;
use serde_json::{Value, json};
use tempfile::TempDir;

/// A host that recites, with the shipped filter or none.
fn reciting(reciter: &Reciter, policies: &[&str]) -> (RunningHost, TempDir) {
    let folder = tempfile::tempdir().expect("a folder");
    let model = folder.path().join("model.gguf");
    fs::write(&model, reciter.bytes()).expect("a model");
    let built: PathBuf = folder.path().join("policies");
    patient_policies(policies, &built);
    let config = "[engine]\nkv_mib = 8\n".to_owned();
    let policies = (!policies.is_empty()).then_some(built);
    (RunningHost::start(&HostOptions { model, config, policies, ..HostOptions::default() }), folder)
}

/// Chat and raw completions that are both answered by the recitation.
fn ways(extra: &Value) -> [(&'static str, Value); 2] {
    [
        (CHAT, chat("go on", extra.clone())),
        (RAW, raw("go on\n", with(json!({"max_tokens": 400}), extra.clone()))),
    ]
}

/// A pattern for exactly this text.
fn exactly(text: &str) -> String {
    text.chars().map(|c| format!("\\x{{{:x}}}", u32::from(c))).collect()
}

/// Whether the tokens of `logprobs` are those of `text` without any that touch `secret`, which is in it once.
fn tokens_leave_out(answer: &Answer, text: &str, secret: &str) -> bool {
    let shown = shown_bytes(answer);
    let start = text.find(secret).expect("it is there");
    let cut = |at: usize| {
        let (before, after) = shown.split_at(at);
        text.as_bytes().starts_with(before)
            && text.as_bytes()[start + secret.len()..].ends_with(after)
            && before.len() + after.len() < text.len()
    };
    (0..=start.min(shown.len())).any(cut)
}

/// The bytes of the tokens of which an answer tells the probability.
fn shown_bytes(answer: &Answer) -> Vec<u8> {
    let entries =
        answer.choices[0].logprobs.iter().flat_map(|entry| entry["bytes"].as_array().expect("bytes"));
    entries.map(|byte| byte.as_u64().expect("a byte") as u8).collect()
}

#[test]
fn a_secret_at_any_place_leaves_on_no_way() {
    let text = "abc龘defg你好hij 👩‍👩‍👧 klm nopq中rst uvw文xyz!";
    let reciter = Reciter::of(text);
    let (host, _folder) = reciting(&reciter, &[]);
    assert_eq!(whole(&host.api, CHAT, &chat("go on", json!({}))).text(), text);
    let places: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
    for window in places.windows(7) {
        let secret = &text[window[0]..window[6]];
        put_guest(&host.admin, "mask", &Guest::masking(&exactly(secret), "[x]"));
        let expected = text.replacen(secret, "[x]", 1);
        for (path, body) in ways(&json!({"n": 2})) {
            let answer = twin(&host.api, path, &body).answer;
            for choice in &answer.choices {
                assert_eq!(
                    (choice.text.as_str(), choice.finish.as_str()),
                    (expected.as_str(), "stop"),
                    "{secret:?}"
                );
            }
        }
        let body = chat("go on", json!({"logprobs": true, "top_logprobs": 2}));
        let answer = twin(&host.api, CHAT, &body).answer;
        assert_eq!(answer.text(), expected);
        assert!(tokens_leave_out(&answer, text, secret), "{secret:?}: {:?}", answer.choices[0].logprobs);
    }
}

#[test]
fn what_is_left_at_the_end_is_looked_at_however_the_end_came() {
    let text = "the key is SECRET-0123, and nothing else";
    let secret = "SECRET-0123";
    let reciter = Reciter::of(text);
    let (host, _folder) = reciting(&reciter, &["mask-secrets"]);
    for tokens in 1..reciter.pieces.len() {
        let said = String::from_utf8(reciter.said(tokens)).expect("ASCII");
        let body = chat("go on", json!({"max_tokens": tokens}));
        let answer = twin(&host.api, CHAT, &body).answer;
        assert_eq!(
            (answer.text(), answer.finish()),
            (said.replace(secret, "[secret]").as_str(), "length"),
            "{tokens}"
        );
    }
    for stop in [", and", "3,", "ET-0", "S", "SECRET-0123,"] {
        let said = &text[..text.find(stop).expect("it is said")];
        let answer = twin(&host.api, CHAT, &chat("go on", json!({"stop": stop}))).answer;
        assert_eq!(
            (answer.text(), answer.finish()),
            (said.replace(secret, "[secret]").as_str(), "stop"),
            "{stop:?}"
        );
    }
}

#[test]
fn the_shipped_filter_masks_what_it_promises_on_every_way() {
    let text = "卡号４１１１ 1111-1111 1111，手机138-0013-8000；写信到li.lei@example.com, 身份证11010519491231002X. \
                SECRET-0000 sk-ABCDEFGHIJKLMNOPQRSTUVWX and 12 plain words.";
    let expected = "卡号[card]，手机[phone]；写信到[email], 身份证[id]. [secret] [key] and 12 plain words.";
    let (host, _folder) = reciting(&Reciter::of(text), &["mask-secrets"]);
    for (path, body) in ways(&json!({"n": 3})) {
        let twin = twin(&host.api, path, &body);
        for choice in &twin.answer.choices {
            assert_eq!((choice.text.as_str(), choice.finish.as_str()), (expected, "stop"), "{path}");
        }
        assert!(twin.deltas.len() > 3, "not one lump a choice: {:?}", twin.deltas);
    }
    let shown = whole(&host.api, CHAT, &chat("go on", json!({"logprobs": true})));
    let tokens = String::from_utf8_lossy(&shown_bytes(&shown)).into_owned();
    for part in ["11", "00", "li.", "@", "SEC", "KL"] {
        assert!(!tokens.contains(part), "{part} is in {tokens}");
    }
    assert!(tokens.contains("plain words"), "what is no secret is there: {tokens}");
}

#[test]
fn a_pattern_on_which_backtracking_never_ends_is_matched_and_no_more() {
    // Forty letters are cut in two to the power of some twenty-eight ways before such a matcher gives up.
    let text = format!("{}b and more", "a".repeat(40));
    let (host, _folder) = reciting(&Reciter::of(&text), &[]);
    for (regex, expected) in [
        ("(a|aa)+$", text.as_str()),
        ("(a|aa)+c", &text),
        ("(a*)*(a*)*c", &text),
        ("(a|aa)+b", "[x] and more"),
        ("(a|aa)+b and more$", "[x]"),
    ] {
        put_guest(&host.admin, "mask", &Guest::masking(regex, "[x]"));
        for (path, body) in ways(&json!({})) {
            let answer = twin(&host.api, path, &body).answer;
            assert_eq!((answer.text(), answer.finish()), (expected, "stop"), "{regex}");
        }
    }
    assert_eq!(host.metric("jackfield_policy_faults_total", ""), 0.0);
}

#[test]
fn a_rule_that_is_changed_is_obeyed_by_the_next_answer() {
    let text = "one two three four";
    let (host, _folder) = reciting(&Reciter::of(text), &["mask-secrets"]);
    for (word, mask) in [("two", "2"), ("three fo", ""), ("one two three four", "all"), ("four", "<四>")] {
        configure(&host.admin, "mask-secrets", &mask_text(word, mask));
        let answer = streamed(&host.api, CHAT, &chat("go on", json!({}))).answer;
        assert_eq!(answer.text(), text.replace(word, mask));
    }
    let wrong = json!({"pattern": [{"name": "broken", "regex": "a("}]}).to_string().into_bytes();
    let reply = host.admin.send("PATCH", "/admin/policies/mask-secrets/config", "application/json", wrong);
    assert_eq!((reply.status, &reply.json()["error"]["param"]), (422, &json!("config")), "{}", reply.text());
    assert_eq!(
        whole(&host.api, CHAT, &chat("go on", json!({}))).text(),
        "one two three <四>",
        "the old one is in force"
    );
}
