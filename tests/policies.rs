//! The shipped policies around a real model: who answers, what is kept of a dialog, what a client is told.

use std::path::PathBuf;
use std::time::Duration;

use jackfield_testkit::admin::{accepted, configure, mask_text, patient_policies};
use jackfield_testkit::answer::{CHAT, chat, streamed, twin, whole, with};
use jackfield_testkit::generate::default_model;
use jackfield_testkit::host::{HostOptions, RunningHost, tiny_model_file};
use jackfield_testkit::http::Client;
use serde_json::{Value, json};
use tempfile::TempDir;

const ALL: [&str; 4] = ["compress-courtesy", "mask-secrets", "route-by-intent", "slots-orders"];

fn host(model: PathBuf, config: &str) -> (RunningHost, TempDir) {
    let folder = tempfile::tempdir().expect("a folder");
    patient_policies(&ALL, folder.path());
    let config = format!("{config}\n[engine]\nkv_mib = 128\n");
    let policies = Some(folder.path().to_owned());
    (RunningHost::start(&HostOptions { model, config, policies, ..HostOptions::default() }), folder)
}

fn says(api: &Client, session: &str, text: &str) -> String {
    whole(api, CHAT, &chat(text, json!({"session": session, "max_tokens": 4}))).text().to_owned()
}

#[test]
fn a_slot_machine_answers_by_itself_and_remembers_in_two_languages() {
    let (host, _folder) = host(default_model(), "");
    let dialogs = [
        [
            ("I want to cancel my order", "Which order shall I cancel? Please give me the order number."),
            ("AB-12345678", "Please confirm: shall I cancel order AB-12345678?"),
            ("no, wait", "All right, order AB-12345678 stays as it is."),
            ("cancel it after all", "Please confirm: shall I cancel order AB-12345678?"),
            ("Yes, go ahead", "Done: I have asked for order AB-12345678 to be cancelled."),
        ],
        [
            ("我要取消订单", "请提供要取消的订单号。"),
            ("12345678", "请确认：要取消订单 12345678 吗？"),
            ("不取消了", "好的，订单 12345678 保持不变。"),
            ("我要取消订单", "请确认：要取消订单 12345678 吗？"),
            ("是的，取消吧", "好的，订单 12345678 的取消申请已提交。"),
        ],
    ];
    let before = host.metric("jackfield_computed_tokens_total", "");
    for (index, turns) in dialogs.iter().enumerate() {
        for stream in [false, true] {
            for (text, expected) in turns {
                let body = chat(text, json!({"session": format!("dialog-{index}-{stream}")}));
                let answer = if stream {
                    streamed(&host.api, CHAT, &body).answer
                } else {
                    whole(&host.api, CHAT, &body)
                };
                assert_eq!((answer.text(), answer.finish()), (*expected, "stop"), "{text}");
                assert_eq!((answer.prompt_tokens, answer.completion_tokens), (0, 0), "the model did nothing");
            }
        }
    }
    assert_eq!(host.metric("jackfield_computed_tokens_total", ""), before, "and was not asked");
}

#[test]
fn a_turn_that_needs_the_model_gets_it_and_the_trace_says_who_decided_what() {
    let (host, _folder) = host(default_model(), "");
    let body = chat("Name three rivers of Europe.", json!({"max_tokens": 40}));
    let reply = host.api.with_header("x-jackfield-trace", "1").post(CHAT, &body);
    let answer = reply.json();
    assert!(answer["usage"]["completion_tokens"].as_u64() > Some(0), "{answer}");
    let trace: Value =
        serde_json::from_str(reply.header("x-jackfield-trace").expect("a trace")).expect("JSON");
    let shown = |name: &str| {
        let steps = trace["policies"].as_array().expect("steps");
        let found =
            steps.iter().find(|step| step["policy"].as_str().is_some_and(|policy| policy.starts_with(name)));
        found.unwrap_or_else(|| panic!("no {name} in {trace}")).clone()
    };
    let installed = host.admin.get("/admin/policies").json();
    assert_eq!(trace["generation"], installed["generation"]);
    for policy in installed["policies"].as_array().expect("policies") {
        let (name, version) =
            (policy["name"].as_str().expect("a name"), policy["version"].as_str().expect("a version"));
        // The prompt is short: no compressor is needed, and it may or may not be asked.
        if name != "compress-courtesy" {
            let step = shown(name);
            assert_eq!(
                (&step["policy"], &step["kind"]),
                (&json!(format!("{name}@{version}")), &policy["kind"])
            );
        }
    }
    assert!(shown("slots-orders")["did"].as_str().is_some_and(|did| did.contains("next model")), "{trace}");
    assert!(
        shown("route-by-intent")["did"].as_str().is_some_and(|did| did.starts_with("run on ")),
        "{trace}"
    );
    assert_eq!(host.api.post(CHAT, &body).header("x-jackfield-trace"), None, "only for who asks");
}

#[test]
fn every_call_of_a_policy_is_a_span_where_that_is_asked_for() {
    let folder = tempfile::tempdir().expect("a folder");
    patient_policies(&ALL, folder.path());
    let host = RunningHost::start(&HostOptions {
        model: tiny_model_file(),
        policies: Some(folder.path().to_owned()),
        log: Some("info,jackfield_policy=debug"),
        ..HostOptions::default()
    });
    says(&host.api, "dialog", "I want to cancel my order");
    let span_of_turn = |host: &RunningHost| {
        let log = host.log();
        let mut lines = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        // Recorded cases were calls too, and have no turn of a client.
        let is_of_turn = |line: &Value| {
            line["span"]["kind"] == "slot-extractor"
                && line["span"]["turn"].as_str().is_some_and(|turn| turn != "turn")
        };
        lines.find(is_of_turn)
    };
    // The log is read by another thread.
    host.eventually("the span", Duration::from_secs(30), |host| span_of_turn(host).is_some());
    let line = span_of_turn(&host).expect("as it was");
    let span = &line["span"];
    assert_eq!(
        (&span["name"], &span["policy"], &span["outcome"]),
        (&json!("policy"), &json!("slots-orders"), &json!("ok"))
    );
    assert!(span["version"].is_string() && line["fields"]["time.busy"].is_string(), "{line}");
}

#[test]
fn a_filter_that_finds_nothing_delays_nothing() {
    let (host, _folder) = host(default_model(), "");
    let body = chat("Write a long story about a brave little dog.", json!({"max_tokens": 150}));
    let mut early = host.api.stream(CHAT, &with(body.clone(), json!({"stream": true})));
    (0..4).for_each(|_| assert!(early.next_data().is_some()));
    assert_eq!(
        host.metric("jackfield_finished_answers_total", ""),
        0.0,
        "the first text came before the last"
    );
    drop(early);
    host.settle();
    let with_filter = streamed(&host.api, CHAT, &body);
    accepted(host.admin.delete("/admin/policies/mask-secrets"));
    let without = streamed(&host.api, CHAT, &body);
    assert_eq!(with_filter.answer, without.answer);
    let (on, off) = (with_filter.deltas.len(), without.deltas.len());
    assert!(on * 4 > off, "{on} deltas with the filter, {off} without");
}

#[test]
fn what_a_policy_answers_passes_the_filters_too() {
    let (host, _folder) = host(tiny_model_file(), "");
    configure(&host.admin, "mask-secrets", &mask_text("AB-12345678", "[order]"));
    let body = chat("cancel order AB-12345678", json!({"n": 2}));
    for choice in twin(&host.api, CHAT, &body).answer.choices {
        assert_eq!(choice.text, "Please confirm: shall I cancel order [order]?");
    }
}

#[test]
fn a_router_answers_refuses_and_bounds_by_its_rules() {
    let (host, _folder) = host(tiny_model_file(), "");
    let refusal =
        json!({"status": 451, "reason": {"zh": "这里不谈天气。", "en": "We do not speak of the weather."}});
    configure(
        &host.admin,
        "route-by-intent",
        &json!({"rule": [
            {"name": "no-weather", "when": {"any": ["weather", "天气"]}, "refuse": refusal},
            {"name": "greeting", "when": {"any": ["good day"]}, "answer": "Good day to you."},
            {"name": "short", "when": {"any": ["short"]}, "plan": {"max_tokens": 5}},
        ]}),
    );
    let before = host.metric("jackfield_computed_tokens_total", "");
    let words = [
        ("en", "How is the weather?", "We do not speak of the weather."),
        ("zh-CN", "今天天气怎么样？", "这里不谈天气。"),
    ];
    for (language, text, reason) in words {
        let api = host.api.with_header("accept-language", language);
        for stream in [false, true] {
            let reply = api.post(CHAT, &chat(text, json!({"stream": stream})));
            let error = reply.json()["error"].clone();
            assert_eq!((reply.status, error["message"].as_str()), (451, Some(reason)), "{error}");
            assert_eq!((&error["code"], &error["type"]), (&json!("policy_refused"), &json!("policy_error")));
        }
    }
    assert_eq!(twin(&host.api, CHAT, &chat("Good day, sir", json!({}))).answer.text(), "Good day to you.");
    assert_eq!(host.metric("jackfield_computed_tokens_total", ""), before, "the model was not asked");
    let short = whole(&host.api, CHAT, &chat("a short one", json!({"max_tokens": 50, "ignore_eos": true})));
    assert_eq!((short.completion_tokens, short.finish()), (5, "length"));
}

#[test]
fn tenants_share_no_session_and_sessions_share_no_slots() {
    let keys = "[[keys]]\nkey = 'sk-key-of-a'\ntenant = 'a'\n[[keys]]\nkey = 'sk-key-of-b'\ntenant = 'b'";
    let (host, _folder) = host(tiny_model_file(), keys);
    let (a, b) = (host.api.with_key("sk-key-of-a"), host.api.with_key("sk-key-of-b"));
    assert_eq!(
        says(&a, "s", "I want to cancel my order"),
        "Which order shall I cancel? Please give me the order number."
    );
    let what_for = "Order AB-12345678: shall I look it up, change it, cancel it, or get a colleague?";
    for (api, session) in [(&b, "s"), (&a, "t")] {
        assert_eq!(says(api, session, "order AB-12345678"), what_for, "nobody has asked for anything here");
    }
    assert_eq!(says(&a, "s", "AB-12345678"), "Please confirm: shall I cancel order AB-12345678?");
    let reply = host.api.post(CHAT, &chat("AB-12345678", json!({"session": "s"})));
    assert_eq!((reply.status, &reply.json()["error"]["code"]), (401, &json!("invalid_api_key")));
    let reply = a.post(CHAT, &chat("hello", json!({"session": "no/such id"})));
    assert_eq!((reply.status, &reply.json()["error"]["param"]), (400, &json!("session")));
}
