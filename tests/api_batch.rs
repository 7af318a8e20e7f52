//! What runs beside a request changes nothing of it: batches, seeds, preemption.

use std::collections::HashSet;
use std::thread;

use jackfield_testkit::answer::{Answer, CHAT, Choice, chat, open, read, streamed, twin, whole, with};
use jackfield_testkit::generate::default_model;
use jackfield_testkit::host::{HostOptions, RunningHost};
use jackfield_testkit::tiny_model::TinyModel;
use serde_json::{Value, json};

/// How near the two best tokens may be, in log-probability, for a batch to choose the other one. Every row of the kernels
/// is computed in the same order whatever else is in the step, so this is not needed today; it is the tolerance that is
/// promised.
const NEAR_TIE: f64 = 1e-3;

/// Asks for all at once, each over a connection of its own; answers in the order of the bodies.
fn together(host: &RunningHost, bodies: &[Value]) -> Vec<Answer> {
    thread::scope(|scope| {
        let ask = |body| scope.spawn(move || streamed(&host.api, CHAT, body).answer);
        let asked: Vec<_> = bodies.iter().map(ask).collect();
        asked.into_iter().map(|thread| thread.join().expect("answered")).collect()
    })
}

/// Token by token the same up to a near-tie, after which the two may go separate ways.
fn assert_same(alone: &Choice, beside: &Choice, what: &str) {
    let pairs = alone.logprobs.iter().zip(&beside.logprobs);
    let Some(parting) = pairs.clone().position(|(a, b)| a["bytes"] != b["bytes"]) else {
        assert_eq!((&beside.text, &beside.finish), (&alone.text, &alone.finish), "{what}");
        return;
    };
    let top =
        |i: usize| alone.logprobs[parting]["top_logprobs"][i]["logprob"].as_f64().expect("two alternatives");
    let gap = top(0) - top(1);
    assert!(gap < NEAR_TIE, "{what}: at token {parting} another token was taken over a gap of {gap}");
}

/// Asks, reads a little, and leaves.
fn leave(host: &RunningHost, body: &Value, deltas: usize) {
    let mut events = open(&host.api, CHAT, body);
    (0..deltas).for_each(|_| drop(events.next_data()));
}

#[test]
fn sixteen_at_once_say_what_each_says_alone() {
    let config = "[engine]\nkv_mib = 128\nprefix_cache = false\n".to_owned();
    let host = RunningHost::start(&HostOptions { model: default_model(), config, ..HostOptions::default() });
    let codeword = |i: usize| format!("QUARTZ-{}", 137 + 53 * i);
    let lengths = [5, 40, 8, 24, 12, 60, 16, 6, 32, 20, 10, 80, 14, 28, 7, 48];
    let body = |(i, most): (usize, &usize)| {
        let text =
            format!("Your codeword is {}. Write one sentence in which the codeword occurs.", codeword(i));
        chat(&text, json!({"max_tokens": most, "logprobs": true, "top_logprobs": 2}))
    };
    let bodies: Vec<Value> = lengths.iter().enumerate().map(body).collect();
    let beside = thread::scope(|scope| {
        for (i, body) in bodies.iter().enumerate().step_by(5) {
            let longer = with(body.clone(), json!({"max_tokens": 400}));
            let host = &host;
            scope.spawn(move || leave(host, &longer, 1 + i));
        }
        together(&host, &bodies)
    });
    host.settle();
    let mut own = 0;
    for (i, (body, beside)) in bodies.iter().zip(&beside).enumerate() {
        let alone = whole(&host.api, CHAT, body);
        assert_same(&alone.choices[0], &beside.choices[0], &codeword(i));
        assert_eq!(alone.prompt_tokens, beside.prompt_tokens);
        let names = |j: &usize| beside.text().contains(&codeword(*j));
        let named: Vec<usize> = (0..bodies.len()).filter(names).collect();
        assert!(named.iter().all(|j| *j == i), "{} is told the words of {named:?}", codeword(i));
        own += named.len();
    }
    assert!(own >= 4, "the codewords do occur: {own}");
}

#[test]
fn a_seed_gives_the_same_answer_in_any_company() {
    let host = RunningHost::tiny();
    let drawn = |extra: Value| {
        chat("hello", with(json!({"temperature": 1, "max_tokens": 80, "ignore_eos": true}), extra))
    };
    let alone = twin(&host.api, CHAT, &drawn(json!({"seed": 7}))).answer;
    let greedy = twin(&host.api, CHAT, &drawn(json!({"seed": 7, "temperature": 0}))).answer;
    let mut bodies: Vec<Value> = (1..=8).map(|seed| drawn(json!({"seed": seed}))).collect();
    bodies.extend([drawn(json!({"seed": 7})), drawn(json!({"seed": 7, "temperature": 0})), drawn(json!({}))]);
    for _ in 0..4 {
        let answers = together(&host, &bodies);
        assert_eq!((&answers[6], &answers[8]), (&alone, &alone), "two alike in one batch, and as alone");
        assert_eq!(answers[9], greedy);
        let texts: HashSet<&str> = answers.iter().map(Answer::text).collect();
        assert_eq!(texts.len(), 10, "every seed has its own: no seed forces greed, and none is everybody's");
    }
    let free: HashSet<String> =
        (0..5).map(|_| whole(&host.api, CHAT, &drawn(json!({}))).text().to_owned()).collect();
    assert_eq!(free.len(), 5, "without a seed every answer is another");
}

/// A stop string that the text has first at about nine tenths of its length.
fn late_stop(text: &str) -> (String, usize) {
    let starts = text.char_indices().map(|(at, _)| at).skip(text.chars().count() * 9 / 10);
    let stop = |at: usize| text[at..].chars().take(6).collect::<String>();
    let found = starts.map(|at| (stop(at), at)).find(|(stop, at)| text.find(stop) == Some(*at));
    found.expect("a run of characters that is new")
}

#[test]
fn who_gives_way_and_comes_back_loses_and_doubles_nothing() {
    let tiny = TinyModel { context: 4096, ..TinyModel::default() };
    let host = RunningHost::with_model(&tiny.bytes(), "[engine]\nkv_mib = 1\nprefix_cache = false\n");
    let common = json!({
        "max_tokens": 2600, "ignore_eos": true, "logprobs": true, "top_logprobs": 1,
        "frequency_penalty": 0.5, "presence_penalty": 0.5, "repetition_penalty": 1.1,
    });
    let body = |content: &str, extra: Value| chat(content, with(common.clone(), extra));
    let open_end = whole(&host.api, CHAT, &body("one", json!({})));
    let (stop, end) = late_stop(open_end.text());
    let bodies = [body("one", json!({"stop": [stop]})), body("two", json!({"temperature": 1, "seed": 5}))];
    let alone: Vec<Answer> = bodies.iter().map(|body| whole(&host.api, CHAT, body)).collect();
    assert_eq!((alone[0].text(), alone[0].finish()), (&open_end.text()[..end], "stop"));
    assert_eq!((alone[1].completion_tokens, alone[1].finish()), (2600, "length"));
    let preemptions = || host.metric("jackfield_preemptions_total", "");
    assert_eq!(preemptions(), 0.0, "each fits by itself");
    for _ in 0..20 {
        let first = open(&host.api, CHAT, &bodies[0]);
        let second = open(&host.api, CHAT, &bodies[1]);
        for (events, alone) in [first, second].into_iter().zip(&alone) {
            let got = read(CHAT, events).answer;
            assert_eq!(got.text(), alone.text());
            assert_eq!(&got, alone, "reason, usage and log-probabilities too");
        }
        if preemptions() > 0.0 {
            return host.settle();
        }
    }
    panic!("the two never met in twenty rounds");
}
