//! The store on this machine's disk.

mod engine;
mod record;
mod sessions;
mod start;
mod versions;

use std::{
    future::ready,
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
    sync::{Arc, mpsc},
    thread::{self, JoinHandle},
    time::{Duration, Instant, SystemTime},
};

pub use engine::OpenError;
use tokio::{
    runtime::{Handle, RuntimeFlavor},
    task::block_in_place,
};

use crate::{BoxFuture, Clock, Found, Listed, Session, SessionKey, SessionStore, StoreError, Version};
use sessions::{Seen, Sessions};

/// The disk has to rest in between.
const SHORTEST_SYNC: Duration = Duration::from_millis(10);

/// What a [`DiskStore`] keeps at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskLimits {
    /// Sessions; the one longest unused goes first.
    pub max_sessions: usize,
    /// Bytes of one session.
    pub max_session_bytes: usize,
    /// A session not used for so long is forgotten.
    pub ttl: Duration,
    /// How often what was committed is brought to the disk itself. A crash of the process loses no commit, a crash of the machine
    /// those of the last so long.
    pub sync_every: Duration,
}

impl Default for DiskLimits {
    fn default() -> DiskLimits {
        DiskLimits {
            max_sessions: 100_000,
            max_session_bytes: 1 << 20,
            ttl: Duration::from_secs(24 * 3600),
            sync_every: Duration::from_millis(250),
        }
    }
}

/// The clocks of a [`DiskStore`]; a test steps its own.
#[derive(Clone)]
pub struct DiskClocks {
    /// By it, sessions expire while the store is open.
    pub monotonic: Clock,
    /// Milliseconds since 1970 UTC. Says how long a session was not used while the store was closed.
    pub unix_ms: Arc<dyn Fn() -> i64 + Send + Sync>,
}

impl Default for DiskClocks {
    fn default() -> DiskClocks {
        let since_1970 = || SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let unix_ms = move || i64::try_from(since_1970().as_millis()).unwrap_or(i64::MAX);
        DiskClocks { monotonic: Arc::new(Instant::now), unix_ms: Arc::new(unix_ms) }
    }
}

/// Sessions in a folder of this machine, for one process at a time. In memory are about 300 bytes for each session, and
/// up to some 100 MB of the database, however many there are.
///
/// A commit is acknowledged when the operating system has it, so the end of the process, however sudden, loses nothing that was
/// acknowledged; a power cut may lose the commits of the last [`DiskLimits::sync_every`]. In either case a session is as one commit
/// left it, never a mixture. Uses without a commit are noted on disk once in a sixteenth of the time to live: after a crash,
/// a session may expire so much too early.
///
/// Its futures are to be awaited in a Tokio runtime. A commit whose future is dropped, or that fails as
/// [`StoreError::Unavailable`], may have been done or not: load again.
///
/// What is damaged on disk is told as such, by name, and never given for another session. Damage in the journal loses what was
/// committed after it and not yet sorted into tables; damage in the database's lists of its tables may keep it from opening.
///
/// After a failed write (a full disk) commits fail, while sessions can still be loaded, and are taken again within
/// `sync_every` of there being room.
pub struct DiskStore {
    sessions: Arc<Sessions>,
    keeper: Option<Keeper>,
}

/// The thread that syncs, sweeps and repairs.
struct Keeper {
    stop: mpsc::Sender<()>,
    thread: JoinHandle<()>,
}

impl DiskStore {
    /// Opens the sessions in this folder, which is made when it is not there. Reads a few bytes of each session.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn open(folder: impl AsRef<Path>, limits: DiskLimits) -> Result<DiskStore, OpenError> {
        DiskStore::open_with_clocks(folder, limits, DiskClocks::default())
    }

    /// The same, by the given clocks.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn open_with_clocks(
        folder: impl AsRef<Path>,
        limits: DiskLimits,
        clocks: DiskClocks,
    ) -> Result<DiskStore, OpenError> {
        let sessions = Arc::new(Sessions::open(folder.as_ref(), limits, clocks)?);
        let (stop, stopped) = mpsc::channel();
        let kept = sessions.clone();
        let keep = move || {
            let every = limits.sync_every.max(SHORTEST_SYNC);
            while stopped.recv_timeout(every) == Err(mpsc::RecvTimeoutError::Timeout) {
                // What fails is told to whoever commits, and tried again next time.
                let _ = catch_unwind(AssertUnwindSafe(|| kept.tend()));
            }
        };
        let thread = thread::Builder::new().name("sessions".into()).spawn(keep);
        let thread = thread.map_err(|error| OpenError::Failed {
            folder: folder.as_ref().to_owned(),
            why: format!("no thread for it: {error}"),
        })?;
        Ok(DiskStore { sessions, keeper: Some(Keeper { stop, thread }) })
    }

    /// Sessions held now.
    pub fn len(&self) -> usize {
        self.sessions.len()
    }

    /// Whether none is held.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Sessions that could not be read when the store was opened, and are out of its sight since; their heads are kept in the folder.
    pub fn moved_aside(&self) -> usize {
        self.sessions.moved_aside()
    }

    /// Does now what is otherwise done every [`DiskLimits::sync_every`]: repairs what failed, removes from the disk what is gone, and
    /// brings the rest to it. Waits for the disk.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub fn tend(&self) -> Result<(), StoreError> {
        self.sessions.tend()
    }
}

impl Drop for DiskStore {
    fn drop(&mut self) {
        if let Some(Keeper { stop, thread }) = self.keeper.take() {
            drop(stop);
            // It fails only after a panic, which was told.
            let _ = thread.join();
        }
        let _ = self.sessions.tend();
    }
}

/// Runs what may wait for the disk where nothing else waits for it.
///
/// In a runtime of many threads that is this thread, whose other tasks move to another one: mostly the system has the data at hand,
/// and to wake a thread for it would take longer than the work, above all where every processor is busy with a model.
fn on_disk<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> BoxFuture<'static, Result<T, StoreError>> {
    Box::pin(async {
        let Ok(runtime) = Handle::try_current() else {
            return Err(StoreError::Unavailable("it needs a Tokio runtime".into()));
        };
        // The database asserts a few things; a turn that meets such a case is told so, as of any other failure.
        let work = || {
            let done = catch_unwind(AssertUnwindSafe(work));
            done.unwrap_or_else(|_| Err(StoreError::Unavailable("the database failed; see the log".into())))
        };
        match runtime.runtime_flavor() {
            RuntimeFlavor::MultiThread => block_in_place(work),
            _ => {
                let done = runtime.spawn_blocking(work).await;
                done.unwrap_or_else(|error| Err(StoreError::Unavailable(error.to_string())))
            }
        }
    })
}

impl SessionStore for DiskStore {
    fn load(&self, key: &SessionKey) -> BoxFuture<'_, Result<Found, StoreError>> {
        // What is not there is known without the disk.
        match self.sessions.look(key) {
            Seen::New => Box::pin(ready(Ok(Found::New))),
            Seen::Expired => Box::pin(ready(Ok(Found::Expired))),
            Seen::Held => {
                let (sessions, key) = (self.sessions.clone(), key.clone());
                on_disk(move || sessions.load(&key))
            }
        }
    }

    fn commit(
        &self,
        key: &SessionKey,
        expected: Version,
        session: Session,
    ) -> BoxFuture<'_, Result<Version, StoreError>> {
        let (sessions, key) = (self.sessions.clone(), key.clone());
        on_disk(move || sessions.commit(&key, expected, &session))
    }

    fn delete(&self, key: &SessionKey) -> BoxFuture<'_, Result<bool, StoreError>> {
        let (sessions, key) = (self.sessions.clone(), key.clone());
        on_disk(move || sessions.delete(&key))
    }

    fn touch(&self, key: &SessionKey) -> BoxFuture<'_, Result<bool, StoreError>> {
        Box::pin(ready(Ok(self.sessions.touch(key).is_some())))
    }

    fn list(
        &self,
        tenant: &str,
        after: Option<&str>,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<Listed>, StoreError>> {
        Box::pin(ready(Ok(self.sessions.list(tenant, after, limit))))
    }

    fn ttl(&self) -> Duration {
        self.sessions.ttl()
    }
}
