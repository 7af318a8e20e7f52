//! What policies ask of the host's models while a turn waits: surprisal, embeddings.

#[path = "golden/runner.rs"]
#[allow(dead_code, reason = "each test binary uses its part")]
mod runner;
#[path = "golden/support.rs"]
#[allow(dead_code, reason = "each test binary uses its part")]
mod support;

use std::thread;

use jackfield_model::{Cpu, Gguf, Model};
use jackfield_testkit::admin::{accepted, manifest, put};
use jackfield_testkit::answer::{Answer, CHAT, chat, whole};
use jackfield_testkit::guest::{Guest, World};
use jackfield_testkit::host::{HostOptions, RunningHost, tiny_model_file};
use jackfield_testkit::tiny_model::TinyModel;
use runner::Runner;
use serde_json::{Value, json};

const TEXT: &str = "you and the system are in the world and the user is hello";
const SETTINGS: &str = "[engine]\nkv_mib = 16\n[server]\ncompress_to = 0.5\n";

/// A compressor that drops the least surprising token of the first message, but not its first one. The host's error is its own.
const DROP_LEAST: &str = r#"
(func $least (param $scored i32) (param $count i32) (result i32)
  (local $at i32) (local $least i32) (local $bits f32)
  (local.set $bits (f32.const inf))
  (local.set $at (i32.const 1))
  (loop $more
    (if (f32.lt (f32.load offset=4 (call $entry (local.get $scored) (local.get $at))) (local.get $bits))
      (then
        (local.set $bits (f32.load offset=4 (call $entry (local.get $scored) (local.get $at))))
        (local.set $least (local.get $at))))
    (local.set $at (i32.add (local.get $at) (i32.const 1)))
    (br_if $more (i32.lt_u (local.get $at) (local.get $count))))
  (local.get $least))
(func $entry (param $scored i32) (param $at i32) (result i32)
  (i32.add (local.get $scored) (i32.mul (local.get $at) (i32.const 8))))
(func $drop_least (param $part i32) (result i32)
  (local $scored i32) (local $least i32)
  (call $score (i32.load offset=4 (local.get $part)) (i32.load offset=8 (local.get $part)) (i32.const RESULT))
  (if (i32.load8_u (i32.const RESULT)) (then (return (i32.const RESULT))))
  (local.set $scored (i32.load offset=4 (i32.const RESULT)))
  (local.set $least (call $least (local.get $scored) (i32.load offset=8 (i32.const RESULT))))
  (i32.store offset=4 (i32.const EDIT)
    (i32.load (call $entry (local.get $scored) (i32.sub (local.get $least) (i32.const 1)))))
  (i32.store offset=8 (i32.const EDIT) (i32.load (call $entry (local.get $scored) (local.get $least))))
  (i32.store offset=4 (i32.const RESULT) (i32.const EDIT))
  (i32.store offset=8 (i32.const RESULT) (i32.const 1))
  (i32.const RESULT))
"#;

/// A slot extractor that answers by which of two texts the utterance is closer to. The host's error is its own.
const CLOSER: &str = r#"
(func $cosine (param $a i32) (param $b i32) (param $width i32) (result f32)
  (local $sum f32)
  (loop $more
    (local.set $sum (f32.add (local.get $sum) (f32.mul (f32.load (local.get $a)) (f32.load (local.get $b)))))
    (local.set $a (i32.add (local.get $a) (i32.const 4)))
    (local.set $b (i32.add (local.get $b) (i32.const 4)))
    (local.set $width (i32.sub (local.get $width) (i32.const 1)))
    (br_if $more (local.get $width)))
  (local.get $sum))
(func $vector (param $text i32) (param $length i32) (result i32)
  (call $embed (local.get $text) (local.get $length) (i32.const RESULT))
  (if (result i32) (i32.load8_u (i32.const RESULT)) (then (i32.const 0)) (else (i32.load offset=4 (i32.const RESULT)))))
(func $closer (param $message i32) (result i32)
  (local $asked i32)
  (local.set $asked (call $vector (i32.load offset=4 (local.get $message)) (i32.load offset=8 (local.get $message))))
  (if (i32.eqz (local.get $asked)) (then (return (i32.const RESULT))))
  (if (result i32)
    (f32.gt
      (call $cosine (local.get $asked) (call $vector (i32.const CANCEL) (i32.const CANCEL_LEN)) (i32.load offset=8 (i32.const RESULT)))
      (call $cosine (local.get $asked) (call $vector (i32.const TRACK) (i32.const TRACK_LEN)) (i32.load offset=8 (i32.const RESULT))))
    (then SAY_CANCEL)
    (else SAY_TRACK)))
"#;

fn dropping() -> Guest {
    let mut guest = Guest::new(World::Compressor);
    guest.import("saliency", "score", "(param i32 i32 i32)");
    let (result, edit) = (guest.words(&[0, 0, 0]), guest.words(&[0; 5]));
    guest.module = DROP_LEAST.replace("RESULT", &result.to_string()).replace("EDIT", &edit.to_string());
    guest.work = "(call $drop_least (i32.load offset=88 (local.get $args)))".into();
    guest
}

fn deciding() -> Guest {
    let mut guest = Guest::new(World::SlotExtractor);
    guest.import("embeddings", "embed", "(param i32 i32 i32)");
    let result = guest.words(&[0, 0, 0]);
    let cancel = guest.text("I want to cancel what I have ordered.");
    let track = guest.text("Where is my parcel? When will it be delivered?");
    let (say_cancel, say_track) = (guest.say("cancel"), guest.say("track"));
    guest.module = CLOSER
        .replace("RESULT", &result.to_string())
        .replace("CANCEL_LEN", &cancel.1.to_string())
        .replace("TRACK_LEN", &track.1.to_string())
        .replace("SAY_CANCEL", &say_cancel)
        .replace("SAY_TRACK", &say_track)
        .replace("CANCEL", &cancel.0.to_string())
        .replace("TRACK", &track.0.to_string());
    guest.work = "(call $closer (i32.load offset=88 (local.get $args)))".into();
    guest
}

fn put_granted(host: &RunningHost, guest: &Guest, grant: &str) {
    let manifest = manifest("guest", guest.world);
    let manifest = format!("grants = [\"{grant}\"]\non-fault = \"closed\"\n{manifest}");
    accepted(put(&host.admin, "guest", &manifest, &guest.build()));
}

/// The first message of three, the only one that a compressor may shorten.
fn asked(first: &str) -> Value {
    let says = |role: &str, content: &str| json!({"role": role, "content": content});
    let messages = [says("user", first), says("assistant", "one"), says("user", "two")];
    json!({"model": "default", "temperature": 0, "max_tokens": 12, "ignore_eos": true, "messages": messages})
}

/// The text without its least surprising token but the first, by the model itself; no other comes close.
fn without_least(text: &str) -> String {
    let gguf = Gguf::from_bytes(TinyModel::default().bytes()).expect("a model file");
    let model = Model::from_gguf(gguf, Cpu::new(1)).expect("it loads");
    let tokens = model.tokenizer.encode(text).expect("tokens");
    let ends = model.tokenizer.boundaries(text).expect("tokens");
    let mut runner = Runner::new(&model, tokens.len());
    let mut sequence = runner.sequence(tokens.len());
    let logits = runner.feed(&mut sequence, &tokens, tokens.len());
    let rows = logits.chunks(model.config.vocab).zip(&tokens[1..]);
    let surprisal = rows.map(|(row, &next)| {
        let all: f64 = row.iter().map(|&logit| f64::from(logit).exp()).sum();
        all.log2() - f64::from(row[next as usize]) / std::f64::consts::LN_2
    });
    let mut ranked: Vec<(usize, f64)> = (1..).zip(surprisal).collect();
    ranked.sort_by(|a, b| a.1.total_cmp(&b.1));
    assert!(ranked[1].1 - ranked[0].1 > 0.01, "two are as surprising: {ranked:?}");
    let least = ranked[0].0;
    format!("{}{}", &text[..ends[least - 1] as usize], &text[ends[least] as usize..])
}

#[test]
fn a_compressor_drops_the_word_that_surprises_least() {
    let options = HostOptions { model: tiny_model_file(), config: SETTINGS.into(), ..HostOptions::default() };
    let host = RunningHost::start(&options);
    let short = without_least(TEXT);
    let (long, wanted) = (whole(&host.api, CHAT, &asked(TEXT)), whole(&host.api, CHAT, &asked(&short)));
    assert_eq!(wanted.prompt_tokens, long.prompt_tokens - 1);
    put_granted(&host, &dropping(), "saliency");
    let text_of = |answer: &Answer| (answer.prompt_tokens, answer.text().to_owned());
    assert_eq!(text_of(&whole(&host.api, CHAT, &asked(TEXT))), text_of(&wanted));
    let counter = |name: &str| host.metric(&format!("jackfield_policy_version_{name}_total"), "saliency");
    assert_eq!((counter("import_calls"), counter("import_errors")), (1.0, 0.0));
    assert!(counter("import_seconds") > 0.0);

    // Many turns at once: each text is scored, and nothing of it stays.
    thread::scope(|scope| {
        let ask = || scope.spawn(|| text_of(&whole(&host.api, CHAT, &asked(TEXT))));
        let turns: Vec<_> = (0..8).map(|_| ask()).collect();
        turns.into_iter().for_each(|turn| assert_eq!(turn.join().expect("answered"), text_of(&wanted)));
    });
    assert_eq!(counter("import_calls"), 9.0);
    assert!(host.metric("jackfield_scored_tokens_total", "") > 0.0);
    host.settle();
    assert_eq!(host.metric("jackfield_scoring_texts", ""), 0.0);
}

#[test]
fn a_text_too_long_to_score_is_told_to_the_policy() {
    let options = HostOptions { model: tiny_model_file(), config: SETTINGS.into(), ..HostOptions::default() };
    let host = RunningHost::start(&options);
    put_granted(&host, &dropping(), "saliency");
    let reply = host.api.post(CHAT, &asked(&"a".repeat(17 << 10)));
    assert!(reply.status >= 400, "the policy failed closed: {}", reply.text());
    let errors = "jackfield_policy_version_import_errors_total";
    assert_eq!(host.metric(errors, "saliency"), 1.0, "{}", host.log());
    assert_eq!(whole(&host.api, CHAT, &asked(TEXT)).finish(), "length");
}

#[test]
fn a_slot_extractor_decides_by_meaning() {
    let folder = support::embeddings_folder();
    let config = format!("embeddings = {:?}\n{SETTINGS}", folder.to_string_lossy());
    let host =
        RunningHost::start(&HostOptions { model: tiny_model_file(), config, ..HostOptions::default() });
    put_granted(&host, &deciding(), "embeddings");
    let answers = [
        ("Please call it off, I do not need those shoes any more.", "cancel"),
        ("Has the postman got my shoes yet?", "track"),
    ];
    for (utterance, answer) in answers {
        assert_eq!(whole(&host.api, CHAT, &chat(utterance, json!({}))).text(), answer, "{utterance}");
    }
    let calls = "jackfield_policy_version_import_calls_total";
    assert_eq!(host.metric(calls, "embeddings"), 6.0, "three vectors a turn");
}
