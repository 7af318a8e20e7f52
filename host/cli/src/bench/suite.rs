//! `jackfield bench --suite`: servers of its own, each a process like any other, with a state folder that goes with the run.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use jackfield_bench::{BenchError, Options, Row, Server, Setup, Suite};

use super::cannot_write;
use crate::Failure;
use crate::args::{BenchArgs, SuiteName};

/// How long a server may take to listen; fetching a model is not part of it.
const START_LIMIT: Duration = Duration::from_secs(120);
/// How long it may take to end once it was asked to; then it is killed.
const END_LIMIT: Duration = Duration::from_secs(40);

pub(super) fn run(name: SuiteName, args: &BenchArgs, options: &Options) -> Result<(), Failure> {
    let SuiteName::Dialogs = name;
    let folder = tempfile::tempdir().map_err(Failure::failed)?;
    let mut start = |setup: &Setup| {
        let process = Process::start(setup, args.model.as_deref(), folder.path());
        process.map(|process| Box::new(process) as Box<dyn Server>).map_err(BenchError::Server)
    };
    let rows = Suite::Dialogs.run(&mut start, options, &|line| eprintln!("{line}"));
    let rows = rows.map_err(Failure::failed)?;
    println!("{:<28} {:>12} {:>12} {:<6} {:>8}", "", "ours", "base", "", "base/ours");
    rows.iter().for_each(|row| println!("{row}"));
    match &args.json {
        Some(path) => write(path, &rows),
        None => Ok(()),
    }
}

fn write(path: &Path, rows: &[Row]) -> Result<(), Failure> {
    let json = serde_json::to_string_pretty(rows).map_err(Failure::failed)? + "\n";
    fs::write(path, json).map_err(|error| cannot_write(path, &error))
}

/// `jackfield serve` as a process.
struct Process {
    child: Child,
    url: String,
}

impl Process {
    fn start(setup: &Setup, model: Option<&str>, folder: &Path) -> Result<Process, String> {
        let say = |error: std::io::Error| error.to_string();
        let config = folder.join(format!("{}.toml", setup.state));
        fs::write(&config, toml_of(setup)).map_err(say)?;
        let (api, admin) = (free_address().map_err(say)?, free_address().map_err(say)?);
        let mut command = Command::new(std::env::current_exe().map_err(say)?);
        command.arg("serve").arg("--config").arg(&config);
        command.arg("--state").arg(folder.join(setup.state.to_string()));
        command.args(["--listen", &api.to_string(), "--admin-listen", &admin.to_string()]);
        if let Some(model) = model {
            command.args(["--model", model]);
        }
        let child = command.env("RUST_LOG", "error").stdin(Stdio::null()).stdout(Stdio::null()).spawn();
        let mut process = Process { child: child.map_err(say)?, url: format!("http://{api}") };
        process.wait_for(api)?;
        Ok(process)
    }

    /// It listens once the model is loaded.
    fn wait_for(&mut self, address: SocketAddr) -> Result<(), String> {
        let begun = Instant::now();
        while TcpStream::connect(address).is_err() {
            if let Ok(Some(status)) = self.child.try_wait() {
                return Err(format!("it ended with {status}; what it said stands above"));
            }
            if begun.elapsed() > START_LIMIT {
                return Err(format!("it did not listen within {} s", START_LIMIT.as_secs()));
            }
            thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }
}

impl Server for Process {
    fn url(&self) -> &str {
        &self.url
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        terminate(&self.child);
        let begun = Instant::now();
        while begun.elapsed() < END_LIMIT {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            thread::sleep(Duration::from_millis(20));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Asks it to end in order.
fn terminate(child: &Child) {
    // One that has ended already is what is wanted.
    let _ = Command::new("kill").arg(child.id().to_string()).stderr(Stdio::null()).status();
}

/// Nobody listens there now; somebody might in the next instant, and then the server says so.
fn free_address() -> std::io::Result<SocketAddr> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()
}

fn toml_of(setup: &Setup) -> String {
    let Setup { prefix_cache, tiers, kv_mib, .. } = setup;
    let below = if *tiers { "" } else { "kv_memory_mib = 0\nkv_disk_mib = 0\n" };
    format!("[engine]\nprefix_cache = {prefix_cache}\nkv_mib = {kv_mib}\n{below}")
}
