//! Shared test support: a Redis server of a test's own, which can be killed, stopped and started again.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use tempfile::TempDir;

/// A server on a free port, in a folder of its own. Killed when dropped.
#[derive(Debug)]
pub struct RedisServer {
    address: Ipv4Addr,
    port: u16,
    folder: TempDir,
    /// What it is started by, where not directly.
    within: Vec<String>,
    args: Vec<String>,
    process: Option<Child>,
}

impl RedisServer {
    /// With an append-only file. None, and said aloud, when the program is missing, unless `JACKFIELD_REQUIRE_REDIS=1`.
    pub fn start() -> Option<RedisServer> {
        RedisServer::start_with(&["--appendonly", "yes", "--appendfsync", "always"])
    }

    /// The same with these settings instead; without any, nothing outlives the process.
    pub fn start_with(args: &[&str]) -> Option<RedisServer> {
        let port = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr());
        RedisServer::start_at((Ipv4Addr::LOCALHOST, port.expect("a port").port()), &[], args)
    }

    /// At this address, and started by a command that is given its own.
    pub fn start_at((address, port): (Ipv4Addr, u16), within: &[&str], args: &[&str]) -> Option<RedisServer> {
        let there = Command::new("redis-server").arg("--version").stdout(Stdio::null()).status();
        if there.is_err() {
            let required = std::env::var("JACKFIELD_REQUIRE_REDIS").is_ok_and(|value| value == "1");
            assert!(!required, "redis-server is not installed");
            eprintln!("SKIPPED: redis-server is not installed; nothing was tested");
            return None;
        }
        let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        let folder = tempfile::tempdir().expect("a folder");
        let (within, args) = (owned(within), owned(args));
        let mut server = RedisServer { address, port, folder, within, args, process: None };
        server.run();
        Some(server)
    }

    /// Starts it again, on the same port and folder, and waits until it answers.
    pub fn run(&mut self) {
        let words = self.within.iter().map(String::as_str).chain(["redis-server"]);
        let words: Vec<&str> = words.collect();
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).args(["--bind", &self.address.to_string(), "--save", ""]);
        command.args(["--port", &self.port.to_string()]).args(&self.args);
        command.arg("--dir").arg(self.folder.path());
        self.process = Some(command.stdout(Stdio::null()).spawn().expect("starts"));
        for _ in 0..600 {
            if self.answers() {
                return;
            }
            thread::sleep(Duration::from_millis(50));
        }
        panic!("redis-server does not answer");
    }

    /// Anything but that it is loading still.
    fn answers(&self) -> bool {
        if !self.within.is_empty() {
            return true; // it may be out of reach
        }
        let Ok(mut stream) = TcpStream::connect((self.address, self.port)) else { return false };
        let mut answer = [0; 5];
        stream.write_all(b"PING\r\n").and_then(|()| stream.read_exact(&mut answer)).is_ok()
            && answer != *b"-LOAD"
    }

    /// Ends it as a power cut would.
    pub fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            // One that is stopped ends as well.
            let _ = process.kill();
            let _ = process.wait();
        }
    }

    /// `STOP`: it neither answers nor closes, as behind a broken network. `CONT`: it goes on.
    pub fn signal(&self, name: &str) {
        let id = self.process.as_ref().expect("runs").id();
        let sent = Command::new("kill").arg(format!("-{name}")).arg(id.to_string()).status().expect("kill");
        assert!(sent.success());
    }

    /// `HOST:PORT`.
    pub fn address(&self) -> String {
        format!("{}:{}", self.address, self.port)
    }

    /// Its first database.
    pub fn url(&self) -> String {
        format!("redis://{}/0", self.address())
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        self.kill();
    }
}
