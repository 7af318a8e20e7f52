//! The clock that ends calls at their deadline.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

use wasmtime::{Engine, EngineWeak};

/// Time between two epochs.
pub(super) const TICK: Duration = Duration::from_millis(2);

/// A thread of its own that moves the engine's epoch on, and does nothing else: no lock, no allocation, no call that could
/// fail. Should it end all the same, the next call of a policy finds out and starts another.
pub(super) struct Ticker {
    engine: Engine,
    beat: Arc<Beat>,
}

struct Beat {
    running: AtomicBool,
    starts: AtomicU64,
}

impl Ticker {
    /// Start ticking.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub(super) fn start(engine: &Engine) -> std::io::Result<Ticker> {
        let ticker = Ticker {
            engine: engine.clone(),
            beat: Arc::new(Beat { running: AtomicBool::new(false), starts: AtomicU64::new(0) }),
        };
        ticker.ensure()?;
        Ok(ticker)
    }

    /// Start the thread if it does not run. Cheap when it does.
    pub(super) fn ensure(&self) -> std::io::Result<()> {
        if self.beat.running.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        self.beat.starts.fetch_add(1, Ordering::Relaxed);
        let guard = Running(self.beat.clone());
        let engine = self.engine.weak();
        thread::Builder::new().name("policy-ticker".into()).spawn(move || tick(engine, guard)).map(drop)
    }

    /// Whether the thread runs.
    pub(super) fn is_running(&self) -> bool {
        self.beat.running.load(Ordering::Acquire)
    }

    /// How often the thread was started: once, unless something ended it.
    pub(super) fn starts(&self) -> u64 {
        self.beat.starts.load(Ordering::Relaxed)
    }
}

/// Says so when the thread ends, in whatever way, or was never started.
struct Running(Arc<Beat>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.running.store(false, Ordering::Release);
    }
}

/// Ticks as long as somebody else holds the engine.
fn tick(engine: EngineWeak, running: Running) {
    loop {
        thread::sleep(TICK);
        match engine.upgrade() {
            Some(engine) => engine.increment_epoch(),
            None => break,
        }
    }
    drop(running);
}

/// Epochs after which a time is over: never earlier than it says, and at most two ticks later.
pub(super) fn epochs(time: Duration) -> u64 {
    time.as_nanos().div_ceil(TICK.as_nanos()) as u64 + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_rounded_up() {
        assert_eq!(epochs(Duration::from_millis(1)), 2);
        assert_eq!(epochs(Duration::from_millis(50)), 26);
        assert_eq!(epochs(Duration::from_micros(50_001)), 27);
    }

    #[test]
    fn a_thread_that_ended_is_started_again() {
        let engine = Engine::default();
        let ticker = Ticker::start(&engine).expect("a thread");
        ticker.ensure().expect("runs already");
        assert_eq!(ticker.starts(), 1);
        // As its guard does when the thread ends.
        drop(Running(ticker.beat.clone()));
        assert!(!ticker.is_running());
        ticker.ensure().expect("a thread");
        assert!(ticker.is_running());
        assert_eq!(ticker.starts(), 2);
    }
}
