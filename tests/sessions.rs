//! Sessions over the API: the client sends what is new, the host knows the rest; whose they are, how long they last, and what
//! becomes of turns that meet.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use jackfield_testkit::answer::{CHAT, chat, open, streamed, whole, with};
use jackfield_testkit::ask::finish_of;
use jackfield_testkit::generate::default_model;
use jackfield_testkit::host::{HostOptions, RunningHost, tiny_model_file};
use jackfield_testkit::http::{Client, Reply};
use serde_json::{Value, json};

const SESSIONS: &str = "/v1/sessions";

fn host(config: &str) -> RunningHost {
    RunningHost::start(&HostOptions {
        model: tiny_model_file(),
        config: config.into(),
        ..HostOptions::default()
    })
}

/// A host whose turns take their time.
fn slow_host(config: &str) -> RunningHost {
    RunningHost::start(&HostOptions {
        model: default_model(),
        config: config.into(),
        ..HostOptions::default()
    })
}

fn turn(session: &str, text: &str) -> Value {
    chat(text, json!({"session": session, "max_tokens": 6, "temperature": 0}))
}

fn shown(api: &Client, session: &str) -> Value {
    let reply = api.get(&format!("{SESSIONS}/{session}"));
    assert_eq!(reply.status, 200, "{}", reply.text());
    reply.json()
}

/// Role and text of what a session remembers.
fn said(session: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let messages = session["messages"].as_array().expect("messages");
    messages.iter().map(|message| (text(&message["role"]), text(&message["content"]))).collect()
}

#[track_caller]
fn refused(reply: &Reply, status: u16, code: &str, param: &str) {
    let error = &reply.json()["error"];
    assert_eq!(
        (reply.status, &error["code"], &error["param"]),
        (status, &json!(code), &json!(param)),
        "{error}"
    );
}

#[test]
fn the_client_sends_what_is_new_and_gets_what_the_whole_dialog_would() {
    let host = host("");
    let system = json!({"role": "system", "content": "Answer in one word."});
    let mut dialog = vec![system.clone()];
    for (number, text) in ["hello there", "and then?", "why"].into_iter().enumerate() {
        let user = json!({"role": "user", "content": text});
        dialog.push(user.clone());
        let mut body = turn("d", text);
        if number == 0 {
            body["messages"] = json!([system, user]);
        }
        let reply = host.api.post(CHAT, &body);
        assert_eq!(reply.header("x-jackfield-session"), Some(&*format!("d;turn={}", number + 1)));
        let answer = reply.json();
        let sent_whole = with(turn("", ""), json!({"session": null, "messages": dialog}));
        let other = host.api.post(CHAT, &sent_whole).json();
        let content = &answer["choices"][0]["message"]["content"];
        assert_eq!(content, &other["choices"][0]["message"]["content"], "turn {number}");
        assert_eq!(answer["usage"]["prompt_tokens"], other["usage"]["prompt_tokens"]);
        dialog.push(json!({"role": "assistant", "content": content}));
    }
    let session = shown(&host.api, "d");
    let expected: Vec<_> = dialog
        .iter()
        .map(|m| {
            (m["role"].as_str().expect("a role").to_owned(), m["content"].as_str().expect("text").to_owned())
        })
        .collect();
    assert_eq!(said(&session), expected);
    assert_eq!(
        (&session["turns"], &session["id"], &session["parent"]),
        (&json!(3), &json!("d"), &Value::Null)
    );

    // A client that keeps the dialog itself sends all of it, and nothing is doubled.
    dialog.push(json!({"role": "user", "content": "go on"}));
    whole(&host.api, CHAT, &with(turn("d", ""), json!({"messages": dialog})));
    assert_eq!(said(&shown(&host.api, "d")).len(), dialog.len() + 1);
}

#[test]
fn a_stream_is_remembered_as_it_was_sent() {
    let host = host("");
    let sent = streamed(&host.api, CHAT, &turn("s", "hello"));
    assert_eq!(said(&shown(&host.api, "s"))[1], ("assistant".into(), sent.answer.text().to_owned()));
    let more = turn("s", "more");
    let both = with(more, json!({"n": 2}));
    refused(&host.api.post(CHAT, &both), 400, "invalid_value", "n");
}

#[test]
fn sessions_are_made_shown_listed_and_forgotten() {
    let host = host("");
    let api = &host.api;
    let messages = json!([{"role": "system", "content": "be brief"}, {"role": "user", "content": "hi"},
        {"role": "assistant", "content": "hello"}]);
    let made = api.post(SESSIONS, &json!({"id": "b", "messages": messages}));
    assert_eq!(made.status, 201, "{}", made.text());
    assert_eq!(made.json(), shown(api, "b"));
    assert_eq!((&made.json()["turns"], &made.json()["messages"][0]["turn"]), (&json!(1), &json!(0)));
    refused(&api.post(SESSIONS, &json!({"id": "b"})), 409, "session_exists", "id");
    whole(api, CHAT, &turn("a", "hello"));
    whole(api, CHAT, &turn("c", "hello"));
    let page = api.get(&format!("{SESSIONS}?limit=2")).json();
    assert_eq!((&page["data"][0]["id"], &page["data"][1]["id"]), (&json!("a"), &json!("b")));
    assert_eq!((&page["has_more"], &page["last_id"]), (&json!(true), &json!("b")));
    let rest = api.get(&format!("{SESSIONS}?limit=2&after=b")).json();
    assert_eq!((&rest["data"][0]["id"], &rest["has_more"]), (&json!("c"), &json!(false)));

    let deleted = api.delete(&format!("{SESSIONS}/b"));
    assert_eq!((deleted.status, &deleted.json()["deleted"]), (200, &json!(true)));
    for reply in [api.delete(&format!("{SESSIONS}/b")), api.get(&format!("{SESSIONS}/b/slots"))] {
        refused(&reply, 404, "session_not_found", "session");
    }
    refused(&api.get(&format!("{SESSIONS}?limit=1000")), 400, "invalid_value", "limit");
    refused(&api.post(SESSIONS, &json!({"name": "b"})), 400, "unknown_parameter", "name");
}

#[test]
fn a_branch_goes_its_own_way() {
    let host = host("");
    for text in ["one", "two", "three"] {
        whole(&host.api, CHAT, &turn("trunk", text));
    }
    let branch = host.api.post(&format!("{SESSIONS}/trunk/branch"), &json!({"id": "twig", "turn": 1}));
    assert_eq!(branch.status, 201, "{}", branch.text());
    assert_eq!(branch.json()["parent"], json!({"id": "trunk", "turn": 1}));
    whole(&host.api, CHAT, &turn("twig", "other"));
    let (trunk, twig) = (said(&shown(&host.api, "trunk")), said(&shown(&host.api, "twig")));
    assert_eq!((trunk.len(), twig.len()), (6, 4));
    assert_eq!(trunk[..2], twig[..2]);
    assert_eq!((trunk[2].1.as_str(), twig[2].1.as_str()), ("two", "other"));
    let too_late = host.api.post(&format!("{SESSIONS}/trunk/branch"), &json!({"turn": 4}));
    refused(&too_late, 400, "invalid_value", "turn");
    let nowhere = host.api.post(&format!("{SESSIONS}/nobody/branch"), &json!({}));
    refused(&nowhere, 404, "session_not_found", "session");
}

#[test]
fn ids_are_the_tenants_own_and_nobody_guesses_the_servers() {
    let keys = "[[keys]]\nkey = 'sk-key-of-a'\ntenant = 'a'\n[[keys]]\nkey = 'sk-key-of-b'\ntenant = 'b'";
    let host = host(keys);
    let (a, b) = (host.api.with_key("sk-key-of-a"), host.api.with_key("sk-key-of-b"));
    whole(&a, CHAT, &turn("default", "the code word is heron"));
    whole(&b, CHAT, &turn("default", "the code word is otter"));
    let own = |api: &Client| said(&shown(api, "default"))[0].1.clone();
    assert!(own(&a).contains("heron") && own(&b).contains("otter"));
    assert_eq!(a.get(SESSIONS).json()["data"].as_array().map(Vec::len), Some(1));
    assert_eq!(host.api.get(SESSIONS).status, 401);
    for id in ["", "../x", "d\u{435}fault", &"x".repeat(10 << 10), "a b"] {
        refused(&a.post(CHAT, &turn(id, "hello")), 400, "invalid_value", "session");
        refused(&a.post(SESSIONS, &json!({"id": id})), 400, "invalid_value", "id");
    }
    let made: Vec<String> = thread::scope(|scope| {
        let makers: Vec<_> = (0..8)
            .map(|_| {
                scope.spawn(|| {
                    let id =
                        |_| a.post(SESSIONS, &json!({})).json()["id"].as_str().expect("an id").to_owned();
                    (0..125).map(id).collect::<Vec<_>>()
                })
            })
            .collect();
        makers.into_iter().flat_map(|maker| maker.join().expect("makes")).collect()
    });
    assert_eq!(made.iter().collect::<HashSet<_>>().len(), 1000);
}

#[test]
fn turns_at_once_are_one_after_the_other_and_each_is_answered_once() {
    let host = slow_host("[sessions]\nwaiting_turns = 32");
    let api = &host.api;
    let answers: Vec<(String, String)> = thread::scope(|scope| {
        let turns: Vec<_> = (0..20)
            .map(|number| {
                scope.spawn(move || {
                    let text = format!("turn number {number}");
                    let body = turn("crowd", &text);
                    let answer = if number % 2 == 0 {
                        streamed(api, CHAT, &body).answer
                    } else {
                        whole(api, CHAT, &body)
                    };
                    (text, answer.text().to_owned())
                })
            })
            .collect();
        // One more that is given up in the middle.
        let long = with(turn("crowd", "given up"), json!({"max_tokens": 400, "ignore_eos": true}));
        let mut events = open(api, CHAT, &with(long, json!({"stream": true})));
        events.next_data();
        drop(events);
        turns.into_iter().map(|turn| turn.join().expect("answered")).collect()
    });
    host.settle();
    let remembered = said(&shown(api, "crowd"));
    let pairs: HashSet<_> = remembered.chunks(2).map(|pair| (pair[0].1.clone(), pair[1].1.clone())).collect();
    assert_eq!(remembered.len(), 40, "nothing is left of the one that was given up");
    assert_eq!(pairs, answers.into_iter().collect());
}

#[test]
fn where_nobody_may_wait_a_second_turn_is_sent_away_and_deleting_too() {
    let host = slow_host("[sessions]\nwaiting_turns = 0");
    let long = with(turn("s", "hello"), json!({"max_tokens": 2000, "ignore_eos": true, "stream": true}));
    let mut running = open(&host.api, CHAT, &long);
    running.next_data();
    let second = host.api.post(CHAT, &turn("s", "me too"));
    refused(&second, 409, "session_conflict", "session");
    assert_eq!(second.header("retry-after"), Some("1"));
    refused(&host.api.delete(&format!("{SESSIONS}/s")), 409, "session_conflict", "session");
    drop(running);
    host.settle();
    whole(&host.api, CHAT, &turn("s", "now"));
    assert_eq!(said(&shown(&host.api, "s"))[0].1, "now");
}

#[test]
fn what_is_deleted_behind_a_turn_is_gone_when_it_has_been_answered() {
    let host = slow_host("");
    let long = with(turn("s", "hello"), json!({"max_tokens": 300, "ignore_eos": true, "stream": true}));
    thread::scope(|scope| {
        let mut running = open(&host.api, CHAT, &long);
        running.next_data();
        let deleting = scope.spawn(|| host.api.delete(&format!("{SESSIONS}/s")));
        let events = running.rest();
        assert_eq!(finish_of(&events), Some("length"), "{events:?}");
        assert_eq!(deleting.join().expect("deletes").status, 200);
    });
    refused(&host.api.get(&format!("{SESSIONS}/s")), 404, "session_not_found", "session");
}

#[test]
fn use_renews_a_session_and_one_that_expired_says_so() {
    let host = host("[sessions]\nttl_s = 4");
    for _ in 0..4 {
        whole(&host.api, CHAT, &turn("kept", "hello"));
        thread::sleep(Duration::from_millis(1500));
    }
    assert_eq!(shown(&host.api, "kept")["turns"], 4);
    whole(&host.api, CHAT, &turn("left", "hello"));
    thread::sleep(Duration::from_millis(4500));
    let gone = host.api.post(CHAT, &turn("left", "are you there?"));
    refused(&gone, 410, "session_expired", "session");
    assert!(gone.text().contains("POST /v1/sessions"), "{}", gone.text());
    assert_eq!(host.api.post(SESSIONS, &json!({"id": "left"})).status, 201, "made anew");
    whole(&host.api, CHAT, &turn("left", "hello again"));
    assert_eq!(shown(&host.api, "left")["turns"], 1);
}

#[test]
fn what_was_acknowledged_is_there_after_the_host_was_killed() {
    let state = tempfile::tempdir().expect("a folder");
    let options = || HostOptions {
        model: tiny_model_file(),
        state: Some(state.path().to_owned()),
        ..HostOptions::default()
    };
    let mut known = Vec::new();
    for round in 0..3 {
        // Dropping it kills it.
        let host = RunningHost::start(&options());
        if round > 0 {
            assert_eq!(said(&shown(&host.api, "s")), known, "round {round}");
        }
        for text in ["one", "two"] {
            whole(&host.api, CHAT, &turn("s", text));
        }
        known = said(&shown(&host.api, "s"));
        assert_eq!(known.len(), 4 * (round + 1));
    }
}

/// Tokens of a turn's prompt that were not computed, and its text.
fn reused(api: &Client, body: &Value) -> (u64, String) {
    let answer = api.post(CHAT, body).json();
    let cached = answer["usage"]["prompt_tokens_details"]["cached_tokens"].as_u64();
    let text = answer["choices"][0]["message"]["content"].as_str();
    (cached.unwrap_or_else(|| panic!("{answer}")), text.expect("a text").to_owned())
}

#[test]
fn the_blocks_of_a_session_outlive_the_host_and_are_the_tenants_own() {
    let state = tempfile::tempdir().expect("a folder");
    let keys = "[[keys]]\nkey = 'sk-key-of-a'\ntenant = 'a'\n[[keys]]\nkey = 'sk-key-of-b'\ntenant = 'b'";
    let options = || HostOptions {
        model: tiny_model_file(),
        state: Some(state.path().to_owned()),
        config: format!("{keys}\n[engine]\nkv_store = 'same'"),
        ..HostOptions::default()
    };
    let text = "the quick brown fox jumps over the lazy dog ".repeat(5);
    let mut host = RunningHost::start(&options());
    whole(&host.api.with_key("sk-key-of-a"), CHAT, &turn("s", &text));
    host.terminate();
    assert!(host.wait().success(), "{}", host.log());
    let copy = || {
        let folder = tempfile::tempdir().expect("a folder");
        copy_all(state.path(), folder.path());
        folder
    };
    let started =
        |folder: &Path| RunningHost::start(&HostOptions { state: Some(folder.to_owned()), ..options() });

    let (intact, emptied) = (copy(), copy());
    std::fs::remove_dir_all(emptied.path().join("kv")).expect("there are blocks");
    let next = turn("s", "go on");
    let warm = started(intact.path());
    let (held, answer) = reused(&warm.api.with_key("sk-key-of-a"), &next);
    assert!(held > 100, "{held} tokens came from disk");
    let cold = started(emptied.path());
    assert_eq!(
        reused(&cold.api.with_key("sk-key-of-a"), &next),
        (0, answer.clone()),
        "the answer is the same"
    );

    // Another tenant that says the same finds nothing of it.
    let (held, _) = reused(&warm.api.with_key("sk-key-of-b"), &turn("s", &text));
    assert_eq!(held, 0);

    for damage in [flip_a_byte as fn(&Path), cut_off, swap_two] {
        let damaged = copy();
        damage(&damaged.path().join("kv"));
        let host = started(damaged.path());
        let (_, again) = reused(&host.api.with_key("sk-key-of-a"), &next);
        assert_eq!(again, answer, "what is damaged is computed again");
        assert!(host.metric("jackfield_kv_rejected_blocks_total", "") >= 1.0);
    }
}

fn copy_all(from: &Path, to: &Path) {
    for entry in std::fs::read_dir(from).expect("a folder").map(|entry| entry.expect("an entry").path()) {
        let target = to.join(entry.file_name().expect("a name"));
        if entry.is_dir() {
            std::fs::create_dir(&target).expect("a folder");
            copy_all(&entry, &target);
        } else {
            std::fs::copy(&entry, &target).expect("a copy");
        }
    }
}

/// The stored blocks, in order of their names.
fn blocks(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    let mut found: Vec<PathBuf> =
        entries.flat_map(|path| if path.is_dir() { blocks(&path) } else { vec![path] }).collect();
    found.sort();
    found
}

fn flip_a_byte(folder: &Path) {
    for block in blocks(folder) {
        let mut bytes = std::fs::read(&block).expect("a block");
        let last = bytes.len() - 100;
        bytes[last] ^= 1;
        std::fs::write(block, bytes).expect("written");
    }
}

fn cut_off(folder: &Path) {
    for block in blocks(folder) {
        let bytes = std::fs::read(&block).expect("a block");
        std::fs::write(block, &bytes[..bytes.len() / 2]).expect("written");
    }
}

fn swap_two(folder: &Path) {
    let all = blocks(folder);
    assert!(all.len() > 1, "one cannot be swapped");
    let bytes: Vec<_> = all.iter().map(|block| std::fs::read(block).expect("a block")).collect();
    for (block, other) in all.iter().zip(bytes.iter().rev()) {
        std::fs::write(block, other).expect("written");
    }
}

#[test]
fn ten_thousand_sessions_of_which_two_hundred_talk_keep_apart() {
    const ALL: usize = 10_000;
    const ACTIVE: usize = 200;
    let host = host("[engine]\nkv_mib = 1\nkv_memory_mib = 2\nkv_disk_mib = 8\nkv_store = 'same'");
    let api = &host.api;
    let word = |number: usize| format!("cw{:05}", number * 7919 % 100_003);
    let begun = |number: usize| {
        let messages = json!([{"role": "user", "content": format!("My word is {}.", word(number))},
            {"role": "assistant", "content": "Noted."}]);
        let made = api.post(SESSIONS, &json!({"id": format!("s{number}"), "messages": messages}));
        assert_eq!(made.status, 201, "{}", made.text());
    };
    thread::scope(|scope| {
        for part in 0..4 {
            scope.spawn(move || (part..ALL).step_by(4).for_each(begun));
        }
    });
    for round in 0..3 {
        thread::scope(|scope| {
            for part in 0..4 {
                scope.spawn(move || {
                    for step in (part..ACTIVE).step_by(4) {
                        // In another order each round, over all of them.
                        let number = (step * 37 + round * 11) % ACTIVE * (ALL / ACTIVE);
                        whole(api, CHAT, &turn(&format!("s{number}"), &format!("round {round}")));
                    }
                });
            }
        });
    }
    for number in (0..ACTIVE).map(|step| step * (ALL / ACTIVE)) {
        let dialog = said(&shown(api, &format!("s{number}")));
        assert_eq!(dialog.len(), 8, "three rounds");
        let words: HashSet<_> =
            dialog.iter().filter_map(|(_, text)| text.find("cw").map(|at| &text[at..at + 7])).collect();
        assert_eq!(words, HashSet::from([word(number).as_str()]));
    }
    // What a session is answered is what its whole dialog is, computed by a host that has never heard of it.
    let cold = self::host("[engine]\nprefix_cache = false\nkv_memory_mib = 0");
    for number in (0..ACTIVE).step_by(20).map(|step| step * (ALL / ACTIVE)) {
        let dialog = shown(api, &format!("s{number}"));
        let messages = dialog["messages"].as_array().expect("messages");
        for answered in [3, 5, 7] {
            let body = with(turn("", ""), json!({"session": null, "messages": &messages[..answered]}));
            let again = whole(&cold.api, CHAT, &body);
            assert_eq!(messages[answered]["content"], again.text(), "session {number}, message {answered}");
        }
    }
    assert!(host.metric("jackfield_kv_demoted_blocks_total", "") > 100.0, "the pool was too small for all");
    assert!(host.metric("jackfield_kv_promoted_blocks_total", "") > 100.0, "and blocks came back");
    assert!(host.metric("jackfield_kv_memory_bytes", "") <= f64::from(2 << 20));
    assert!(host.metric("jackfield_kv_disk_bytes", "") <= f64::from(8 << 20));
}
