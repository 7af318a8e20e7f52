//! One connection, byte by byte: for tests of what a well-behaved client never sends, and of how bytes arrive.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use serde_json::Value;
use socket2::SockRef;

use crate::http::{Client, Reply};

/// Nothing that a test waits for takes longer, even on a machine with much else to do.
const PATIENCE: Duration = Duration::from_secs(120);

/// A connection to a host.
#[derive(Debug)]
pub struct Wire {
    stream: BufReader<TcpStream>,
    /// What arrived of a stream of events and is no whole frame yet.
    pending: String,
}

/// How a client goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leave {
    /// In order: FIN.
    Fin,
    /// In a hurry: RST.
    Rst,
}

impl Wire {
    /// A new connection.
    pub fn open(client: &Client) -> Wire {
        let stream = TcpStream::connect(client.address).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        stream.set_nodelay(true).expect("small writes go at once");
        Wire { stream: BufReader::new(stream), pending: String::new() }
    }

    /// A new connection with a POST of JSON on its way.
    pub fn post(client: &Client, path: &str, headers: &[(&str, &str)], body: &Value) -> Wire {
        let body = body.to_string().into_bytes();
        let length = body.len().to_string();
        let mut wire = Wire::open(client);
        wire.head(path, &[headers, &[("content-length", &length)]].concat());
        wire.send(&body);
        wire
    }

    /// Sends the head of a POST.
    pub fn head(&mut self, path: &str, headers: &[(&str, &str)]) {
        let mut head = format!("POST {path} HTTP/1.1\r\nhost: test\r\ncontent-type: application/json\r\n");
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        self.send(format!("{head}\r\n").as_bytes());
    }

    /// Sends bytes as they are.
    pub fn send(&mut self, bytes: &[u8]) {
        self.stream.get_mut().write_all(bytes).expect("it reads");
    }

    /// Sends one chunk of a chunked body; an empty one ends it.
    pub fn send_chunk(&mut self, bytes: &[u8]) {
        self.send(&[format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat());
    }

    /// Reads an answer whole, with a body that has a length or comes in chunks.
    pub fn reply(&mut self) -> Reply {
        let (status, headers) = self.read_head();
        let mut reply = Reply { status, headers, body: Vec::new() };
        if let Some(length) = reply.header("content-length") {
            reply.body = vec![0; length.parse().expect("a length")];
            self.stream.read_exact(&mut reply.body).expect("the whole body");
        } else if reply.header("transfer-encoding").is_some() {
            while let Some(chunk) = self.chunk() {
                reply.body.extend(chunk);
            }
        }
        reply
    }

    /// Reads the head of an answer: status and headers, names in lower case.
    pub fn read_head(&mut self) -> (u16, Vec<(String, String)>) {
        let first = self.line();
        let status = first.split(' ').nth(1).and_then(|word| word.parse().ok());
        let mut headers = Vec::new();
        loop {
            let line = self.line();
            let Some((name, value)) = line.split_once(':') else {
                return (status.unwrap_or_else(|| panic!("no status in {first:?}")), headers);
            };
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
    }

    /// The next frame of a stream of events, as it stands between two empty lines; none at its end.
    pub fn frame(&mut self) -> Option<String> {
        loop {
            if let Some(end) = self.pending.find("\n\n") {
                let rest = self.pending.split_off(end + 2);
                let frame = std::mem::replace(&mut self.pending, rest);
                return Some(frame.trim_end().to_owned());
            }
            let Some(chunk) = self.chunk() else {
                assert_eq!(self.pending, "", "the stream ends with a whole frame");
                return None;
            };
            self.pending.push_str(std::str::from_utf8(&chunk).expect("each write is whole characters"));
        }
    }

    /// Goes away.
    pub fn leave(self, how: Leave) {
        let stream = self.stream.into_inner();
        match how {
            Leave::Fin => stream.shutdown(Shutdown::Both).expect("still connected"),
            Leave::Rst => {
                SockRef::from(&stream).set_linger(Some(Duration::ZERO)).expect("a socket option");
            }
        }
    }

    fn chunk(&mut self) -> Option<Vec<u8>> {
        let length = self.line();
        let length = usize::from_str_radix(&length, 16).unwrap_or_else(|_| panic!("no chunk but {length:?}"));
        let mut chunk = vec![0; length];
        self.stream.read_exact(&mut chunk).expect("the whole chunk");
        self.line();
        Some(chunk).filter(|chunk| !chunk.is_empty())
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.stream.read_line(&mut line).expect("the connection is not cut");
        line.trim_end().to_owned()
    }
}
