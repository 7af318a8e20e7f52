//! Text on its way out: whole characters, stop strings, lengths, reasons, usage, several choices.

use std::collections::HashSet;

use std::time::Duration;

use jackfield_testkit::admin::put_guest;
use jackfield_testkit::answer::{CHAT, RAW, chat, raw, streamed, twin, whole, with};
use jackfield_testkit::generate::default_model;
use jackfield_testkit::guest::{Guest, World};
use jackfield_testkit::host::{HostOptions, RunningHost};
use jackfield_testkit::reciter::Reciter;
use jackfield_testkit::tiny_model::TinyModel;
use serde_json::{Value, json};

/// A prompt after which a [`Reciter`] recites.
const PROMPT: &str = "go on\n";

fn recite(reciter: &Reciter) -> RunningHost {
    RunningHost::with_model(&reciter.bytes(), "")
}

/// The same question to both endpoints.
fn both(extra: Value) -> [(&'static str, Value); 2] {
    [(CHAT, chat(PROMPT, extra.clone())), (RAW, raw(PROMPT, with(json!({"max_tokens": 200}), extra)))]
}

/// Everything up to the last whole character.
fn whole_characters(bytes: &[u8]) -> &str {
    let end = std::str::from_utf8(bytes).map_or_else(|error| error.valid_up_to(), str::len);
    std::str::from_utf8(&bytes[..end]).expect("checked")
}

#[test]
fn characters_split_over_tokens_are_whole_wherever_the_answer_ends() {
    let text = "龘👩‍👩‍👧é".repeat(3);
    let reciter = Reciter::of(&text);
    let host = recite(&reciter);
    for most in 1..=20 {
        for (path, body) in both(json!({"max_tokens": most})) {
            let got = twin(&host.api, path, &body);
            assert_eq!(got.answer.text(), whole_characters(&reciter.said(most)), "{path} {most}");
            assert_eq!((got.answer.finish(), got.answer.completion_tokens), ("length", most as u64));
            assert!(got.deltas.iter().all(|(_, delta)| !delta.contains('\u{fffd}')), "{:?}", got.deltas);
        }
    }
    for (path, body) in both(json!({})) {
        let got = twin(&host.api, path, &body);
        assert_eq!((got.answer.text(), got.answer.finish()), (text.as_str(), "stop"));
        assert_eq!(
            got.answer.completion_tokens,
            reciter.pieces.len() as u64 + 1,
            "the token that ends it counts"
        );
    }
}

#[test]
fn bytes_that_are_no_text_are_marked_and_hold_nothing_back() {
    let pieces: [&[u8]; 8] = [b"ok ", b"\xff", b"\xe9\xbe", b"x", b"\xc3", b"(", b"\xf0\x9f", b" end"];
    let reciter = Reciter::of_pieces(pieces.map(<[u8]>::to_vec).to_vec());
    let host = recite(&reciter);
    let after = [
        "ok ",
        "ok \u{fffd}",
        "ok \u{fffd}",
        "ok \u{fffd}\u{fffd}x",
        "ok \u{fffd}\u{fffd}x",
        "ok \u{fffd}\u{fffd}x\u{fffd}(",
        "ok \u{fffd}\u{fffd}x\u{fffd}(",
        "ok \u{fffd}\u{fffd}x\u{fffd}(\u{fffd} end",
    ];
    for (most, expected) in (1..).zip(after) {
        for (path, body) in both(json!({"max_tokens": most})) {
            assert_eq!(twin(&host.api, path, &body).answer.text(), expected, "{path} {most}");
        }
    }
}

const FERRY: &str = "The ferry leaves at nine; the gate closes at ten. 龘é👩‍👩‍👧 Bring a coat.";

#[test]
fn nothing_of_a_stop_string_is_sent_wherever_it_lies() {
    let reciter = Reciter::of(FERRY);
    let host = recite(&reciter);
    assert!(reciter.pieces.iter().all(|piece| piece.len() < 5), "every stop below lies over several tokens");
    let chars: Vec<char> = FERRY.chars().collect();
    for start in 0..chars.len() - 5 {
        let stop: String = chars[start..].iter().take(5 + start % 4).collect();
        let expected = &FERRY[..FERRY.find(&stop).expect("it is a part")];
        let is_said = |tokens: &usize| whole_characters(&reciter.said(*tokens)).contains(&stop);
        let tokens = (1..=reciter.pieces.len()).find(is_said).expect("it is said");
        let (path, body) = both(json!({"stop": stop}))[start % 2].clone();
        let got = twin(&host.api, path, &body).answer;
        assert_eq!((got.text(), got.finish()), (expected, "stop"), "{stop:?}");
        assert_eq!(got.completion_tokens, tokens as u64, "{stop:?}");
    }
}

#[test]
fn what_only_begins_like_a_stop_string_is_sent_after_all() {
    let reciter = Reciter::of(FERRY);
    let host = recite(&reciter);
    let stops = json!(["coat.!", "ten. 龘é👩‍👩‍👦", "at nine; then"]);
    for (path, body) in both(json!({"stop": stops})) {
        let got = twin(&host.api, path, &body).answer;
        assert_eq!((got.text(), got.finish()), (FERRY, "stop"));
    }
    for most in 1..=reciter.pieces.len() {
        let got = twin(&host.api, CHAT, &chat(PROMPT, json!({"stop": stops, "max_tokens": most}))).answer;
        assert_eq!((got.text(), got.finish()), (whole_characters(&reciter.said(most)), "length"), "{most}");
    }
}

#[test]
fn of_several_stop_strings_the_first_to_be_complete_counts() {
    let host = recite(&Reciter::of(FERRY));
    let rows = [
        (json!(["closes", "ferry"]), "The "),
        (json!("nine"), "The ferry leaves at "),
        (json!(["leaves at", "at"]), "The ferry "),
        (json!(["T"]), ""),
        (json!(["👩‍👩", "👧"]), "The ferry leaves at nine; the gate closes at ten. 龘é"),
    ];
    for (stop, expected) in rows {
        for (path, body) in both(json!({"stop": stop})) {
            let got = twin(&host.api, path, &body).answer;
            assert_eq!((got.text(), got.finish()), (expected, "stop"), "{stop}");
        }
    }
}

#[test]
fn a_stop_token_or_an_end_at_once_gives_an_empty_answer() {
    let reciter = Reciter::of(FERRY);
    let host = recite(&reciter);
    let first =
        host.api.post("/tokenize", &json!({"prompt": "T", "add_special_tokens": false})).json()["tokens"][0]
            .clone();
    for extra in [
        json!({"logit_bias": {"2": 100}}),
        json!({"stop_token_ids": [first], "logit_bias": {first.to_string(): 100}}),
    ] {
        for (path, body) in both(extra) {
            let got = twin(&host.api, path, &body);
            assert_eq!(
                (got.answer.text(), got.answer.finish(), got.answer.completion_tokens),
                ("", "stop", 1)
            );
            assert!(got.deltas.is_empty());
        }
    }
}

#[test]
fn max_tokens_has_bounds() {
    let host = recite(&Reciter { again: true, ..Reciter::of(FERRY) });
    for value in [
        json!(0),
        json!(-1),
        json!(2_147_483_648u64),
        json!("5"),
        json!(1.5),
        json!(1e300),
        json!([5]),
        json!(true),
    ] {
        for (path, body) in both(json!({"max_tokens": value})) {
            let reply = host.api.post(path, &body);
            let error = &reply.json()["error"];
            assert_eq!(
                (reply.status, error["param"].as_str()),
                (400, Some("max_tokens")),
                "{value}: {error}"
            );
            let canary = whole(&host.api, RAW, &raw(PROMPT, json!({"max_tokens": 4})));
            assert_eq!(canary.text(), "The ferr");
        }
    }
    for (path, body) in both(json!({"max_tokens": 1})) {
        let got = twin(&host.api, path, &body).answer;
        assert_eq!((got.text(), got.finish(), got.completion_tokens), ("Th", "length", 1));
    }
    let default = twin(&host.api, RAW, &raw(PROMPT, json!({"max_tokens": null}))).answer;
    assert_eq!(
        (default.completion_tokens, default.finish()),
        (16, "length"),
        "as documented for raw completions"
    );
    let chat =
        twin(&host.api, CHAT, &chat(PROMPT, json!({"max_tokens": null, "max_completion_tokens": 3}))).answer;
    assert_eq!((chat.text(), chat.completion_tokens), ("The fe", 3));
    host.settle();
}

#[test]
fn a_stream_names_its_reason_once_and_last() {
    let host = recite(&Reciter { again: true, ..Reciter::of(FERRY) });
    for (path, body) in both(json!({"max_tokens": 50, "stream": true})) {
        let chunks = host.api.stream(path, &body).rest();
        let reasons: Vec<&Value> = chunks.iter().map(|chunk| &chunk["choices"][0]["finish_reason"]).collect();
        let (last, before) = reasons.split_last().expect("chunks");
        assert_eq!(**last, "length");
        assert!(!before.is_empty() && before.iter().all(|reason| reason.is_null()), "{reasons:?}");
    }
}

#[test]
fn usage_comes_when_it_is_asked_for() {
    let host = recite(&Reciter::of(FERRY));
    for (path, body) in both(json!({"max_tokens": 9})) {
        let expected = host.api.post(path, &body).json()["usage"].clone();
        for options in [json!({"include_usage": false}), json!({}), json!(null)] {
            let body = with(body.clone(), json!({"stream": true, "stream_options": options}));
            let chunks = host.api.stream(path, &body).rest();
            assert!(chunks.iter().all(|chunk| chunk.get("usage").is_none()), "{options}");
            assert!(
                chunks
                    .iter()
                    .all(|chunk| { chunk["choices"].as_array().is_some_and(|choices| choices.len() == 1) })
            );
        }
        let body = with(body, json!({"stream_options": {"include_usage": true}}));
        let chunks = host.api.stream(path, &with(body.clone(), json!({"stream": true}))).rest();
        let (usage, before) = chunks.split_last().expect("chunks");
        assert_eq!(usage["choices"], json!([]));
        for count in ["prompt_tokens", "completion_tokens", "total_tokens"] {
            assert_eq!(usage["usage"][count], expected[count]);
        }
        assert!(before.iter().all(|chunk| chunk.get("usage") == Some(&Value::Null)));
        let refused = host.api.post(path, &body);
        assert_eq!(
            (refused.status, refused.json()["error"]["param"].as_str()),
            (400, Some("stream_options"))
        );
    }
}

#[test]
fn several_choices_are_each_their_own() {
    let host = RunningHost::tiny();
    let extra = json!({"n": 4, "temperature": 1.2, "max_tokens": 40, "ignore_eos": true});
    for (path, body) in [(CHAT, chat("hello", extra.clone())), (RAW, raw("hello", extra))] {
        let seeded = with(body.clone(), json!({"seed": 7}));
        let got = twin(&host.api, path, &seeded).answer;
        assert_eq!(got, whole(&host.api, path, &seeded), "a seed repeats");
        let texts: HashSet<&str> = got.choices.iter().map(|choice| choice.text.as_str()).collect();
        assert_eq!((got.choices.len(), texts.len(), got.completion_tokens), (4, 4, 160), "{got:?}");
        assert!(got.choices.iter().all(|choice| choice.finish == "length"));
        let other = whole(&host.api, path, &with(body.clone(), json!({"seed": 8})));
        assert_ne!(got.choices, other.choices);
        let draws: HashSet<String> =
            (0..3).map(|_| whole(&host.api, path, &body).choices[0].text.clone()).collect();
        assert!(draws.len() > 1, "without a seed answers vary: {draws:?}");
    }
}

#[test]
fn a_choice_that_ends_early_cuts_no_other() {
    let host = RunningHost::tiny();
    let extra = json!({"n": 4, "temperature": 1.2, "seed": 3, "max_tokens": 60, "logprobs": true, "logit_bias": {"2": 4}});
    let free = with(extra.clone(), json!({"ignore_eos": true}));
    let ended = twin(&host.api, CHAT, &chat("hello", extra)).answer;
    let full = whole(&host.api, CHAT, &chat("hello", free));
    let reasons: HashSet<&str> = ended.choices.iter().map(|choice| choice.finish.as_str()).collect();
    let lengths: HashSet<usize> = ended.choices.iter().map(|choice| choice.logprobs.len()).collect();
    assert!(
        reasons.contains("stop") && lengths.len() > 1,
        "one of them ended early: {reasons:?} {lengths:?}"
    );
    for (ended, full) in ended.choices.iter().zip(&full.choices) {
        assert!(
            full.text.starts_with(&ended.text),
            "{:?} is not the beginning of {:?}",
            ended.text,
            full.text
        );
    }
    host.settle();
}

#[test]
fn a_trace_tells_what_a_filter_did_to_the_answer() {
    let host = recite(&Reciter::of(FERRY));
    put_guest(&host.admin, "mask", &Guest::masking("at", "@"));
    let edits = FERRY.matches("at").count();
    let asking = host.api.with_header("x-jackfield-trace", "1");
    let check = |trace: &str| {
        let trace: Value = serde_json::from_str(trace).expect("JSON");
        let [filter] = trace["policies"].as_array().expect("policies").as_slice() else { panic!("{trace}") };
        assert_eq!(filter["kind"], "output-filter");
        assert!(filter["did"].as_str().expect("text").starts_with(&format!("{edits} edits")), "{trace}");
        assert!(filter["us"].is_u64());
    };
    for (path, body) in both(json!({})) {
        let whole = asking.post(path, &body);
        check(whole.header("x-jackfield-trace").expect("a trace"));
        let body = with(body, json!({"stream": true}));
        let stream = asking.post(path, &body).text();
        let frames: Vec<&str> = stream.trim_end().split("\n\n").collect();
        let [.., trace, "data: [DONE]"] = frames.as_slice() else { panic!("{stream}") };
        check(trace.strip_prefix(": trace ").expect("a comment"));
        assert!(!host.api.post(path, &body).text().contains(": trace"), "only for who asks");
    }
}

/// A filter that ends the answer of the first window that it is shown, which is one with a match.
fn stopping(regex: &str) -> Guest {
    let mut guest = Guest::new(World::OutputFilter);
    guest.watch(&[regex]);
    let why = guest.text("x");
    // Of window 0; nothing is replaced or held; stop, and why.
    let verdict = guest.words(&[0, 0, 0, 0, 1, why.0, why.1]);
    guest.work = guest.list(verdict, 1);
    guest
}

#[test]
fn what_a_filter_ends_is_counted_as_the_engine_counted_it() {
    let reciter = Reciter::of(FERRY);
    let host = recite(&reciter);
    let until = FERRY.find("nine").expect("it is said") + "nine".len();
    let least = (0..).find(|tokens| reciter.said(*tokens).len() >= until).expect("it is said") as u64;
    let body = raw(&format!("{}\n", "go on and on ".repeat(5)), json!({"max_tokens": 200}));
    let full = whole(&host.api, RAW, &body);
    put_guest(&host.admin, "stop", &stopping("nine"));
    for n in [1, 2] {
        let body = with(body.clone(), json!({"n": n}));
        let reply = host.api.post(RAW, &body).json();
        assert_eq!(reply["choices"][0]["finish_reason"], "content_filter", "{reply}");
        let count = |name: &str| reply["usage"][name].as_u64().expect("a count");
        assert_eq!(count("prompt_tokens"), full.prompt_tokens);
        let (at_least, at_most) = (n * least, n * full.completion_tokens);
        assert!((at_least..=at_most).contains(&count("completion_tokens")), "{n}: {at_least} {reply}");
        let cached = reply["usage"]["prompt_tokens_details"]["cached_tokens"].as_u64();
        assert!(cached.is_some_and(|cached| cached > 0), "the prompt was there: {reply}");
    }
    host.settle();
}

#[test]
fn a_choice_that_a_filter_ends_is_computed_no_further() {
    const MANY: usize = 12_000;
    let tiny = TinyModel { context: 16_384, ..TinyModel::default() };
    let host = RunningHost::with_model(&tiny.bytes(), "[engine]\nkv_mib = 64\n");
    let id =
        |text: &str| host.api.post("/tokenize", &json!({"prompt": text})).json()["tokens"][0].to_string();
    // A choice says one of two letters first, and then nothing but that one.
    let body = |seed: u32, most: usize| {
        raw(
            "hello",
            json!({
                "n": 2, "temperature": 1, "seed": seed, "max_tokens": most, "ignore_eos": true,
                "logit_bias": {id("Q"): 100, id("Z"): 100}, "repetition_penalty": 0.1,
            }),
        )
    };
    let differ = |seed: &u32| {
        let said = whole(&host.api, RAW, &body(*seed, 3)).choices;
        let texts: HashSet<&str> = said.iter().map(|choice| choice.text.as_str()).collect();
        texts == HashSet::from(["QQQ", "ZZZ"])
    };
    let seed = (0..50).find(differ).expect("two choices that go different ways");
    put_guest(&host.admin, "stop", &stopping("QQQ"));
    let mut events = host.api.stream(RAW, &with(body(seed, MANY), json!({"stream": true})));
    let mut next = || -> Value { serde_json::from_str(&events.next_data().expect("more")).expect("JSON") };
    let ended =
        std::iter::repeat_with(&mut next).find(|chunk| !chunk["choices"][0]["finish_reason"].is_null());
    assert_eq!(ended.expect("an end")["choices"][0]["finish_reason"], "content_filter");
    host.eventually("one of two runs on", Duration::from_secs(100), |host| {
        host.metric("jackfield_running_sequences", "") == 1.0
    });
    assert!(next()["choices"][0]["text"].as_str().is_some_and(|text| text.starts_with('Z')));
    drop(events);
    host.settle();
}

#[test]
fn a_real_model_splits_characters_and_none_is_broken() {
    let host = RunningHost::start(&HostOptions { model: default_model(), ..HostOptions::default() });
    let pattern = "龘👩‍👩‍👧é ";
    let ask = |most: u64| raw(&pattern.repeat(4), json!({"max_tokens": most}));
    let full = twin(&host.api, RAW, &ask(20)).answer;
    assert!(full.text().contains('👩'), "it writes characters of several tokens: {:?}", full.text());
    for most in 1..20 {
        let got = if most % 2 == 0 {
            whole(&host.api, RAW, &ask(most))
        } else {
            streamed(&host.api, RAW, &ask(most)).answer
        };
        assert!(
            full.text().starts_with(got.text()) && !got.text().contains('\u{fffd}'),
            "{most}: {:?}",
            got.text()
        );
        assert_eq!((got.completion_tokens, got.finish()), (most, "length"));
    }
}
