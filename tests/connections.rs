//! Clients that leave, wait, or ask for too much, and a host that goes.

use std::thread;
use std::time::Duration;

use jackfield_testkit::answer::{CHAT, chat, whole, with};
use jackfield_testkit::ask::{WORD, text_of, words};
use jackfield_testkit::host::RunningHost;
use jackfield_testkit::tiny_model::TinyModel;
use jackfield_testkit::wire::{Leave, Wire};
use serde_json::{Value, json};

/// Far longer than anything takes; a bound on how long a failing test hangs.
const PATIENCE: Duration = Duration::from_secs(100);
/// Tokens that take a while.
const MANY: usize = 12_000;

/// A tiny model with room for long prompts and answers.
fn host(engine: &str, server: &str) -> RunningHost {
    let model = TinyModel { context: 16_384, ..TinyModel::default() };
    let config = format!("[engine]\nkv_mib = 64\nprefix_cache = false\n{engine}\n[server]\n{server}\n");
    RunningHost::with_model(&model.bytes(), &config)
}

/// A stream that goes on until its client leaves.
fn endless(host: &RunningHost) -> Value {
    with(words(&host.api, MANY), json!({"stream": true}))
}

fn until(host: &RunningHost, gauge: &str, count: f64) {
    let name = format!("jackfield_{gauge}");
    host.eventually(&format!("{gauge} is {count}"), PATIENCE, |host| host.metric(&name, "") == count);
}

fn answers(host: &RunningHost) {
    let three = whole(&host.api, CHAT, &words(&host.api, 3));
    assert_eq!((three.text(), three.finish()), (WORD.repeat(3).as_str(), "length"));
}

#[test]
fn a_client_that_leaves_frees_what_it_held_whatever_was_going_on() {
    const ROUNDS: usize = 8;
    let host = host("max_running = 1\nmax_step_tokens = 16", "");
    let phases: [fn(&RunningHost, Leave); 4] =
        [leave_in_prefill, leave_after_three, leave_queued, leave_whole];
    for phase in phases {
        for _ in 0..ROUNDS {
            for how in [Leave::Fin, Leave::Rst] {
                phase(&host, how);
                host.settle();
            }
        }
        answers(&host);
    }
    // Those that waited had one before them that left, too.
    let left = 2 * ROUNDS * (phases.len() + 1);
    assert_eq!(host.metric("jackfield_cancelled_turns_total", ""), left as f64);
    assert_eq!(host.metric("jackfield_turns_in_progress", ""), 0.0);
}

fn leave_in_prefill(host: &RunningHost, how: Leave) {
    let prompt = chat(&"hello ".repeat(6_000), json!({"max_tokens": 1, "stream": true}));
    let before = host.metric("jackfield_computed_tokens_total", "");
    let wire = Wire::post(&host.api, CHAT, &[], &prompt);
    until(host, "running_sequences", 1.0);
    wire.leave(how);
    host.settle();
    let computed = host.metric("jackfield_computed_tokens_total", "") - before;
    assert!(computed < 6_000.0, "the prompt was given up half way, not after {computed} tokens");
}

fn leave_after_three(host: &RunningHost, how: Leave) {
    let mut wire = Wire::post(&host.api, CHAT, &[], &endless(host));
    assert_eq!(wire.read_head().0, 200);
    let mut deltas = 0;
    while deltas < 3 {
        deltas += usize::from(wire.frame().expect("more").contains(WORD));
    }
    wire.leave(how);
}

fn leave_queued(host: &RunningHost, how: Leave) {
    let before = Wire::post(&host.api, CHAT, &[], &endless(host));
    until(host, "running_sequences", 1.0);
    let queued = Wire::post(&host.api, CHAT, &[], &endless(host));
    until(host, "waiting_requests", 1.0);
    queued.leave(how);
    until(host, "waiting_requests", 0.0);
    assert_eq!(host.metric("jackfield_running_sequences", ""), 1.0, "the other one is not touched");
    before.leave(how);
}

fn leave_whole(host: &RunningHost, how: Leave) {
    let wire = Wire::post(&host.api, CHAT, &[], &words(&host.api, MANY));
    until(host, "running_sequences", 1.0);
    wire.leave(how);
}

#[test]
fn a_quiet_stream_gets_comments_and_a_whole_body_gets_none() {
    let host = host("max_running = 1", "keep_alive_s = 1");
    let three = words(&host.api, 3);
    let before: Vec<Wire> = (0..8).map(|_| Wire::post(&host.api, CHAT, &[], &endless(&host))).collect();
    until(&host, "waiting_requests", 7.0);
    let (api, body) = (host.api.clone(), three.clone());
    let waiting = thread::spawn(move || api.post(CHAT, &body));
    let mut quiet = Wire::post(&host.api, CHAT, &[], &with(three, json!({"stream": true})));
    assert_eq!(quiet.read_head().0, 200);
    let mut frames = Vec::new();
    let is_comment = |frame: &String| frame.starts_with(':');
    while frames.iter().filter(|frame| is_comment(frame)).count() < 2 {
        frames.push(quiet.frame().expect("the stream waits"));
    }
    before.into_iter().for_each(|wire| wire.leave(Leave::Fin));
    frames.extend(std::iter::from_fn(|| quiet.frame()));
    frames.retain(|frame| frame != ": keep-alive");
    assert_eq!(frames.pop().as_deref(), Some("data: [DONE]"));
    let chunk =
        |frame: &String| serde_json::from_str(frame.strip_prefix("data: ").expect("data")).expect("JSON");
    let chunks: Vec<Value> = frames.iter().map(chunk).collect();
    assert_eq!(text_of(&chunks), WORD.repeat(3));
    let body = waiting.join().expect("an answer").json();
    assert_eq!(body["choices"][0]["message"]["content"], WORD.repeat(3), "the body is JSON and nothing else");
}

#[test]
fn deltas_do_not_wait_for_one_another_whatever_coding_the_client_takes() {
    let host = host("", "");
    for accepted in ["", "identity", "gzip, deflate", "zstd, gzip, br", "*"] {
        let headers = [("accept-encoding", accepted)];
        let headers = if accepted.is_empty() { &[][..] } else { &headers[..] };
        let mut wire = Wire::post(&host.api, CHAT, headers, &endless(&host));
        let (status, headers) = wire.read_head();
        let value =
            |name: &str| headers.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str());
        assert_eq!(status, 200);
        assert_eq!(value("content-type"), Some("text/event-stream; charset=utf-8"));
        assert_eq!(value("cache-control"), Some("no-cache, no-transform"));
        assert_eq!(value("x-accel-buffering"), Some("no"));
        assert_eq!(value("content-encoding"), None, "accepted: {accepted:?}");
        for _ in 0..5 {
            assert!(wire.frame().expect("more").starts_with("data: {"));
        }
        assert_eq!(
            host.metric("jackfield_finished_answers_total", ""),
            0.0,
            "all that came, came before the end"
        );
        wire.leave(Leave::Fin);
    }
}

#[test]
fn what_is_not_there_is_an_error_in_the_apis_shape() {
    let host = host("", "");
    let cases = [
        ("GET", "/v1/nothing", 404, "unknown_url"),
        ("POST", "/", 404, "unknown_url"),
        ("GET", "/v1/chat/completions", 405, "method_not_allowed"),
        ("DELETE", "/v1/models", 405, "method_not_allowed"),
        ("PUT", "/metrics", 405, "method_not_allowed"),
        ("GET", "/v1/models/other", 404, "model_not_found"),
        ("GET", "/admin/policies", 404, "unknown_url"),
    ];
    for (method, path, status, code) in cases {
        let reply = host.api.send(method, path, "", Vec::new());
        let error = &reply.json()["error"];
        assert_eq!((reply.status, error["code"].as_str()), (status, Some(code)), "{method} {path}");
        assert!(
            error["message"].is_string() && error["type"].is_string() && error.get("param").is_some(),
            "{error}"
        );
        assert_eq!(
            reply.header("allow").is_some(),
            status == 405,
            "{method} {path}: what is allowed is said"
        );
    }
    let mut garbage = Wire::open(&host.api);
    garbage.send(b"this is not HTTP\r\n\r\n");
    assert_eq!(garbage.read_head().0, 400);
    answers(&host);
}

#[test]
fn http_2_is_spoken_to_who_begins_with_it() {
    let host = host("", "");
    let (endless, three) = (endless(&host), words(&host.api, 3));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let body = runtime.block_on(async {
        let stream = tokio::net::TcpStream::connect(host.api.address).await.expect("it listens");
        let (client, connection) = h2::client::handshake(stream).await.expect("HTTP/2");
        tokio::spawn(connection);
        let mut client = client.ready().await.expect("ready");
        let mut post = |body: &Value| {
            let request = http::Request::post(host.api.url(CHAT)).header("content-type", "application/json");
            let (response, mut sender) =
                client.send_request(request.body(()).expect("a request"), false).expect("sent");
            sender.send_data(body.to_string().into(), true).expect("sent");
            response
        };
        // Two at once over one connection; the first does not end before the second.
        let (first, second) = (post(&endless), post(&three));
        let mut first = first.await.expect("a response");
        assert_eq!((first.status().as_u16(), first.version()), (200, http::Version::HTTP_2));
        let chunk = first.body_mut().data().await.expect("a chunk").expect("whole");
        assert!(chunk.starts_with(b"data: {"), "{chunk:?}");
        let mut second = second.await.expect("a response");
        let mut body = Vec::new();
        while let Some(chunk) = second.body_mut().data().await {
            body.extend(chunk.expect("whole"));
        }
        body
    });
    let body: Value = serde_json::from_slice(&body).expect("JSON");
    assert_eq!(body["choices"][0]["message"]["content"], WORD.repeat(3));
    host.settle();
}

#[test]
fn too_much_at_once_is_refused_with_a_time_to_come_back() {
    let limits = [("", "request_permits = 1", 1), ("max_running = 1\nmax_waiting = 1", "", 2)];
    for (engine, server, places) in limits {
        let host = host(engine, server);
        let taken: Vec<Wire> =
            (0..places).map(|_| Wire::post(&host.api, CHAT, &[], &endless(&host))).collect();
        until(&host, "in_flight_requests", f64::from(places));
        for stream in [false, true] {
            let reply = host.api.post(CHAT, &with(words(&host.api, 3), json!({"stream": stream})));
            let error = &reply.json()["error"];
            assert_eq!((reply.status, reply.header("retry-after")), (429, Some("1")), "{error}");
            assert_eq!((&error["type"], &error["code"]), (&json!("rate_limit_error"), &json!("overloaded")));
        }
        taken.into_iter().for_each(|wire| wire.leave(Leave::Fin));
        host.settle();
        answers(&host);
    }
}

#[test]
fn a_host_that_is_told_to_go_finishes_what_it_began() {
    const WORDS: usize = 5_000;
    let mut host = host("", "drain_s = 100");
    let (body, three) = (words(&host.api, WORDS), words(&host.api, 3));
    let body = with(body, json!({"stream": true}));
    let mut running: Vec<_> = (0..4).map(|_| host.api.stream(CHAT, &body)).collect();
    running.iter_mut().for_each(|events| assert!(events.next_data().is_some()));
    host.terminate();
    host.eventually("it says so", PATIENCE, |host| host.api.get("/health/ready").status == 503);
    assert_eq!(host.api.get("/health/ready").json(), json!({"status": "draining"}));
    assert_eq!(host.api.get("/health/live").status, 200);
    let refused = host.api.post(CHAT, &three);
    assert_eq!((refused.status, &refused.json()["error"]["code"]), (503, &json!("draining")));
    assert!(refused.header("retry-after").is_some());
    let rests = running.into_iter().map(|events| thread::spawn(|| events.rest())).collect::<Vec<_>>();
    for rest in rests {
        let rest = rest.join().expect("[DONE]");
        assert_eq!(text_of(&rest), WORD.repeat(WORDS), "to its last word");
    }
    assert_eq!(host.wait().code(), Some(0));
}

#[test]
fn what_runs_longer_than_the_time_to_drain_is_cut_off() {
    let mut host = host("", "drain_s = 0");
    let mut events = host.api.stream(CHAT, &endless(&host));
    assert!(events.next_data().is_some());
    host.terminate();
    assert_eq!(host.wait().code(), Some(0));
}
