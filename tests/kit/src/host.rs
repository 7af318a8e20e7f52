//! The real binary, running: started on free ports with a state folder of its own, stopped when dropped.

use std::fmt;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::http::Client;

/// How long a host may take to listen; loading compiled policies on a busy machine is the longest part.
const START_LIMIT: Duration = Duration::from_secs(180);

/// How a host is started.
#[derive(Debug, Clone, Default)]
pub struct HostOptions {
    /// The model file.
    pub model: PathBuf,
    /// What is in its `jackfield.toml`; none is given to it where this is empty.
    pub config: String,
    /// A folder of built policies.
    pub policies: Option<PathBuf>,
    /// State that outlives the host; none gives it a folder of its own.
    pub state: Option<PathBuf>,
    /// What it logs, as `RUST_LOG` has it.
    pub log: Option<&'static str>,
}

/// A running host.
pub struct RunningHost {
    child: Child,
    /// The API.
    pub api: Client,
    /// The admin API.
    pub admin: Client,
    log: Arc<Mutex<String>>,
    folder: tempfile::TempDir,
}

impl RunningHost {
    /// Starts the binary and waits until it listens. Panics with its log when it does not.
    pub fn start(options: &HostOptions) -> RunningHost {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut child = spawn(options, folder.path());
        let log = Arc::new(Mutex::new(String::new()));
        let lines = follow(&mut child, Arc::clone(&log));
        let Some((api, admin)) = wait_for_addresses(&lines) else {
            let _ = child.kill();
            panic!("the host did not start; its log:\n{}", log.lock().expect("log"));
        };
        RunningHost { child, api: Client::new(api), admin: Client::new(admin), log, folder }
    }

    /// A host with a tiny model of random weights and no policies.
    pub fn tiny() -> RunningHost {
        RunningHost::start(&HostOptions { model: tiny_model_file(), ..HostOptions::default() })
    }

    /// A host with this model file and these lines of `jackfield.toml`, and no policies. The file is gone once it runs.
    pub fn with_model(model: &[u8], config: &str) -> RunningHost {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("model.gguf");
        fs::write(&path, model).expect("a model file");
        RunningHost::start(&HostOptions { model: path, config: config.into(), ..HostOptions::default() })
    }

    /// Waits until nothing runs, waits or holds a KV block; panics when that does not come about.
    pub fn settle(&self) {
        let gauges = [
            "running_sequences",
            "waiting_requests",
            "preempted_sequences",
            "in_flight_requests",
            "kv_blocks_used",
        ];
        for gauge in gauges {
            let name = format!("jackfield_{gauge}");
            self.eventually(&name, Duration::from_secs(60), |host| host.metric(&name, "") == 0.0);
        }
    }

    /// What it has logged so far.
    pub fn log(&self) -> String {
        self.log.lock().expect("log").clone()
    }

    /// The process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// A sample of `/metrics`: the sum over all series of that name whose labels contain `labels`.
    pub fn metric(&self, name: &str, labels: &str) -> f64 {
        let text = self.api.get("/metrics").text();
        text.lines()
            .filter(|line| line.starts_with(name) && line.contains(labels))
            .filter(|line| line[name.len()..].starts_with(['{', ' ']))
            .filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok())
            .sum()
    }

    /// Waits until `holds`, for at most `limit`; panics with `what` otherwise.
    pub fn eventually(&self, what: &str, limit: Duration, holds: impl Fn(&RunningHost) -> bool) {
        let begun = Instant::now();
        while !holds(self) {
            assert!(begun.elapsed() < limit, "{what}: not within {limit:?}; log:\n{}", self.log());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Its configuration file.
    pub fn config_file(&self) -> PathBuf {
        self.folder.path().join("jackfield.toml")
    }

    /// Gives it another configuration, as an editor would: whole, by a rename.
    pub fn configure(&self, config: &str) {
        let part = self.folder.path().join(".jackfield.toml.part");
        fs::write(&part, config).expect("a configuration");
        fs::rename(&part, self.config_file()).expect("a rename");
    }

    /// Sends SIGHUP.
    pub fn hang_up(&self) {
        let sent = Command::new("kill").args(["-HUP", &self.pid().to_string()]).status().expect("kill runs");
        assert!(sent.success());
    }

    /// Sends SIGTERM.
    pub fn terminate(&self) {
        let sent = Command::new("kill").arg(self.pid().to_string()).status().expect("kill runs");
        assert!(sent.success());
    }

    /// Waits for the process to end.
    pub fn wait(&mut self) -> ExitStatus {
        self.child.wait().expect("the child can be waited for")
    }
}

impl Drop for RunningHost {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl fmt::Debug for RunningHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunningHost")
            .field("api", &self.api)
            .field("admin", &self.admin)
            .finish_non_exhaustive()
    }
}

/// The binary: in a folder above the running test, else where `cargo build --release` puts it.
pub fn binary() -> PathBuf {
    let test = std::env::current_exe().expect("the test's own path");
    let above = test.ancestors().skip(1).map(|folder| folder.join("jackfield"));
    let built = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/release/jackfield");
    let found = above.chain([built]).find(|path| path.is_file());
    found.unwrap_or_else(|| {
        panic!("no jackfield binary near {}; run `cargo build --release` first", test.display())
    })
}

/// The shipped policies, as `tests/run` builds them.
pub fn shipped_policies() -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/policies");
    assert!(
        folder.is_dir(),
        "{} is missing; run `cargo run --release -- policy build --out target/policies plugins`",
        folder.display()
    );
    folder
}

/// A tiny model of random weights, written once per process.
pub fn tiny_model_file() -> PathBuf {
    static FILE: std::sync::OnceLock<(tempfile::TempDir, PathBuf)> = std::sync::OnceLock::new();
    let (_, path) = FILE.get_or_init(|| {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("tiny.gguf");
        fs::write(&path, crate::tiny_model::TinyModel::default().bytes()).expect("a model file");
        (folder, path)
    });
    path.clone()
}

fn spawn(options: &HostOptions, folder: &Path) -> Child {
    let config = folder.join("jackfield.toml");
    fs::write(&config, &options.config).expect("a configuration");
    let state = options.state.clone().unwrap_or_else(|| folder.join("state"));
    let mut command = Command::new(binary());
    command
        .args(["serve", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"])
        .arg("--model")
        .arg(&options.model)
        .arg("--state")
        .arg(state)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    if !options.config.is_empty() {
        command.arg("--config").arg(&config);
    }
    if let Some(policies) = &options.policies {
        command.arg("--policies").arg(policies);
    }
    if let Some(log) = options.log {
        command.env("RUST_LOG", log);
    }
    command.spawn().expect("the binary starts")
}

/// Keeps the child's log and passes its lines on.
fn follow(child: &mut Child, log: Arc<Mutex<String>>) -> Receiver<String> {
    let stderr = child.stderr.take().expect("piped");
    let (sender, lines) = mpsc::channel();
    std::thread::spawn(move || {
        let mut stderr = BufReader::new(stderr);
        let mut line = String::new();
        while stderr.read_line(&mut line).is_ok_and(|read| read > 0) {
            log.lock().expect("log").push_str(&line);
            let _ = sender.send(std::mem::take(&mut line));
        }
        let _ = stderr.read_to_end(&mut Vec::new());
    });
    lines
}

fn wait_for_addresses(lines: &Receiver<String>) -> Option<(SocketAddr, SocketAddr)> {
    let until = Instant::now() + START_LIMIT;
    loop {
        let line = lines.recv_timeout(until.saturating_duration_since(Instant::now())).ok()?;
        let Ok(entry) = serde_json::from_str::<Value>(&line) else { continue };
        let fields = &entry["fields"];
        if fields["message"] == "listening" {
            let address = |name: &str| fields[name].as_str()?.parse().ok();
            return Some((address("api")?, address("admin")?));
        }
    }
}
