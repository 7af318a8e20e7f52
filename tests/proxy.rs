//! Behind a real nginx as its package configures it: what is streamed arrives while it is made.
//!
//! Needs `nginx` on the PATH. Where it is missing the test says so and ends, unless `JACKFIELD_REQUIRE_NGINX` is set, as it
//! is where everything is installed.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use jackfield_testkit::generate::default_model;
use jackfield_testkit::host::{HostOptions, RunningHost};

/// What Debian's `nginx.conf` sets that matters here, and a plain `proxy_pass`: buffering is on.
fn configuration(folder: &Path, listen: u16, host: SocketAddr) -> String {
    let folder = folder.display();
    format!(
        "daemon off; pid {folder}/pid; error_log {folder}/error.log; events {{ worker_connections 64; }}\n\
         http {{ access_log off; gzip on; sendfile on; tcp_nopush on;\n\
         client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;\n\
         uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;\n\
         server {{ listen 127.0.0.1:{listen}; location / {{ proxy_pass http://{host}; }} }} }}\n"
    )
}

struct Nginx {
    child: Child,
    address: SocketAddr,
    _folder: tempfile::TempDir,
}

impl Drop for Nginx {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn nginx_before(host: SocketAddr) -> Nginx {
    let folder = tempfile::tempdir().expect("a folder");
    let address = TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr()).expect("a free port");
    let file = folder.path().join("nginx.conf");
    fs::write(&file, configuration(folder.path(), address.port(), host)).expect("written");
    let child = Command::new("nginx")
        .args(["-p", folder.path().to_str().expect("UTF-8"), "-c", file.to_str().expect("UTF-8")])
        .stdout(Stdio::null())
        .spawn()
        .expect("nginx starts");
    let nginx = Nginx { child, address, _folder: folder };
    let until = Instant::now() + Duration::from_secs(30);
    while TcpStream::connect(address).is_err() {
        assert!(Instant::now() < until, "nginx does not listen");
        std::thread::sleep(Duration::from_millis(20));
    }
    nginx
}

/// Streams an answer that is far smaller than nginx's buffers and returns what came with the first text.
fn until_first_text(proxy: SocketAddr, encoding: &str) -> (String, String) {
    let body = r#"{"model":"default","stream":true,"max_tokens":24,"ignore_eos":true,"temperature":0,
        "messages":[{"role":"user","content":"Count from one to twenty."}]}"#;
    let mut stream = TcpStream::connect(proxy).expect("nginx listens");
    write!(
        stream,
        "POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\naccept-encoding: {encoding}\r\ncontent-type: application/json\r\n\
         content-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    )
    .expect("sent");
    let (mut first, mut buffer) = (Vec::new(), [0; 64 << 10]);
    while !String::from_utf8_lossy(&first).contains(r#""content":""#) {
        let read = stream.read(&mut buffer).expect("an answer");
        assert!(read > 0, "it ended: {}", String::from_utf8_lossy(&first));
        first.extend_from_slice(&buffer[..read]);
    }
    let mut rest = String::new();
    stream.read_to_string(&mut rest).expect("the rest");
    (String::from_utf8_lossy(&first).into_owned(), rest)
}

#[test]
fn text_does_not_wait_in_a_proxy_for_the_end() {
    if Command::new("nginx").arg("-v").stderr(Stdio::null()).status().is_err() {
        assert!(std::env::var_os("JACKFIELD_REQUIRE_NGINX").is_none(), "nginx is missing");
        eprintln!("not tested: nginx is not installed");
        return;
    }
    let host = RunningHost::start(&HostOptions { model: default_model(), ..HostOptions::default() });
    let nginx = nginx_before(host.api.address);
    for encoding in ["identity", "zstd, gzip"] {
        // A machine that stops this test for the length of an answer would see all at once: so several tries. A proxy that
        // keeps the answer until its end does so in all of them.
        let early = (0..8).any(|_| {
            let (first, rest) = until_first_text(nginx.address, encoding);
            assert!((first.clone() + &rest).contains("[DONE]"), "the stream is complete");
            !first.contains("[DONE]")
        });
        assert!(early, "accept-encoding {encoding}: the whole answer came at its end");
    }
}
