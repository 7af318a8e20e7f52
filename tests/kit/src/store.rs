//! A server that policies are fetched from: files, and the few routes of an OCI registry that pulling takes. It can be made
//! to misbehave, and remembers what it was asked.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use serde_json::json;
use sha2::{Digest, Sha256};

const TOKEN: &str = "a-token-that-everyone-gets";

/// What is at a path.
#[derive(Debug, Clone)]
pub enum Route {
    /// These bytes.
    File(Vec<u8>),
    /// Another address.
    Redirect(String),
    /// An answer that never comes.
    Hang,
    /// A body that does not end.
    Endless,
    /// A connection that is closed without an answer.
    Closed,
    /// An error.
    Status(u16),
}

/// The server, on a port of its own for as long as the test runs.
#[derive(Debug, Clone)]
pub struct Store {
    /// Where it listens.
    pub address: SocketAddr,
    shared: Arc<Mutex<Shared>>,
}

#[derive(Debug, Default)]
struct Shared {
    routes: BTreeMap<String, Route>,
    asked: Vec<String>,
    down: bool,
    wants_token: bool,
}

/// As it is written in a configuration.
pub fn digest(bytes: &[u8]) -> String {
    let hex: String = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{hex}")
}

impl Store {
    /// With nothing in it.
    pub fn start() -> Store {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let store = Store { address, shared: Arc::default() };
        let served = store.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let store = served.clone();
                thread::spawn(move || store.answer(stream));
            }
        });
        store
    }

    /// The address of a path.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// A path gets this, in the place of what it had.
    pub fn put(&self, path: &str, route: Route) {
        self.shared.lock().expect("shared").routes.insert(path.to_owned(), route);
    }

    /// A repository gets this image under this tag: one layer of `application/wasm`, and a signature where there is one.
    /// The digest of its manifest.
    pub fn push(&self, repository: &str, tag: &str, component: &[u8], signature: Option<&str>) -> String {
        let config = b"{}".as_slice();
        let blob = |kind: &str, bytes: &[u8]| json!({"mediaType": kind, "digest": digest(bytes), "size": bytes.len()});
        let mut manifest = json!({
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "config": blob("application/vnd.wasm.config.v0+json", config),
            "layers": [blob("application/wasm", component)],
        });
        if let Some(signature) = signature {
            manifest["annotations"] = json!({"jackfield.minisig": signature});
        }
        let manifest = manifest.to_string().into_bytes();
        let of = digest(&manifest);
        for version in [tag, &of] {
            self.put(&format!("/v2/{repository}/manifests/{version}"), Route::File(manifest.clone()));
        }
        for bytes in [config, component] {
            self.put(&format!("/v2/{repository}/blobs/{}", digest(bytes)), Route::File(bytes.to_vec()));
        }
        of
    }

    /// From now on its registry wants a token of everyone, as public ones do.
    pub fn want_token(&self) {
        self.shared.lock().expect("shared").wants_token = true;
    }

    /// Whether every connection is closed without an answer.
    pub fn set_down(&self, down: bool) {
        self.shared.lock().expect("shared").down = down;
    }

    /// The paths that were asked for, in their order.
    pub fn asked(&self) -> Vec<String> {
        self.shared.lock().expect("shared").asked.clone()
    }

    fn answer(&self, mut stream: TcpStream) {
        let mut lines = BufReader::new(stream.try_clone().expect("a second handle")).lines();
        let request = lines.next().and_then(Result::ok).unwrap_or_default();
        let mut has_token = false;
        while let Some(line) = lines.next().and_then(Result::ok).filter(|line| !line.is_empty()) {
            has_token |= line.ends_with(TOKEN);
        }
        let path = request.split(' ').nth(1).unwrap_or_default().to_owned();
        let route = self.route(&path, has_token);
        // A client that has gone is its own business.
        let _ = match route {
            Route::File(bytes) => reply(&mut stream, "200 OK", "", &bytes),
            Route::Redirect(to) => {
                reply(&mut stream, "307 Temporary Redirect", &format!("location: {to}\r\n"), b"")
            }
            Route::Status(401) => {
                let realm = format!(
                    "www-authenticate: Bearer realm=\"{}\",service=\"store\",scope=\"repository:x:pull\"\r\n",
                    self.url("/token")
                );
                reply(&mut stream, "401 Unauthorized", &realm, b"{}")
            }
            Route::Status(status) => reply(&mut stream, &format!("{status} Status"), "", b"no"),
            Route::Endless => endless(&mut stream),
            Route::Hang => {
                thread::sleep(Duration::from_secs(600));
                Ok(())
            }
            Route::Closed => Ok(()),
        };
    }

    fn route(&self, path: &str, has_token: bool) -> Route {
        let mut shared = self.shared.lock().expect("shared");
        shared.asked.push(path.to_owned());
        if shared.down {
            return Route::Closed;
        }
        if path.starts_with("/token?") {
            return match path.contains("service=store") && path.contains("scope=repository:x:pull") {
                true => Route::File(json!({"token": TOKEN}).to_string().into_bytes()),
                false => Route::Status(400),
            };
        }
        if shared.wants_token && path.starts_with("/v2/") && !has_token {
            return Route::Status(401);
        }
        shared.routes.get(path).cloned().unwrap_or(Route::Status(404))
    }
}

fn reply(stream: &mut TcpStream, status: &str, headers: &str, body: &[u8]) -> std::io::Result<()> {
    let head =
        format!("HTTP/1.1 {status}\r\n{headers}content-length: {}\r\nconnection: close\r\n\r\n", body.len());
    stream.write_all(head.as_bytes())?;
    stream.write_all(body)
}

/// Until the client has had enough.
fn endless(stream: &mut TcpStream) -> std::io::Result<()> {
    stream.write_all(b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n")?;
    let piece = vec![0; 64 << 10];
    loop {
        stream.write_all(&piece)?;
    }
}
