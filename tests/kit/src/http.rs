//! A small blocking HTTP client for tests: JSON in, status and text or server-sent events out.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value;

/// Requests to one address.
#[derive(Debug, Clone)]
pub struct Client {
    /// Where the host listens.
    pub address: SocketAddr,
    agent: ureq::Agent,
    key: Option<String>,
    headers: Vec<(String, String)>,
}

/// An answer that was read whole.
#[derive(Debug)]
pub struct Reply {
    /// The status code.
    pub status: u16,
    /// Header names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

/// An open stream of server-sent events. Dropping it closes the connection.
pub struct Events {
    /// The status code.
    pub status: u16,
    lines: BufReader<Box<dyn Read + Send>>,
}

impl Client {
    /// A client without a key. Errors are answers, not failures; nothing takes longer than two minutes.
    pub fn new(address: SocketAddr) -> Client {
        let config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .timeout_global(Some(Duration::from_secs(120)))
            .max_idle_connections(0)
            .build();
        Client { address, agent: config.into(), key: None, headers: Vec::new() }
    }

    /// The same client with a bearer key.
    pub fn with_key(&self, key: &str) -> Client {
        Client { key: Some(key.to_owned()), ..self.clone() }
    }

    /// The same client with one more header on every request.
    pub fn with_header(&self, name: &str, value: &str) -> Client {
        let mut client = self.clone();
        client.headers.push((name.to_owned(), value.to_owned()));
        client
    }

    /// The address of a path.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// GET.
    pub fn get(&self, path: &str) -> Reply {
        self.send("GET", path, "", Vec::new())
    }

    /// DELETE.
    pub fn delete(&self, path: &str) -> Reply {
        self.send("DELETE", path, "", Vec::new())
    }

    /// POST of JSON.
    pub fn post(&self, path: &str, body: &Value) -> Reply {
        self.send("POST", path, "application/json", body.to_string().into_bytes())
    }

    /// Any method and body.
    pub fn send(&self, method: &str, path: &str, content_type: &str, body: Vec<u8>) -> Reply {
        self.answer(self.run(method, path, content_type, body)).expect("the body can be read")
    }

    /// The same of a host that may be gone: none when there is no whole answer.
    pub fn try_send(&self, method: &str, path: &str, content_type: &str, body: Vec<u8>) -> Option<Reply> {
        self.answer(self.try_run(method, path, content_type, body).ok()?).ok()
    }

    fn answer(&self, response: ureq::http::Response<ureq::Body>) -> std::io::Result<Reply> {
        let headers = response
            .headers()
            .iter()
            .map(|(name, value)| (name.to_string(), String::from_utf8_lossy(value.as_bytes()).into_owned()))
            .collect();
        let status = response.status().as_u16();
        let mut body = Vec::new();
        response.into_body().into_reader().read_to_end(&mut body)?;
        Ok(Reply { status, headers, body })
    }

    /// POST of JSON, answered by events.
    pub fn stream(&self, path: &str, body: &Value) -> Events {
        let response = self.run("POST", path, "application/json", body.to_string().into_bytes());
        let status = response.status().as_u16();
        Events { status, lines: BufReader::new(Box::new(response.into_body().into_reader())) }
    }

    fn run(
        &self,
        method: &str,
        path: &str,
        content_type: &str,
        body: Vec<u8>,
    ) -> ureq::http::Response<ureq::Body> {
        let answered = self.try_run(method, path, content_type, body);
        answered.unwrap_or_else(|error| panic!("{method} {path}: {error}"))
    }

    fn try_run(
        &self,
        method: &str,
        path: &str,
        content_type: &str,
        body: Vec<u8>,
    ) -> Result<ureq::http::Response<ureq::Body>, ureq::Error> {
        let mut request = ureq::http::Request::builder().method(method).uri(self.url(path));
        if !content_type.is_empty() {
            request = request.header("content-type", content_type);
        }
        if let Some(key) = &self.key {
            request = request.header("authorization", format!("Bearer {key}"));
        }
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        let request = request.body(body).expect("a request");
        self.agent.run(request)
    }

    /// Writes bytes as they are to a connection of their own and gives it back.
    pub fn raw(&self, bytes: &[u8]) -> TcpStream {
        let mut connection = TcpStream::connect(self.address).expect("it listens");
        connection.set_read_timeout(Some(Duration::from_secs(60))).expect("a timeout");
        connection.write_all(bytes).expect("it reads");
        connection
    }
}

impl Reply {
    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8(self.body.clone()).expect("UTF-8")
    }

    /// The body as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error} in {:?}", self.text()))
    }

    /// A header's value.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
    }
}

impl Events {
    /// The data of the next event; none at the end. Comments are skipped.
    pub fn next_data(&mut self) -> Option<String> {
        let mut line = String::new();
        loop {
            line.clear();
            if self.lines.read_line(&mut line).expect("the stream is not cut") == 0 {
                return None;
            }
            if let Some(data) = line.strip_prefix("data: ") {
                return Some(data.trim_end().to_owned());
            }
        }
    }

    /// All remaining events as JSON; asserts that the last one is `[DONE]`.
    pub fn rest(mut self) -> Vec<Value> {
        let mut chunks = Vec::new();
        while let Some(data) = self.next_data() {
            if data == "[DONE]" {
                assert_eq!(self.next_data(), None, "nothing follows [DONE]");
                return chunks;
            }
            chunks.push(serde_json::from_str(&data).unwrap_or_else(|error| panic!("{error} in {data:?}")));
        }
        panic!("the stream ended without [DONE] after {chunks:?}");
    }
}
