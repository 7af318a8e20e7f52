//! The database under a disk store: opened, written, repaired.

use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io::{ErrorKind, Write},
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
    sync::{
        Mutex, PoisonError, RwLock,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use fjall::{Database, Keyspace, KeyspaceCreateOptions, OwnedWriteBatch, PersistMode, Slice};

use crate::StoreError;

/// Memory for blocks of the database that were read.
const CACHE_BYTES: u64 = 16 << 20;
/// Memory for records that only the journal has on disk, per table; up to twice as much while they are written.
const UNSORTED_BYTES: u64 = 32 << 20;
/// Writes wait while so many portions of them wait to be sorted. Less than the 4 at which the database itself waits.
const MOST_UNSORTED: usize = 3;
/// The database lets its journal grow so far: what is read again after a crash.
const JOURNAL_BYTES: u64 = 128 << 20;
/// As much must fit on the disk before a database that failed to write is tried again.
const ROOM_BYTES: usize = 1 << 20;

/// Why a folder of sessions cannot be opened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// Another process has it open: stop that one, or give this one a folder of its own.
    #[error("the sessions in {0} are in use by another process")]
    Locked(PathBuf),
    /// It cannot be read or written.
    #[error("the sessions in {folder} cannot be opened: {why}")]
    Failed {
        /// The folder.
        folder: PathBuf,
        /// What the system or the database says.
        why: String,
    },
}

/// The open tables.
pub(super) struct Tables {
    db: Database,
    /// Key to [`Head`](super::record::Head).
    pub(super) heads: Keyspace,
    /// Key to session.
    pub(super) bodies: Keyspace,
    /// The store's own numbers.
    pub(super) own: Keyspace,
    /// Heads that could not be read, as they were.
    pub(super) aside: Keyspace,
}

/// A database that is opened again when it could not be written.
pub(super) struct Engine {
    folder: PathBuf,
    /// None after it could not be opened again.
    tables: RwLock<Option<Tables>>,
    /// Whether a write failed. The database takes none after that, since it does not know what is on disk, until it is opened again.
    broken: AtomicBool,
    why: Mutex<String>,
    unsynced: AtomicBool,
    /// Held as long as the tables are, which stand before it.
    _lock: Lock,
}

/// A locked file.
struct Lock(File);

impl Drop for Lock {
    fn drop(&mut self) {
        // To close it is not enough: a process that was started just now may still have it open, until it is its own program.
        let _ = self.0.unlock();
    }
}

impl Engine {
    pub(super) fn open(folder: &Path) -> Result<Engine, OpenError> {
        let failed = |why: String| OpenError::Failed { folder: folder.to_owned(), why };
        make_private(folder).map_err(|error| failed(error.to_string()))?;
        let lock = File::create(folder.join("lock")).map_err(|error| failed(error.to_string()))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(OpenError::Locked(folder.to_owned())),
            Err(TryLockError::Error(error)) => return Err(failed(error.to_string())),
        }
        create(folder).and_then(|()| Tables::open(&database(folder))).map_err(failed).map(|tables| Engine {
            folder: folder.to_owned(),
            tables: RwLock::new(Some(tables)),
            broken: AtomicBool::new(false),
            why: Mutex::default(),
            unsynced: AtomicBool::new(true),
            _lock: Lock(lock),
        })
    }

    /// Reads from the tables. What was written before a failure can still be read.
    pub(super) fn read<T>(&self, read: impl FnOnce(&Tables) -> fjall::Result<T>) -> Result<T, StoreError> {
        let tables = self.tables.read().unwrap_or_else(PoisonError::into_inner);
        let tables = tables.as_ref().ok_or_else(|| self.unavailable())?;
        read(tables).map_err(|error| StoreError::Unavailable(error.to_string()))
    }

    /// Makes changes together or not at all. They outlive this process when it returns, and the machine after [`Engine::sync`].
    pub(super) fn write(&self, change: impl FnOnce(&mut OwnedWriteBatch, &Tables)) -> Result<(), StoreError> {
        let tables = self.tables.read().unwrap_or_else(PoisonError::into_inner);
        let tables = tables.as_ref().filter(|_| !self.is_broken()).ok_or_else(|| self.unavailable())?;
        tables.wait_for_sorting().map_err(|error| self.broke(&error))?;
        let mut batch = tables.db.batch();
        change(&mut batch, tables);
        batch.commit().map_err(|error| self.broke(&error))?;
        self.unsynced.store(true, Ordering::Release);
        Ok(())
    }

    /// Brings what was written to the disk itself.
    pub(super) fn sync(&self) -> Result<(), StoreError> {
        let tables = self.tables.read().unwrap_or_else(PoisonError::into_inner);
        let tables = tables.as_ref().filter(|_| !self.is_broken()).ok_or_else(|| self.unavailable())?;
        if !self.unsynced.swap(false, Ordering::AcqRel) {
            return Ok(());
        }
        let synced = sync_journals(&database(&self.folder)).map_err(fjall::Error::Io);
        let synced =
            synced.and_then(|some| if some { Ok(()) } else { tables.db.persist(PersistMode::SyncData) });
        synced.map_err(|error| self.broke(&error))
    }

    pub(super) fn is_broken(&self) -> bool {
        self.broken.load(Ordering::Acquire)
    }

    /// Opens a broken database again, once there is room. Until then it can be read.
    pub(super) fn repair(&self) -> Result<(), StoreError> {
        self.find_room().map_err(|error| self.broke(&error))?;
        let mut tables = self.tables.write().unwrap_or_else(PoisonError::into_inner);
        // Two at once would be one too many: the old one goes first, with its threads.
        *tables = None;
        *tables = Some(Tables::open(&database(&self.folder)).map_err(|why| self.broke(&why))?);
        self.broken.store(false, Ordering::Release);
        Ok(())
    }

    fn find_room(&self) -> std::io::Result<()> {
        let path = self.folder.join("room");
        let written = File::create(&path).and_then(|mut file| {
            file.write_all(&vec![0; ROOM_BYTES])?;
            file.sync_all()
        });
        let removed = fs::remove_file(&path);
        written.and(removed)
    }

    fn broke(&self, error: &dyn std::fmt::Display) -> StoreError {
        let mut why = self.why.lock().unwrap_or_else(PoisonError::into_inner);
        // The first error says more than those that follow from it.
        if !self.broken.swap(true, Ordering::AcqRel) || why.is_empty() {
            *why = error.to_string();
        }
        StoreError::Unavailable(error.to_string())
    }

    fn unavailable(&self) -> StoreError {
        let why = self.why.lock().unwrap_or_else(PoisonError::into_inner);
        StoreError::Unavailable(format!("waiting until the disk can be written again, after: {why}"))
    }
}

impl Tables {
    /// Opens the database at `path`, and makes what it lacks.
    fn open(path: &Path) -> Result<Tables, String> {
        // The database checks what it reads, but asserts a few things too; damaged files are no reason to panic here.
        let opened = catch_unwind(AssertUnwindSafe(|| Tables::try_open(path)));
        opened.unwrap_or_else(|_| Err("its files are damaged".into()))
    }

    fn try_open(path: &Path) -> Result<Tables, String> {
        let open = || -> fjall::Result<Tables> {
            let db = Database::builder(path)
                .cache_size(CACHE_BYTES)
                .max_journaling_size(JOURNAL_BYTES)
                .worker_threads(2)
                .open()?;
            let table = |name: &str| {
                db.keyspace(name, || KeyspaceCreateOptions::default().max_memtable_size(UNSORTED_BYTES))
            };
            let (heads, bodies) = (table("heads")?, table("bodies")?);
            let (own, aside) = (table("own")?, table("aside")?);
            Ok(Tables { db, heads, bodies, own, aside })
        };
        open().map_err(|error| error.to_string())
    }

    /// Waits while the database is behind in sorting what was written. It would wait by itself, but without an end when the threads
    /// that sort find the disk full; here that is seen.
    fn wait_for_sorting(&self) -> fjall::Result<()> {
        while self.bodies.sealed_memtable_count() >= MOST_UNSORTED {
            self.db.persist(PersistMode::Buffer)?;
            thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }

    /// All heads, by key.
    pub(super) fn all_heads(&self) -> impl Iterator<Item = fjall::Result<(Slice, Slice)>> {
        self.heads.iter().map(fjall::Guard::into_inner)
    }
}

/// Brings the database's journals to the disk. Whether there were any.
///
/// The database would do so itself, but keep all writers waiting meanwhile: on a busy disk, for longer than a commit should take. The
/// system needs no such lock. A journal that is no longer the one written to is synced before the next is begun.
fn sync_journals(database: &Path) -> std::io::Result<bool> {
    let mut some = false;
    for entry in fs::read_dir(database)? {
        let path = entry?.path();
        if path.extension().is_none_or(|extension| extension != "jnl") {
            continue;
        }
        match OpenOptions::new().append(true).open(path) {
            Ok(journal) => journal.sync_data()?,
            // Its content is in tables by now.
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        some = true;
    }
    Ok(some)
}

fn database(folder: &Path) -> PathBuf {
    folder.join("db")
}

/// Makes an empty database, unless there is one. A crash in between leaves none, not half of one.
fn create(folder: &Path) -> Result<(), String> {
    let make = || -> std::io::Result<PathBuf> {
        let new = folder.join("db.new");
        if new.exists() {
            fs::remove_dir_all(&new)?;
        }
        Ok(new)
    };
    if database(folder).exists() {
        return Ok(());
    }
    let new = make().map_err(|error| error.to_string())?;
    drop(Tables::open(&new)?);
    let moved = fs::rename(&new, database(folder)).and_then(|()| File::open(folder)?.sync_all());
    moved.map_err(|error| error.to_string())
}

/// Makes a folder that only this user can read: it holds what people said.
fn make_private(folder: &Path) -> std::io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}
