//! Blocks in files: one each, named by its hash, in folders of the first two digits.
//!
//! A file is written beside its place and renamed, so that it is whole or not there; nothing is synchronised, since what a loss
//! of power leaves half written is found by its checksum. When a block counts as last used is the file's time, which may
//! be in the future ([`Rank`]). What else lies in the folder is left alone.

mod scan;
#[cfg(test)]
mod tests;

use std::fs::{self, File, FileTimes};
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, UNIX_EPOCH};

use bytes::Bytes;
use jackfield_scheduler::BlockHash;

use super::shelf::{Rank, Shelf};
use super::stats::{Counter, Rejection, Rejections, TierCounters};
use super::stored::{HEADER, Identity, checksum};
use super::tier::{LowerStats, Tier};
use super::warnings::Warnings;

/// What an operator sets of the tier on disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiskTier {
    /// Where its files are. Made when it is not there, for this user alone: keys and values tell what the texts were. One host
    /// at a time.
    pub folder: PathBuf,
    /// Bytes that the files may take together.
    pub bytes: u64,
}

/// The files of one folder.
pub(crate) struct Disk {
    folder: PathBuf,
    identity: Identity,
    /// What is there, as far as this process knows.
    index: Mutex<Shelf<()>>,
    counters: TierCounters,
    dropped: Counter,
    failed: Counter,
    rejected: Rejections,
    warnings: Warnings,
    temporary: AtomicU64,
}

impl Disk {
    /// Makes the folder, or takes it over: what was being written is removed, and what is beyond the bytes there may be,
    /// the least in rank first.
    ///
    /// # Errors
    /// The folder cannot be made or listed.
    pub(crate) fn open(config: &DiskTier, identity: Identity) -> io::Result<Disk> {
        make_folder(&config.folder)?;
        let disk = Disk {
            folder: config.folder.clone(),
            identity,
            index: Mutex::new(Shelf::new(config.bytes)),
            counters: TierCounters::default(),
            dropped: Counter::default(),
            failed: Counter::default(),
            rejected: Rejections::default(),
            warnings: Warnings::default(),
            temporary: AtomicU64::new(0),
        };
        for found in scan::scan(&config.folder)? {
            for evicted in disk.index().insert(found.prefix, (), found.bytes, found.rank) {
                disk.discard(&evicted.prefix);
            }
        }
        Ok(disk)
    }

    fn find(&self, prefix: &BlockHash, rank: Rank) -> Option<Bytes> {
        if !self.index().contains(prefix) {
            return None;
        }
        match self.read(prefix, rank) {
            Ok(payload) => {
                self.index().touch(prefix, rank);
                self.counters.hits.add(1);
                Some(payload)
            }
            // Given up for another block between the look and the reading.
            Err(Rejection::Gone) if !self.index().contains(prefix) => None,
            Err(rejection) => {
                self.reject(prefix, rejection);
                None
            }
        }
    }

    fn read(&self, prefix: &BlockHash, rank: Rank) -> Result<Bytes, Rejection> {
        let path = self.path(prefix);
        // What is no file, a pipe for one, might never end.
        if !fs::symlink_metadata(&path).map_err(of_system)?.is_file() {
            return Err(Rejection::Unreadable);
        }
        let mut file = File::open(&path).map_err(of_system)?;
        let len = file.metadata().map_err(of_system)?.len();
        let mut header = [0; HEADER];
        file.read_exact(&mut header).map_err(of_system)?;
        self.identity.check_header(&header, prefix)?;
        let expected = self.identity.image_bytes();
        if len != expected as u64 {
            return Err(Rejection::Length);
        }
        let mut image = Vec::with_capacity(expected);
        image.extend_from_slice(&header);
        Read::by_ref(&mut file)
            .take((expected - HEADER) as u64)
            .read_to_end(&mut image)
            .map_err(of_system)?;
        let payload = self.identity.open(image, prefix)?;
        let _ = file.set_times(times(rank)); // without it the block is as old as it was after a restart
        Ok(payload)
    }

    fn reject(&self, prefix: &BlockHash, rejection: Rejection) {
        self.index().remove(prefix);
        self.discard(prefix);
        self.rejected.add(rejection);
        if self.warnings.may_say(rejection.as_str()) {
            let (folder, reason) = (self.folder.display(), rejection.as_str());
            tracing::warn!(%folder, %prefix, reason, "a stored KV block is not used; it is computed again");
        }
    }

    fn write(&self, prefix: &BlockHash, payload: &[u8], rank: Rank) -> io::Result<()> {
        let path = self.path(prefix);
        if let Some(folder) = path.parent() {
            make_folder(folder)?;
        }
        let number = self.temporary.fetch_add(1, Ordering::Relaxed);
        let temporary = path.with_extension(format!("{}-{number}.{TEMPORARY}", std::process::id()));
        let written =
            self.write_to(&temporary, prefix, payload, rank).and_then(|()| fs::rename(&temporary, &path));
        if written.is_err() {
            let _ = fs::remove_file(&temporary); // it may not be there
        }
        written
    }

    fn write_to(&self, path: &Path, prefix: &BlockHash, payload: &[u8], rank: Rank) -> io::Result<()> {
        let header = self.identity.header(prefix);
        let mut file = create(path)?;
        file.write_all(&header)?;
        file.write_all(payload)?;
        file.write_all(&checksum(&header, payload))?;
        file.set_times(times(rank))
    }

    /// A file that cannot be removed is found again at the next start.
    fn discard(&self, prefix: &BlockHash) {
        match fs::remove_file(self.path(prefix)) {
            Err(error) if error.kind() != ErrorKind::NotFound && self.warnings.may_say("remove") => {
                tracing::warn!(folder = %self.folder.display(), %error, "cannot remove a stored KV block");
            }
            _ => {}
        }
    }

    fn path(&self, prefix: &BlockHash) -> PathBuf {
        let name = prefix.to_string();
        self.folder.join(&name[..2]).join(name)
    }

    /// A shelf is whole between any two calls, whatever panicked.
    fn index(&self) -> MutexGuard<'_, Shelf<()>> {
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Tier for Disk {
    fn may_have(&self, prefix: &BlockHash) -> bool {
        self.index().contains(prefix)
    }

    fn wants(&self, prefix: &BlockHash) -> bool {
        !self.may_have(prefix)
    }

    fn get(&self, prefixes: &[BlockHash], rank: Rank) -> Vec<Option<Bytes>> {
        prefixes.iter().enumerate().map(|(link, prefix)| self.find(prefix, rank.back(link))).collect()
    }

    fn put(&self, prefix: &BlockHash, payload: &Bytes, rank: Rank) {
        if self.index().contains(prefix) {
            return self.touch(&[*prefix], rank);
        }
        let bytes = self.identity.image_bytes() as u64;
        let (evicted, fits) = {
            let mut index = self.index();
            let evicted = index.make_room(bytes);
            (evicted, index.bytes().saturating_add(bytes) <= index.max_bytes())
        };
        self.counters.evicted.add(evicted.len());
        evicted.iter().for_each(|evicted| self.discard(&evicted.prefix));
        if !fits {
            return self.dropped.add(1);
        }
        match self.write(prefix, payload, rank) {
            Ok(()) => {
                self.index().insert(*prefix, (), bytes, rank);
                self.counters.stored.add(1);
            }
            Err(error) => {
                self.failed.add(1);
                if self.warnings.may_say(&error.kind().to_string()) {
                    let folder = self.folder.display();
                    tracing::warn!(%folder, %error, "a KV block is not written to disk; nothing else depends on it");
                }
            }
        }
    }

    fn touch(&self, prefixes: &[BlockHash], rank: Rank) {
        for (link, prefix) in prefixes.iter().enumerate() {
            let rank = rank.back(link);
            if self.index().touch(prefix, rank).is_some() {
                // As above: only a restart would miss it.
                let _ = File::open(self.path(prefix)).and_then(|file| file.set_times(times(rank)));
            }
        }
    }

    fn stats(&self) -> LowerStats {
        let index = self.index();
        LowerStats {
            tier: self.counters.stats(index.len(), index.bytes(), index.max_bytes()),
            dropped_writes: self.dropped.get(),
            failed_writes: self.failed.get(),
            rejected: self.rejected.counts(),
            ..LowerStats::default()
        }
    }
}

/// How names of files that are being written end.
const TEMPORARY: &str = "tmp";

fn times(rank: Rank) -> FileTimes {
    // Beyond this no file system goes.
    let us = rank.0.min(1 << 52);
    FileTimes::new().set_modified(UNIX_EPOCH + Duration::from_micros(us))
}

fn of_system(error: io::Error) -> Rejection {
    match error.kind() {
        ErrorKind::NotFound => Rejection::Gone,
        ErrorKind::UnexpectedEof => Rejection::Length,
        _ => Rejection::Unreadable,
    }
}

fn make_folder(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

fn create(path: &Path) -> io::Result<File> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}
