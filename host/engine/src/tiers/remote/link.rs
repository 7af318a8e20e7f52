//! The way to the server: open connections while it answers, and a thread that looks for it while it does not.
//!
//! Who wants something of the server pays for finding out that it is gone at most once, with one timeout. From then on it is
//! down, and everything is refused at once, until a thread of its own has reached it again: it alone looks names up, waits and
//! tries.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use redis::{RedisError, RedisResult, Value, cmd};

use super::RemoteTier;
use super::connection::{Connection, Request, SHORT};
use super::pause::Pause;
use crate::tiers::stats::Counter;
use crate::tiers::warnings::Warnings;

/// The way to one server. Its thread ends when it is dropped.
pub(super) struct Link(Arc<Shared>);

struct Shared {
    config: RemoteTier,
    state: Mutex<State>,
    changed: Condvar,
    failures: Counter,
    warnings: Warnings,
}

#[derive(Default)]
struct State {
    /// Where the server was reached; none while it is down.
    address: Option<SocketAddr>,
    /// Connections that nobody uses now.
    idle: Vec<Connection>,
    pause: Pause,
    /// How often it was reached after it had been down.
    times_up: u64,
    closed: bool,
}

impl Link {
    /// Tries once, so that a host that starts has the server from its first turn on.
    ///
    /// # Errors
    /// The system refused a thread. A server that does not answer is none.
    pub(super) fn open(config: &RemoteTier) -> io::Result<Link> {
        let shared = Arc::new(Shared {
            config: config.clone(),
            state: Mutex::default(),
            changed: Condvar::new(),
            failures: Counter::default(),
            warnings: Warnings::default(),
        });
        shared.try_once();
        let tending = Arc::clone(&shared);
        std::thread::Builder::new().name("kv-remote".into()).spawn(move || tending.tend())?;
        Ok(Link(shared))
    }

    pub(super) fn is_up(&self) -> bool {
        self.0.state().address.is_some()
    }

    /// Grows whenever the server may be another than before, or empty.
    pub(super) fn times_up(&self) -> u64 {
        self.0.state().times_up
    }

    pub(super) fn failures(&self) -> u64 {
        self.0.failures.get()
    }

    /// The answers to some commands; none while the server is down, or when it is found to be.
    pub(super) fn ask(&self, request: Request<'_>) -> Option<Vec<Value>> {
        let (address, idle) = {
            let mut state = self.0.state();
            (state.address?, state.idle.pop())
        };
        match self.0.ask(address, idle, request) {
            Ok((connection, answers)) => {
                let mut state = self.0.state();
                if !answers.iter().any(|answer| matches!(answer, Value::ServerError(_))) {
                    state.pause.reset();
                }
                state.idle.push(connection);
                Some(answers)
            }
            Err(error) => {
                self.fail(&error);
                None
            }
        }
    }

    /// The server is of no use for now.
    pub(super) fn fail(&self, error: &RedisError) {
        self.0.fail(error);
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.0.state().closed = true;
        self.0.changed.notify_all();
    }
}

impl Shared {
    fn ask(
        &self,
        address: SocketAddr,
        idle: Option<Connection>,
        request: Request<'_>,
    ) -> RedisResult<(Connection, Vec<Value>)> {
        if let Some(mut connection) = idle {
            match connection.ask(request) {
                Ok(answers) => return Ok((connection, answers)),
                Err(error) if error.is_timeout() => return Err(error),
                // The server may have closed it for having been idle, or have been restarted and be empty.
                Err(_) => {
                    let mut state = self.state();
                    state.idle.clear();
                    state.times_up += 1;
                }
            }
        }
        let mut connection = Connection::open(&self.config.server, address, request.until)?;
        let answers = connection.ask(request)?;
        Ok((connection, answers))
    }

    fn fail(&self, error: &RedisError) {
        self.failures.add(1);
        {
            let mut state = self.state();
            state.address = None;
            state.idle.clear();
        }
        self.changed.notify_all();
        if self.warnings.may_say(error.category()) {
            let server = &self.config.server;
            tracing::warn!(%server, %error, "the server for KV blocks is of no use; what it has is computed again");
        }
    }

    /// Looks for the server whenever it is down.
    fn tend(&self) {
        loop {
            let is_up = |state: &mut State| state.address.is_some() && !state.closed;
            let mut state =
                self.changed.wait_while(self.state(), is_up).unwrap_or_else(PoisonError::into_inner);
            let pause = state.pause.begin(Instant::now());
            let waited = self.changed.wait_timeout_while(state, pause, |state| !state.closed);
            if waited.unwrap_or_else(PoisonError::into_inner).0.closed {
                return;
            }
            self.try_once();
        }
    }

    fn try_once(&self) {
        match self.reach() {
            Ok((address, connection)) => {
                let mut state = self.state();
                state.address = Some(address);
                state.idle.push(connection);
                state.times_up += 1;
                drop(state);
                if self.warnings.may_say("up") {
                    tracing::info!(server = %self.config.server, "the server for KV blocks answers");
                }
            }
            Err(error) => self.fail(&error),
        }
    }

    /// Connects to the first of the server's addresses that answers.
    fn reach(&self) -> RedisResult<(SocketAddr, Connection)> {
        let server = &self.config.server;
        let mut last = io::Error::other("its name has no address").into();
        for address in (server.host.as_str(), server.port).to_socket_addrs()? {
            match self.greet(address) {
                Ok(connection) => return Ok((address, connection)),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    fn greet(&self, address: SocketAddr) -> RedisResult<Connection> {
        let until = Instant::now() + self.config.timeout;
        let mut connection = Connection::open(&self.config.server, address, until)?;
        // Not PING, which a server refuses that only cannot write.
        let mut exists = cmd("EXISTS");
        exists.arg("jackfield:kv");
        for answer in connection.ask(Request { commands: &[exists], most: SHORT, until })? {
            answer.extract_error()?;
        }
        Ok(connection)
    }

    /// It is whole between any two calls, whatever panicked.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
