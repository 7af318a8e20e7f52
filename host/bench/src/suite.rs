//! Suites: figures that take several servers, started for them, and that are compared side by side in one run.

mod dialogs;

use std::fmt;

use serde::Serialize;

use crate::{BenchError, Options};

/// One comparison.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    /// What was measured.
    pub work: &'static str,
    /// What it is measured in.
    pub unit: &'static str,
    /// With what the suite is about.
    pub ours: f64,
    /// Without it.
    pub base: f64,
    /// How many times less ours is.
    pub ratio: f64,
}

/// A server that was started for a suite. It ends, in order, when it is dropped.
pub trait Server {
    /// Its address.
    fn url(&self) -> &str;
}

/// How a suite wants a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setup {
    /// Servers of the same number have the same state, one after the other.
    pub state: u32,
    /// Whether what was computed is found again by later prompts.
    pub prefix_cache: bool,
    /// Whether blocks that the pool has no room for are kept below it, in memory and on disk.
    pub tiers: bool,
    /// Memory for keys and values, in MiB.
    pub kv_mib: usize,
}

/// Starts a server.
pub(crate) type Start<'a> = &'a mut dyn FnMut(&Setup) -> Result<Box<dyn Server>, BenchError>;

/// A suite by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Suite {
    /// Dialogs that go on in a session, against dialogs that are sent and computed whole each time.
    Dialogs,
}

impl Suite {
    /// Runs it. `progress` gets a line for each part.
    ///
    /// # Errors
    /// When a server cannot be started, or does not answer a turn.
    pub fn run(
        self,
        start: Start<'_>,
        options: &Options,
        progress: &dyn Fn(&str),
    ) -> Result<Vec<Row>, BenchError> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(BenchError::Runtime)?;
        match self {
            Suite::Dialogs => dialogs::Dialogs::new(&runtime, start, options, progress).run(),
        }
    }
}

impl Row {
    fn new(work: &'static str, unit: &'static str, ours: f64, base: f64) -> Row {
        Row { work, unit, ours, base, ratio: base / ours }
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Row { work, unit, ours, base, ratio } = self;
        write!(f, "{work:<28} {ours:>12.1} {base:>12.1} {unit:<6} {ratio:>7.2}x")
    }
}
