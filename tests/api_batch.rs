//! What runs beside a request changes nothing of it: batches, leaving, seeds, preemption.

use std::collections::HashSet;
use std::thread;

use jackfield_testkit::answer::{Answer, CHAT, chat, open, read, streamed, twin, whole, with};
use jackfield_testkit::generate::default_model;
use jackfield_testkit::host::{HostOptions, RunningHost};
use jackfield_testkit::tiny_model::TinyModel;
use serde_json::{Value, json};

/// How near the two best tokens may be, in log-probability, for a batch to choose the other one. Every row of the kernels
/// is computed in the same order whatever else is in the step, so this is not needed today; it is the tolerance that is
/// promised.
const NEAR_TIE: f64 = 1e-3;

/// Always the same numbers.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }
}

fn real(kv_mib: usize, prefix_cache: bool) -> RunningHost {
    let config = format!("[engine]\nkv_mib = {kv_mib}\nprefix_cache = {prefix_cache}\n");
    RunningHost::start(&HostOptions { model: default_model(), config, ..HostOptions::default() })
}

/// Asks for all at once, each over a connection of its own; answers in the order of the bodies.
fn together(host: &RunningHost, bodies: &[Value]) -> Vec<Answer> {
    thread::scope(|scope| {
        let ask = |body| scope.spawn(move || streamed(&host.api, CHAT, body).answer);
        let asked: Vec<_> = bodies.iter().map(ask).collect();
        asked.into_iter().map(|thread| thread.join().expect("answered")).collect()
    })
}

/// What these tokens say.
fn said(logprobs: &[Value]) -> String {
    let bytes = |token: &Value| serde_json::from_value::<Vec<u8>>(token["bytes"].clone()).expect("bytes");
    let all: Vec<u8> = logprobs.iter().flat_map(bytes).collect();
    String::from_utf8_lossy(&all).trim_end_matches(char::REPLACEMENT_CHARACTER).to_owned()
}

/// What was said beside others, with at most so many tokens, is what was said alone: token by token up to a near-tie, after
/// which the two may go separate ways.
fn assert_same(alone: &Answer, beside: &Answer, most: u64, what: &str) {
    let (a, b) = (&alone.choices[0], &beside.choices[0]);
    assert!(b.text.starts_with(&said(&b.logprobs)), "{what}: {:?} is not what its tokens say", b.text);
    assert_eq!(beside.prompt_tokens, alone.prompt_tokens, "{what}");
    let pairs = a.logprobs.iter().zip(&b.logprobs);
    if let Some(parting) = pairs.clone().position(|(a, b)| a["bytes"] != b["bytes"]) {
        let top =
            |i: usize| a.logprobs[parting]["top_logprobs"][i]["logprob"].as_f64().expect("two alternatives");
        let gap = top(0) - top(1);
        assert!(gap < NEAR_TIE, "{what}: at token {parting} another token was taken over a gap of {gap}");
        return;
    }
    assert_eq!(beside.completion_tokens, alone.completion_tokens.min(most), "{what}");
    if alone.completion_tokens <= most {
        assert_eq!((&b.text, &b.finish, b.logprobs.len()), (&a.text, &a.finish, a.logprobs.len()), "{what}");
    } else {
        assert_eq!((b.finish.as_str(), b.logprobs.len() as u64), ("length", most), "{what}");
        assert_eq!(b.text, said(&b.logprobs), "{what}");
    }
}

/// Asks, reads a little, and leaves.
fn leave(host: &RunningHost, body: &Value, deltas: u64) {
    let mut events = open(&host.api, CHAT, body);
    (0..deltas).for_each(|_| drop(events.next_data()));
}

#[test]
fn sixteen_at_once_say_what_each_says_alone() {
    let codeword = |i: usize| format!("QUARTZ-{}", 137 + 53 * i);
    let ask = |i: usize, most: u64| {
        let text =
            format!("Your codeword is {}. Write one sentence in which the codeword occurs.", codeword(i));
        chat(&text, json!({"max_tokens": most, "logprobs": true, "top_logprobs": 2}))
    };
    let rounds = if std::env::var_os("JACKFIELD_LONG").is_some() { 100 } else { 2 };
    let mut dice = Dice(0x5eed);
    let mut left = 0;
    for prefix_cache in [false, true] {
        let host = real(128, prefix_cache);
        let alone: Vec<Answer> = (0..16).map(|i| whole(&host.api, CHAT, &ask(i, 200))).collect();
        let own = (0..16).filter(|&i| alone[i].text().contains(&codeword(i))).count();
        assert!(own >= 4, "the codewords do occur: {own}");
        for round in 0..rounds {
            let plans: Vec<(u64, Option<u64>)> =
                (0..16).map(|_| (5 + dice.roll(196), (dice.roll(4) == 0).then(|| dice.roll(12)))).collect();
            left += plans.iter().filter(|(_, leaves)| leaves.is_some()).count();
            thread::scope(|scope| {
                for (i, &(most, leaves)) in plans.iter().enumerate() {
                    let (host, alone) = (&host, &alone[i]);
                    scope.spawn(move || {
                        let body = ask(i, most);
                        let Some(deltas) = leaves else {
                            let beside = streamed(&host.api, CHAT, &body).answer;
                            assert_same(alone, &beside, most, &format!("{}, round {round}", codeword(i)));
                            let names = |j: &usize| *j != i && beside.text().contains(&codeword(*j));
                            let foreign: Vec<usize> = (0..16).filter(names).collect();
                            assert!(foreign.is_empty(), "{} is told the words of {foreign:?}", codeword(i));
                            return;
                        };
                        leave(host, &body, deltas);
                    });
                }
            });
            host.settle();
        }
    }
    assert!(left >= 2 * rounds, "some did leave: {left}");
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

/// Asks both at once, and `check`s the answers, until one had to give way to the other: on a busy machine two may miss each
/// other.
fn until_one_gives_way(host: &RunningHost, bodies: [&Value; 2], check: impl Fn([Answer; 2])) {
    let preemptions = || host.metric("jackfield_preemptions_total", "");
    let before = preemptions();
    for _ in 0..20 {
        let tokens = host.metric("jackfield_completion_tokens_total", "");
        let both = bodies.map(|body| open(&host.api, CHAT, body)).map(|events| read(CHAT, events).answer);
        host.settle();
        let counted = host.metric("jackfield_completion_tokens_total", "") - tokens;
        let told: u64 = both.iter().map(|answer| answer.completion_tokens).sum();
        assert_eq!(counted, told as f64, "each token is counted once");
        check(both);
        if preemptions() > before {
            return;
        }
    }
    panic!("the two never met in twenty rounds");
}

#[test]
fn a_seed_gives_the_same_answer_after_giving_way() {
    let tiny = TinyModel { context: 4096, ..TinyModel::default() };
    let host = RunningHost::with_model(&tiny.bytes(), "[engine]\nkv_mib = 1\n");
    let drawn = |seed: u64| {
        let extra = json!({"temperature": 1, "seed": seed, "max_tokens": 2600, "ignore_eos": true});
        chat("hello", extra)
    };
    // Both are drawn, so whoever gives way was.
    for bodies in [[drawn(7), drawn(5)], [drawn(7), drawn(7)]] {
        let alone = [0, 1].map(|i| whole(&host.api, CHAT, &bodies[i]));
        until_one_gives_way(&host, [&bodies[0], &bodies[1]], |both| {
            assert_eq!(both, alone);
        });
    }
}

/// A stop string that the text has first at about nine tenths of its length, and where it begins.
fn late_stop(text: &str) -> (String, usize) {
    let starts = text.char_indices().map(|(at, _)| at).skip(text.chars().count() * 9 / 10);
    let stop = |at: usize| text[at..].chars().take(6).collect::<String>();
    let found = starts.map(|at| (stop(at), at)).find(|(stop, at)| text.find(stop) == Some(*at));
    found.expect("a run of characters that is new")
}

/// Two long answers with everything that has a memory, of which the first is ended by a stop string, say beside each other
/// what each says alone. The host has room for one.
fn assert_that_giving_way_loses_nothing(host: &RunningHost, most: u64) {
    let body = |content: &str, extra: Value| {
        let common = json!({
            "max_tokens": most, "ignore_eos": true, "logprobs": true, "top_logprobs": 2,
            "frequency_penalty": 0.5, "presence_penalty": 0.5, "repetition_penalty": 1.1,
        });
        chat(content, with(common, extra))
    };
    let open_end = whole(&host.api, CHAT, &body("one", json!({})));
    let (stop, end) = late_stop(open_end.text());
    let bodies = [body("one", json!({"stop": [stop]})), body("two", json!({}))];
    let alone = [0, 1].map(|i| whole(&host.api, CHAT, &bodies[i]));
    assert_eq!((alone[0].text(), alone[0].finish()), (&open_end.text()[..end], "stop"));
    assert_eq!((alone[1].completion_tokens, alone[1].finish()), (most, "length"));
    assert_eq!(host.metric("jackfield_preemptions_total", ""), 0.0, "each fits by itself");
    until_one_gives_way(host, [&bodies[0], &bodies[1]], |both| {
        for (beside, alone) in both.iter().zip(&alone) {
            assert_same(alone, beside, most, "beside another");
        }
    });
}

#[test]
fn of_two_replies_that_do_not_fit_together_none_loses_or_doubles_anything() {
    // 25 blocks of 16 tokens: each prompt has some 30 and each answer 300.
    for prefix_cache in [false, true] {
        assert_that_giving_way_loses_nothing(&real(9, prefix_cache), 300);
    }
}

#[test]
fn who_gives_way_after_thousands_of_tokens_loses_and_doubles_nothing() {
    let tiny = TinyModel { context: 4096, ..TinyModel::default() };
    let host = RunningHost::with_model(&tiny.bytes(), "[engine]\nkv_mib = 1\nprefix_cache = false\n");
    assert_that_giving_way_loses_nothing(&host, 2600);
}
