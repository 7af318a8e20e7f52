//! What the host keeps of one call: its limits, what is left of them, and the imports.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use wasmtime::{ResourceLimiter, Result, Trap, UpdateDeadline};

use super::{
    deadline::{Deadline, thread_time},
    log_budget::LogBudget,
    ticker,
};
use crate::{Fault, Grant, HostServices, Limits, Manifest, meter::Meter};

/// Elements of all tables of an instance together.
const MAX_TABLE_ELEMENTS: usize = 100_000;

/// What a call is made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// `describe`, `configure` and `interests`.
    Setup,
    /// The work.
    Work,
}

/// What a policy's imports are served with, and where that is counted.
#[derive(Clone)]
pub(crate) struct Imports {
    pub(crate) services: Arc<dyn HostServices>,
    pub(crate) meter: Arc<Meter>,
}

/// What the host keeps of one call.
pub(crate) struct CallState {
    pub(super) imports: Imports,
    pub(super) policy: Arc<str>,
    limits: Limits,
    phase: Phase,
    deadline: Deadline,
    memory_bytes: usize,
    memory_denied: bool,
    table_elements: usize,
    host_calls: u32,
    /// None while it is set up: its words are for whoever brings it.
    pub(super) log_budget: Option<Arc<LogBudget>>,
}

/// An import that the host refused to serve.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Denied(pub(crate) Fault);

impl CallState {
    pub(crate) fn new(
        imports: Imports,
        manifest: &Manifest,
        policy: Arc<str>,
        phase: Phase,
        deadline_ms: u32,
    ) -> CallState {
        CallState {
            imports,
            policy,
            limits: Limits { deadline_ms, ..manifest.limits },
            phase,
            deadline: Deadline::new(deadline_ms, Instant::now()),
            memory_bytes: 0,
            memory_denied: false,
            table_elements: 0,
            host_calls: 0,
            log_budget: None,
        }
    }

    /// Lines are written within this from now on.
    pub(super) fn log_within(&mut self, budget: &Arc<LogBudget>) {
        self.log_budget = Some(budget.clone());
    }

    /// The work begins in an instance that was set up, with the time since `started` counted.
    pub(super) fn begin(&mut self, imports: Imports, deadline_ms: u32, started: Instant) {
        self.imports = imports;
        self.phase = Phase::Work;
        self.limits.deadline_ms = deadline_ms;
        self.deadline = Deadline::new(deadline_ms, started);
        self.host_calls = 0;
    }

    /// What its instance has taken of linear memory.
    pub(super) fn memory_bytes(&self) -> usize {
        self.memory_bytes
    }

    /// Begin a deadline anew.
    pub(super) fn restart(&mut self, deadline_ms: u32) {
        self.limits.deadline_ms = deadline_ms;
        self.deadline = Deadline::new(deadline_ms, Instant::now());
    }

    /// Whether the call goes on, at the epoch it was to be looked at.
    pub(super) fn look(&mut self) -> UpdateDeadline {
        match self.deadline.left(Instant::now(), thread_time) {
            Some(left) => UpdateDeadline::Continue(ticker::epochs(left)),
            None => UpdateDeadline::Interrupt,
        }
    }

    /// Count a host call against its limit and the deadline; what is left of that.
    pub(super) fn enter(&mut self, grant: Grant) -> Result<Duration> {
        if self.phase == Phase::Setup && grant != Grant::Log {
            let import = grant.name();
            return Err(Denied(Fault::NotInSetup { import }).into());
        }
        self.host_calls += 1;
        if self.host_calls > self.limits.host_calls {
            let limit = self.limits.host_calls;
            return Err(Denied(Fault::HostCalls { limit }).into());
        }
        self.left()
    }

    /// What is left of the deadline.
    pub(super) fn left(&mut self) -> Result<Duration> {
        let limit_ms = self.limits.deadline_ms;
        let left = self.deadline.left(Instant::now(), thread_time);
        left.ok_or_else(|| Denied(Fault::Deadline { limit_ms }).into())
    }

    /// The guest let its thread wait for this long.
    pub(super) fn waited(&mut self, time: Duration) {
        self.deadline.waited(time);
    }

    /// What an error of the runtime means. `making` an instance, or else calling it.
    pub(crate) fn fault(&self, error: &wasmtime::Error, making: bool) -> Fault {
        if let Some(Denied(fault)) = error.downcast_ref::<Denied>() {
            return fault.clone();
        }
        let trap = error.downcast_ref::<Trap>();
        if trap == Some(&Trap::Interrupt) {
            let limit_ms = self.limits.deadline_ms;
            return Fault::Deadline { limit_ms };
        }
        if self.memory_denied {
            let limit_bytes = self.limits.memory_bytes;
            return Fault::Memory { limit_bytes };
        }
        if let Some(trap) = trap {
            let code = trap.to_string();
            let code = code.strip_prefix("wasm trap: ").unwrap_or(&code).to_owned();
            return Fault::Trap { code };
        }
        let text = error.root_cause().to_string();
        // The runtime keeps this error's type to itself; a test with an answer too large holds us to its words.
        if text.contains("fuel allocated for hostcalls") {
            let limit_bytes = self.limits.output_bytes;
            return Fault::OutputTooLarge { limit_bytes };
        }
        match making {
            true => Fault::Instantiate { what: text },
            false => Fault::Invalid { what: text },
        }
    }
}

impl ResourceLimiter for CallState {
    fn memory_growing(&mut self, now: usize, wanted: usize, _: Option<usize>) -> Result<bool> {
        let total = self.memory_bytes + wanted.saturating_sub(now);
        if total > self.limits.memory_bytes {
            self.memory_denied = true;
            return Ok(false);
        }
        self.memory_bytes = total;
        Ok(true)
    }

    fn table_growing(&mut self, now: usize, wanted: usize, _: Option<usize>) -> Result<bool> {
        let total = self.table_elements + wanted.saturating_sub(now);
        if total > MAX_TABLE_ELEMENTS {
            self.memory_denied = true;
            return Ok(false);
        }
        self.table_elements = total;
        Ok(true)
    }
}
