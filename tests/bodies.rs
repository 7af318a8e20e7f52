//! Request bodies as they come from the wire: compressed, in chunks, announced, too large, or never complete.

use std::fs;
use std::io::{self, Read, Write};

use jackfield_testkit::answer::{CHAT, chat};
use jackfield_testkit::host::RunningHost;
use jackfield_testkit::http::Reply;
use jackfield_testkit::tiny_model::TinyModel;
use jackfield_testkit::wire::Wire;
use serde_json::{Value, json};

const MOST_BYTES: usize = 64 << 10;

fn host() -> RunningHost {
    let server = format!("max_body_bytes = {MOST_BYTES}\nbody_timeout_s = 3");
    RunningHost::with_model(
        &TinyModel::default().bytes(),
        &format!("[engine]\nkv_mib = 8\n[server]\n{server}\n"),
    )
}

/// A request with characters of one to four bytes, and what comes back when it is sent in the plainest way.
fn plain(host: &RunningHost) -> (Vec<u8>, Value) {
    let body = chat("né 你好，世界 😀", json!({"max_tokens": 12}));
    let reply = host.api.post(CHAT, &body);
    assert_eq!(reply.status, 200, "{}", reply.text());
    (body.to_string().into_bytes(), reply.json()["choices"].clone())
}

fn is_error(reply: &Reply, status: u16, code: &str, what: &str) {
    assert_eq!(
        (reply.status, reply.json()["error"]["code"].as_str()),
        (status, Some(code)),
        "{what}: {}",
        reply.text()
    );
}

fn is_answer(reply: &Reply, choices: &Value, what: &str) {
    assert_eq!((reply.status, &reply.json()["choices"]), (200, choices), "{what}");
}

fn gzip(bytes: impl Read) -> Vec<u8> {
    read(flate2::read::GzEncoder::new(bytes, flate2::Compression::best()))
}

fn deflate(bytes: impl Read) -> Vec<u8> {
    read(flate2::read::ZlibEncoder::new(bytes, flate2::Compression::fast()))
}

fn zstd(bytes: impl Read) -> Vec<u8> {
    zstd::encode_all(bytes, 3).expect("encodes")
}

fn brotli(bytes: &[u8]) -> Vec<u8> {
    let mut encoded = Vec::new();
    brotli::CompressorWriter::new(&mut encoded, 4096, 5, 20).write_all(bytes).expect("encodes");
    encoded
}

fn read(mut from: impl Read) -> Vec<u8> {
    let mut bytes = Vec::new();
    from.read_to_end(&mut bytes).expect("encodes");
    bytes
}

/// The most memory the host has had, in bytes.
fn peak_bytes(host: &RunningHost) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", host.pid())).expect("it runs");
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).expect("a peak");
    line.split_whitespace().nth(1).and_then(|kib| kib.parse::<u64>().ok()).expect("a number") << 10
}

#[test]
fn a_compressed_body_is_read_as_what_it_says_it_is() {
    let host = host();
    let (body, choices) = plain(&host);
    let send = |coding: &str, bytes: Vec<u8>| {
        host.api.with_header("content-encoding", coding).send("POST", CHAT, "application/json", bytes)
    };
    let good = [
        ("gzip", gzip(&body[..])),
        ("deflate", deflate(&body[..])),
        ("zstd", zstd(&body[..])),
        ("br", brotli(&body)),
        ("zstd, gzip", gzip(&zstd(&body[..])[..])),
        ("identity", body.clone()),
        ("GZip", gzip(&body[..])),
        ("zstd", [zstd(&body[..20]), zstd(&body[20..])].concat()),
    ];
    for (coding, bytes) in good {
        is_answer(&send(coding, bytes), &choices, coding);
    }
    let half = |bytes: Vec<u8>| bytes[..bytes.len() / 2].to_vec();
    let bad = [
        ("gzip", half(gzip(&body[..])), 400, "invalid_body"),
        ("zstd", half(zstd(&body[..])), 400, "invalid_body"),
        ("br", half(brotli(&body)), 400, "invalid_body"),
        ("zstd", gzip(&body[..]), 400, "invalid_body"),
        ("gzip", body.clone(), 400, "invalid_body"),
        ("gzip, zstd", gzip(&zstd(&body[..])[..]), 400, "invalid_body"),
        ("identity", zstd(&body[..]), 400, "invalid_json"),
        ("lzma", body.clone(), 415, "unsupported_content_encoding"),
        ("gzip, gzip, gzip, gzip", body.clone(), 415, "unsupported_content_encoding"),
    ];
    for (coding, bytes, status, code) in bad {
        is_error(&send(coding, bytes), status, code, coding);
    }
}

#[test]
fn a_bomb_is_refused_at_the_limit_and_its_bytes_are_never_all_there() {
    let host = host();
    let before = peak_bytes(&host);
    let zeros = |mib: u64| io::repeat(b' ').take(mib << 20);
    let bombs =
        [("zstd", zstd(zeros(512))), ("gzip", gzip(zeros(48))), ("gzip, zstd", zstd(&gzip(zeros(400))[..]))];
    for (coding, bytes) in bombs {
        assert!(bytes.len() <= MOST_BYTES, "{coding}: {} bytes pass the first check", bytes.len());
        let reply =
            host.api.with_header("content-encoding", coding).send("POST", CHAT, "application/json", bytes);
        is_error(&reply, 413, "request_too_large", coding);
    }
    let grown = peak_bytes(&host) - before;
    assert!(grown < 32 << 20, "{grown} bytes more than before");
}

#[test]
fn a_body_in_chunks_is_read_like_any_other() {
    let host = host();
    let (body, choices) = plain(&host);
    for size in [1, 2, 7, 4096] {
        let mut wire = Wire::open(&host.api);
        wire.head(CHAT, &[("transfer-encoding", "chunked")]);
        body.chunks(size).for_each(|chunk| wire.send_chunk(chunk));
        wire.send_chunk(b"");
        is_answer(&wire.reply(), &choices, &format!("chunks of {size}"));
    }
}

#[test]
fn a_limit_is_on_what_was_read_not_on_what_was_announced() {
    let host = host();
    let mut announced = Wire::open(&host.api);
    announced.head(CHAT, &[("content-length", &(MOST_BYTES + 1).to_string())]);
    is_error(&announced.reply(), 413, "request_too_large", "announced");
    let mut chunked = Wire::open(&host.api);
    chunked.head(CHAT, &[("transfer-encoding", "chunked")]);
    (0..MOST_BYTES / 1024).for_each(|_| chunked.send_chunk(&[b' '; 1024]));
    chunked.send_chunk(b" ");
    is_error(&chunked.reply(), 413, "request_too_large", "in chunks");
    // A client that writes all of it first gets to read the answer, too.
    let written = host.api.send("POST", CHAT, "application/json", vec![b' '; 8 << 20]);
    is_error(&written, 413, "request_too_large", "written whole");
}

#[test]
fn who_asks_before_sending_is_told_at_once() {
    let host = host();
    let (body, choices) = plain(&host);
    let ask = |headers: &[(&str, &str)]| {
        let mut wire = Wire::open(&host.api);
        wire.head(CHAT, &[headers, &[("expect", "100-continue")]].concat());
        wire
    };
    let mut with_length = ask(&[("content-length", &body.len().to_string())]);
    assert_eq!(with_length.read_head().0, 100);
    with_length.send(&body);
    is_answer(&with_length.reply(), &choices, "with a length");

    let mut without = ask(&[("transfer-encoding", "chunked")]);
    assert_eq!(without.read_head().0, 100);
    without.send_chunk(&body);
    without.send_chunk(b"");
    is_answer(&without.reply(), &choices, "without");

    let mut too_large = ask(&[("content-length", &(MOST_BYTES + 1).to_string())]);
    is_error(&too_large.reply(), 413, "request_too_large", "too large");
    let mut unknown = ask(&[("content-length", "10"), ("content-encoding", "lzma")]);
    is_error(&unknown.reply(), 415, "unsupported_content_encoding", "unknown");
}

#[test]
fn two_lengths_are_refused_and_the_connection_ends() {
    let host = host();
    let body = b"0\r\n\r\nGET /health/live HTTP/1.1\r\nhost: test\r\n\r\n";
    let lengths = [("content-length", "5"), ("transfer-encoding", "chunked")];
    for headers in [lengths, [lengths[1], lengths[0]]] {
        let mut wire = Wire::open(&host.api);
        wire.head(CHAT, &headers);
        wire.send(body);
        let reply = wire.reply();
        is_error(&reply, 400, "invalid_framing", "both");
        assert_eq!(reply.header("connection"), Some("close"), "what follows is not read as a request");
    }
    for length in ["-1", "5, 6", "5x", ""] {
        let mut wire = Wire::open(&host.api);
        wire.head(CHAT, &[("content-length", length)]);
        assert_eq!(wire.reply().status, 400, "{length:?}");
    }
}

#[test]
fn a_body_that_stops_coming_is_given_up() {
    let host = host();
    let mut with_length = Wire::open(&host.api);
    with_length.head(CHAT, &[("content-length", "100")]);
    with_length.send(b"{\"model\":");
    let mut chunked = Wire::open(&host.api);
    chunked.head(CHAT, &[("transfer-encoding", "chunked")]);
    chunked.send_chunk(b"{\"model\":");
    is_error(&with_length.reply(), 408, "request_timeout", "with a length");
    is_error(&chunked.reply(), 408, "request_timeout", "in chunks");
}
