//! A server on loopback with a tiny model and no policies, and a client that writes raw bytes.

// Seen by the tests that name this module, each of which uses a part of it.
#![allow(dead_code, unreachable_pub)]

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use jackfield_dialog::{MemoryLimits, MemoryStore};
use jackfield_engine::{Engine, EngineConfig};
use jackfield_model::{Cpu, Gguf, Model};
use jackfield_policy::{NoServices, Registry, Runtime, RuntimeConfig};
use jackfield_server::{Host, ServerConfig, serve};
use jackfield_testkit::tiny_model::TinyModel;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// A running server; it ends with the test.
pub struct Server {
    pub api: SocketAddr,
    pub admin: SocketAddr,
}

/// An answer, read to its end.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: String,
}

impl Answer {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.find(|(have, _)| have.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    /// The payloads of the events of a stream.
    pub fn events(&self) -> Vec<String> {
        let frames = self.body.split("\n\n").filter(|frame| !frame.is_empty() && !frame.starts_with(':'));
        frames.map(|frame| frame.strip_prefix("data: ").expect("a data line").to_owned()).collect()
    }
}

impl Server {
    pub async fn start(config: ServerConfig) -> Server {
        let engine = EngineConfig { kv_bytes: 1 << 22, ..EngineConfig::default() };
        let cpu = Cpu::new(1);
        let gguf = Gguf::from_bytes(TinyModel::default().bytes()).expect("the tiny model is a model file");
        let model = Model::from_gguf(gguf, Arc::clone(&cpu)).expect("the tiny model loads");
        let runtime = Runtime::new(RuntimeConfig::default(), Arc::new(NoServices)).expect("a policy runtime");
        let host = Host {
            engine: Engine::start(model, &cpu, &engine).expect("the engine starts"),
            registry: Registry::open(runtime, None).expect("an empty registry"),
            sessions: Arc::new(MemoryStore::new(MemoryLimits::default())),
            embed: None,
            config,
            swaps: Default::default(),
        };
        let api = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let admin = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (api_address, admin_address) = (api.local_addr().unwrap(), admin.local_addr().unwrap());
        tokio::spawn(serve(host, api, admin, std::future::pending()));
        Server { api: api_address, admin: admin_address }
    }

    pub async fn post(&self, path: &str, body: &Value) -> Answer {
        raw(self.api, &request("POST", path, &[], body.to_string().as_bytes())).await
    }

    pub async fn get(&self, path: &str) -> Answer {
        raw(self.api, &request("GET", path, &[], b"")).await
    }

    /// The value of a metric without labels.
    pub async fn metric(&self, name: &str) -> f64 {
        let text = self.get("/metrics").await.body;
        let line = text.lines().find(|line| line.split(' ').next() == Some(name));
        let line = line.unwrap_or_else(|| panic!("{name} is not in\n{text}"));
        line.rsplit(' ').next().unwrap().parse().unwrap()
    }

    /// Waits until a metric has a value; the test harness's own timeout ends it otherwise.
    pub async fn until(&self, name: &str, wanted: f64) {
        while self.metric(name).await != wanted {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

/// A request as bytes; the connection is closed after its answer.
pub fn request(method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Vec<u8> {
    let mut text = format!("{method} {path} HTTP/1.1\r\nhost: test\r\nconnection: close\r\n");
    if !body.is_empty() {
        text += &format!("content-length: {}\r\n", body.len());
    }
    for (name, value) in headers {
        text += &format!("{name}: {value}\r\n");
    }
    text += "\r\n";
    [text.as_bytes(), body].concat()
}

/// Sends bytes and reads the answer to its end.
pub async fn raw(address: SocketAddr, bytes: &[u8]) -> Answer {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(bytes).await.unwrap();
    read(&mut stream).await
}

/// Reads one answer to the end of the connection.
pub async fn read(stream: &mut TcpStream) -> Answer {
    let mut bytes = Vec::new();
    // A server that refuses early may reset the connection after its answer.
    let _ = stream.read_to_end(&mut bytes).await;
    let text = String::from_utf8(bytes).expect("an answer is text");
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no head in {text:?}"));
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    let chunked = head.to_ascii_lowercase().contains("transfer-encoding: chunked");
    Answer { status, head: head.to_owned(), body: if chunked { unchunk(body) } else { body.to_owned() } }
}

fn unchunk(mut text: &str) -> String {
    let mut out = String::new();
    while let Some((size, rest)) = text.split_once("\r\n") {
        let size = usize::from_str_radix(size, 16).expect("a chunk size");
        if size == 0 {
            break;
        }
        out.push_str(&rest[..size]);
        text = &rest[size + 2..];
    }
    out
}
