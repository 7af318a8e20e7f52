//! Servers of other habits, faked: what the client makes of them.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;

use jackfield_bench::{BenchError, LaneReport, Options, Report, Workload};
use serde_json::{Value, json};

/// Path and body of a request to status and body of its answer.
type Habit = fn(&str, &Value) -> (u16, String);

/// A server on a free port for as long as the test runs; its address.
fn serve(habit: Habit) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || answer_all(stream, habit));
        }
    });
    url
}

fn answer_all(mut stream: TcpStream, habit: Habit) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    loop {
        let (path, length) = head(&mut reader)?;
        let mut body = vec![0; length];
        reader.read_exact(&mut body).ok()?;
        let (status, text) = habit(&path, &serde_json::from_slice(&body).unwrap_or_default());
        write!(stream, "HTTP/1.1 {status} x\r\ncontent-length: {}\r\n\r\n{text}", text.len()).ok()?;
    }
}

/// The path and the length of the body.
fn head(reader: &mut impl BufRead) -> Option<(String, usize)> {
    let (mut path, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        let line = line.trim_end().to_ascii_lowercase();
        match line.split_once(": ") {
            _ if line.is_empty() => return Some((path, length)),
            Some(("content-length", value)) => length = value.parse().ok()?,
            None => path = line.split(' ').nth(1)?.to_owned(),
            Some(_) => {}
        }
    }
}

/// Events, then an end of the stream; usage counts a token for each word of the prompt, and `tokens` of output.
fn stream(events: &[Value], body: &Value, tokens: u64) -> (u16, String) {
    let prompt = body["prompt"].as_str().or(body["messages"][0]["content"].as_str()).unwrap_or_default();
    let usage = json!({"choices": [], "usage": {
        "prompt_tokens": prompt.split_whitespace().count(), "completion_tokens": tokens}});
    let events = events.iter().chain([&usage]).map(|event| format!("data: {event}\n\n"));
    (200, events.collect::<String>() + "data: [DONE]\n\n")
}

fn text(text: &str, finish: Option<&str>) -> Value {
    json!({"choices": [{"index": 0, "text": text, "delta": {"content": text}, "finish_reason": finish}]})
}

fn run(url: &str, model: Option<&str>, lanes: &str) -> Result<Report, BenchError> {
    let file = tempfile::Builder::new().suffix(".toml").tempfile().expect("a file");
    fs::write(&file, format!("about = 'x'\n[[phase]]\n{lanes}")).expect("written");
    let workload = Workload::read(file.path()).expect("good");
    let model = model.map(str::to_owned);
    let options = Options { url: url.to_owned(), model, key: None, quick: false, pid: None, seed: 1 };
    jackfield_bench::run(&[workload], &options, &|_| ())
}

fn lane(output_tokens: u32) -> String {
    format!("[[phase.lane]]\nstreams = 1\nrequests = 2\nprompt_tokens = 9\noutput_tokens = {output_tokens}\n")
}

fn lanes(report: &Report) -> &[LaneReport] {
    &report.workloads[0].phases[0].lanes
}

/// Chats only, refuses what it does not know, and has no list of models.
fn strict(path: &str, body: &Value) -> (u16, String) {
    match path {
        "/v1/chat/completions" if body.get("ignore_eos").is_some() => (400, "ignore_eos?".into()),
        "/v1/chat/completions" => stream(&[text("a", None), text("b", Some("stop"))], body, 2),
        _ => (404, "no such path".into()),
    }
}

#[test]
fn a_strict_server_gets_what_it_understands() {
    let report = run(&serve(strict), Some("m"), &lane(5)).expect("a report");
    assert_eq!((report.endpoint, report.fixed_length), ("/v1/chat/completions", false));
    assert_eq!(report.tokens_per_word, 1.0);
    let lane = &lanes(&report)[0];
    assert_eq!((lane.served, lane.prompt_tokens, lane.output_tokens), (2, 18, 4));
}

/// What it does wrong is chosen by `max_tokens`; the client's first requests have 1.
fn faulty(path: &str, body: &Value) -> (u16, String) {
    if path == "/v1/models" {
        return (200, json!({"data": [{"id": "the-model"}]}).to_string());
    }
    match body["max_tokens"].as_u64() {
        Some(1) => stream(&[text("a", Some("length"))], body, 1),
        Some(2) => stream(&[text("a", None)], body, 2),
        Some(3) => stream(&[text("a", None), json!({"error": {"message": "out of blocks"}})], body, 3),
        Some(4) => (200, format!("data: {}\n\n", text("a", Some("length")))),
        Some(5) => (503, "busy".into()),
        _ => stream(&[text("all of it at once", None), text("", Some("length"))], body, 6),
    }
}

#[test]
fn each_kind_of_fault_is_counted_as_itself() {
    let report = run(&serve(faulty), None, &(2..=6).map(lane).collect::<String>()).expect("a report");
    assert_eq!(report.model, "the-model");
    let kinds = ["cut off", "error in stream", "no usage", "status 503"];
    for (lane, kind) in lanes(&report).iter().zip(kinds) {
        assert_eq!((lane.requests, lane.served), (2, 0), "{kind}");
        assert_eq!(lane.errors, [(kind.to_owned(), 2)].into());
    }
    let joined = &lanes(&report)[4];
    assert_eq!((joined.served, joined.output_tokens), (2, 12), "usage counts, chunks do not");
    assert_eq!(joined.itl_ms, None, "one delivery has no time between");
}

#[test]
fn an_address_that_is_something_else_is_said_to_be() {
    let error = |habit, model| run(&serve(habit), model, &lane(2)).expect_err("no report").to_string();
    let other = error(|_, _| (404, "a web page".into()), Some("m"));
    assert!(other.contains("status 404: a web page") && other.contains("OpenAI-compatible"), "{other}");
    let empty = error(|_, _| (200, "{\"data\":[]}".into()), None);
    assert!(empty.contains("--model"), "{empty}");
    let closed = error(|_, _| (401, "who are you".into()), None);
    assert!(closed.contains("--key"), "{closed}");
}
