//! The server over real sockets, with a tiny model and no policies.

mod support;

use std::io::Write;

use jackfield_server::{ApiKey, ServerConfig};
use serde_json::{Value, json};
use support::{Server, raw, read, request};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

fn chat(extra: Value) -> Value {
    let mut body = json!({
        "model": "tiny", "temperature": 0, "max_tokens": 24, "messages": [{"role": "user", "content": "hello world"}]
    });
    body.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
    body
}

fn text_of(events: &[String], index: usize) -> String {
    let chunks = events.iter().filter_map(|event| serde_json::from_str::<Value>(event).ok());
    let choices = chunks.flat_map(|chunk| chunk["choices"].as_array().cloned().unwrap_or_default());
    let mine = choices.filter(|choice| choice["index"] == index);
    mine.filter_map(|choice| choice["delta"]["content"].as_str().map(str::to_owned)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_and_a_whole_answer_say_the_same() {
    let server = Server::start(ServerConfig::default()).await;
    let whole = server.post("/v1/chat/completions", &chat(json!({"n": 2}))).await;
    assert_eq!(whole.status, 200, "{}", whole.body);
    let options = json!({"n": 2, "stream": true, "stream_options": {"include_usage": true}});
    let stream = server.post("/v1/chat/completions", &chat(options)).await;
    assert_eq!(stream.header("content-type"), Some("text/event-stream; charset=utf-8"));
    assert_eq!(stream.header("x-accel-buffering"), Some("no"));
    let events = stream.events();
    assert_eq!(events.last().unwrap(), "[DONE]");
    let whole = whole.json();
    for index in 0..2 {
        assert_eq!(whole["choices"][index]["message"]["content"], text_of(&events, index));
    }
    let usage: Value = serde_json::from_str(&events[events.len() - 2]).unwrap();
    assert_eq!(usage["choices"], json!([]));
    for field in ["prompt_tokens", "completion_tokens"] {
        assert_eq!(usage["usage"][field], whole["usage"][field], "{usage} {whole}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn raw_completions_and_their_logprobs() {
    let server = Server::start(ServerConfig::default()).await;
    let body =
        json!({"model": "default", "prompt": "hello", "max_tokens": 8, "temperature": 0, "logprobs": 2});
    let answer = server.post("/v1/completions", &body).await.json();
    let choice = &answer["choices"][0];
    let tokens = choice["logprobs"]["tokens"].as_array().unwrap();
    let text: String = tokens.iter().filter_map(Value::as_str).collect();
    assert_eq!(choice["text"], text);
    assert_eq!(answer["object"], "text_completion");
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_have_one_shape_on_every_way_to_make_one() {
    let server = Server::start(ServerConfig { max_body_bytes: 2000, ..ServerConfig::default() }).await;
    let large = json!({"model": "tiny", "messages": [{"role": "user", "content": "x".repeat(3000)}]});
    let long = json!({"model": "tiny", "messages": [{"role": "user", "content": "y ".repeat(900)}]});
    let answers = [
        (server.get("/nowhere").await, 404, "unknown_url"),
        (server.get("/v1/chat/completions").await, 405, "method_not_allowed"),
        (server.get("/v1/models/other").await, 404, "model_not_found"),
        (server.post("/v1/chat/completions", &chat(json!({"model": "other"}))).await, 404, "model_not_found"),
        (server.post("/v1/chat/completions", &chat(json!({"temperature": 3}))).await, 400, "invalid_value"),
        (server.post("/v1/chat/completions", &chat(json!({"session": "../x"}))).await, 400, "invalid_value"),
        (server.post("/v1/chat/completions", &large).await, 413, "request_too_large"),
        (server.post("/v1/chat/completions", &long).await, 400, "context_length_exceeded"),
        (
            server.post("/v1/chat/completions", &chat(json!({"max_tokens": 5000}))).await,
            400,
            "context_length_exceeded",
        ),
    ];
    for (answer, status, code) in answers {
        assert_eq!(answer.status, status, "{}", answer.body);
        let body = answer.json();
        assert_eq!(body["error"]["code"], code, "{body}");
        assert_eq!(body["error"].as_object().unwrap().len(), 4);
    }
    let fine = server.post("/v1/chat/completions", &chat(json!({}))).await;
    assert_eq!(fine.status, 200, "{}", fine.body);
}

#[tokio::test(flavor = "multi_thread")]
async fn two_lengths_are_refused_in_either_order() {
    let server = Server::start(ServerConfig::default()).await;
    let body = chat(json!({})).to_string();
    let chunked = format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len());
    for headers in
        ["content-length: 5\r\ntransfer-encoding: chunked", "transfer-encoding: chunked\r\ncontent-length: 5"]
    {
        let text = format!("POST /v1/chat/completions HTTP/1.1\r\nhost: a\r\n{headers}\r\n\r\n{chunked}");
        let answer = raw(server.api, text.as_bytes()).await;
        assert_eq!((answer.status, answer.json()["error"]["code"].as_str()), (400, Some("invalid_framing")));
    }
    let text = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: a\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n{chunked}"
    );
    assert_eq!(raw(server.api, text.as_bytes()).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_encoded_body_is_the_same_request() {
    let server = Server::start(ServerConfig::default()).await;
    let plain = server.post("/v1/chat/completions", &chat(json!({}))).await.json();
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(chat(json!({})).to_string().as_bytes()).unwrap();
    let body = encoder.finish().unwrap();
    let send = |encoding, body: &[u8]| {
        request("POST", "/v1/chat/completions", &[("content-encoding", encoding)], body)
    };
    let encoded = raw(server.api, &send("gzip", &body)).await.json();
    assert_eq!(encoded["choices"], plain["choices"]);
    assert_eq!(raw(server.api, &send("gzip", &body[..body.len() / 2])).await.status, 400);
    assert_eq!(raw(server.api, &send("zstd", &body)).await.status, 400);
    assert_eq!(raw(server.api, &send("snappy", &body)).await.status, 415);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_leaves_frees_its_place() {
    let server = Server::start(ServerConfig::default()).await;
    for stream in [true, false] {
        let body = chat(json!({"max_tokens": 480, "ignore_eos": true, "stream": stream})).to_string();
        let mut client = TcpStream::connect(server.api).await.unwrap();
        client.write_all(&request("POST", "/v1/chat/completions", &[], body.as_bytes())).await.unwrap();
        if stream {
            client.read_exact(&mut [0; 200]).await.unwrap();
        }
        drop(client);
        server.until("jackfield_turns_in_progress", 0.0).await;
        server.until("jackfield_running_sequences", 0.0).await;
        server.until("jackfield_kv_blocks_used", 0.0).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_open_the_api_and_only_the_admin_key_the_admin_api() {
    let key = ApiKey { key: "key-of-a".into(), tenant: "a".into() };
    let config =
        ServerConfig { keys: vec![key], admin_key: Some("key-of-admin".into()), ..ServerConfig::default() };
    let server = Server::start(config).await;
    let get = |address, path, key: &str| {
        let bearer = format!("Bearer {key}");
        let bytes = request("GET", path, &[("authorization", &bearer)], b"");
        async move { raw(address, &bytes).await.status }
    };
    assert_eq!(get(server.api, "/v1/models", "key-of-a").await, 200);
    assert_eq!(get(server.api, "/v1/models", "key-of-admin").await, 401);
    assert_eq!(get(server.admin, "/admin/policies", "key-of-admin").await, 200);
    assert_eq!(get(server.admin, "/admin/policies", "key-of-a").await, 401);
    assert_eq!(get(server.api, "/admin/policies", "key-of-admin").await, 404);
    assert_eq!(server.get("/health/ready").await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn expect_continue_is_answered_before_the_body() {
    let server = Server::start(ServerConfig { max_body_bytes: 1000, ..ServerConfig::default() }).await;
    let body = chat(json!({})).to_string();
    let head = |length: usize| {
        format!(
            "POST /v1/chat/completions HTTP/1.1\r\nhost: a\r\nconnection: close\r\ncontent-length: {length}\r\n\
             expect: 100-continue\r\n\r\n"
        )
    };
    let mut client = TcpStream::connect(server.api).await.unwrap();
    client.write_all(head(body.len()).as_bytes()).await.unwrap();
    let mut go_on = [0; 25];
    client.read_exact(&mut go_on).await.unwrap();
    assert_eq!(&go_on, b"HTTP/1.1 100 Continue\r\n\r\n");
    client.write_all(body.as_bytes()).await.unwrap();
    assert_eq!(read(&mut client).await.status, 200);
    let mut large = TcpStream::connect(server.api).await.unwrap();
    large.write_all(head(5000).as_bytes()).await.unwrap();
    assert_eq!(read(&mut large).await.status, 413);
}

#[tokio::test(flavor = "multi_thread")]
async fn http_2_without_an_upgrade() {
    use http_body_util::{BodyExt, Full};
    use hyper_util::rt::{TokioExecutor, TokioIo};

    let server = Server::start(ServerConfig::default()).await;
    let stream = TcpStream::connect(server.api).await.unwrap();
    let (mut sender, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    let body = chat(json!({"stream": true})).to_string();
    let request = hyper::Request::post(format!("http://{}/v1/chat/completions", server.api))
        .body(Full::new(bytes::Bytes::from(body)))
        .unwrap();
    let response = sender.send_request(request).await.unwrap();
    assert_eq!((response.status().as_u16(), response.version()), (200, hyper::Version::HTTP_2));
    let text = String::from_utf8(response.into_body().collect().await.unwrap().to_bytes().to_vec()).unwrap();
    assert!(text.ends_with("data: [DONE]\n\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_go_there_and_back() {
    let server = Server::start(ServerConfig::default()).await;
    let tokens = server.post("/tokenize", &json!({"prompt": "hello 中文 <|im_end|>"})).await.json();
    assert_eq!(tokens["count"], tokens["tokens"].as_array().unwrap().len());
    let text = server.post("/detokenize", &json!({"tokens": tokens["tokens"]})).await.json();
    assert_eq!(text["prompt"], "hello 中文 <|im_end|>");
}

#[tokio::test(flavor = "multi_thread")]
async fn uploads_that_are_none_are_named() {
    let server = Server::start(ServerConfig::default()).await;
    let send = |method, path, body: &'static [u8]| {
        let bytes = request(method, path, &[("content-type", "application/wasm")], body);
        let admin = server.admin;
        async move { raw(admin, &bytes).await }
    };
    let unknown = send("PUT", "/admin/policies/p", b"\0asm").await;
    assert_eq!((unknown.status, unknown.json()["error"]["param"].as_str()), (404, Some("manifest")));
    assert_eq!(send("DELETE", "/admin/policies/p", b"").await.status, 404);
    assert_eq!(send("POST", "/admin/policies/p/rollback", b"").await.status, 404);
    let generations = send("GET", "/admin/generations", b"").await.json();
    assert_eq!(generations["generations"].as_array().unwrap().len(), 1);
}
