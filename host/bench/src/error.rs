//! Why there is no report; each text says what to do.

use std::path::PathBuf;

/// Why no load could be made.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// No workload of that name ships, and no such file is there.
    #[error("no workload is called {name:?}; there are {}; or give the path of a .toml file", .known.join(", "))]
    UnknownWorkload {
        /// What was asked for.
        name: String,
        /// What ships.
        known: Vec<&'static str>,
    },
    /// A workload's file cannot be read.
    #[error("cannot read {}: {cause}", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        cause: std::io::Error,
    },
    /// A workload's file is not TOML, or has a field that is not known.
    #[error("workload {name}: {cause}")]
    Parse {
        /// The workload.
        name: String,
        /// With line and column.
        cause: Box<toml::de::Error>,
    },
    /// A workload asks for something that cannot be.
    #[error("workload {name}: {what}")]
    Invalid {
        /// The workload.
        name: String,
        /// Phase, lane, field and what it may be.
        what: String,
    },
    /// The address cannot be used.
    #[error("{url:?} is not an address: {why}; give one like http://127.0.0.1:8080")]
    Url {
        /// What was given.
        url: String,
        /// What is wrong with it.
        why: String,
    },
    /// Nothing answers at the address.
    #[error("nothing answers at {url} ({cause}); start a server first: jackfield serve")]
    Refused {
        /// The address.
        url: String,
        /// What the system says.
        cause: String,
    },
    /// The first request, which only tries the address, was not answered as it should be.
    #[error("{url} answered the first request with: {what}{}", hint(.what))]
    Probe {
        /// The address.
        url: String,
        /// What it answered.
        what: String,
    },
    /// The process to watch cannot be watched.
    #[error("process {pid} cannot be watched: {cause}")]
    Process {
        /// As given.
        pid: u32,
        /// Why.
        cause: String,
    },
    /// A server of a suite did not start.
    #[error("a server for the suite did not start: {0}")]
    Server(String),
    /// A turn of a suite was not answered.
    #[error("a turn was not answered: {what}")]
    Turn {
        /// What came instead.
        what: String,
    },
    /// The system gives no runtime.
    #[error("cannot start: {0}")]
    Runtime(std::io::Error),
}

fn hint(what: &str) -> &'static str {
    match what {
        _ if what.starts_with("status 401") || what.starts_with("status 403") => "; give a key with --key",
        _ if what.starts_with("status 404") => {
            "; is it an OpenAI-compatible server, and is --model one of its models?"
        }
        _ => "",
    }
}
