//! Records on disk, bounded: lines of JSON in numbered files, of which the oldest go first.

use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, BufRead, BufReader, BufWriter, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
    sync::{
        Weak,
        atomic::{AtomicU64, Ordering},
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    thread,
};

use super::{Record, mask};
use crate::{Registry, background};

/// Records that wait to be written; what comes when there are so many is dropped and counted.
const MOST_WAITING: usize = 1024;
/// Files that the bound is divided into: so much of it is lost when the oldest goes.
const FILES: u64 = 16;

/// What is written down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordSettings {
    /// Whose turns; `*` stands for everyone's.
    pub tenants: Vec<String>,
    /// What all files together may take.
    pub max_bytes: u64,
    /// An output filter in force whose edits are made to every text before it is written. While it is not in force, or
    /// fails, nothing is written.
    pub mask: Option<String>,
}

/// Takes records and writes them on a thread of its own.
pub(crate) struct Recorder {
    tenants: Vec<String>,
    records: SyncSender<Record>,
    dropped: AtomicU64,
}

impl Recorder {
    /// Writes into `dir`, which it makes when there is none.
    pub(crate) fn start(
        dir: &Path,
        settings: RecordSettings,
        registry: Weak<Registry>,
    ) -> io::Result<Recorder> {
        DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
        let mut log = Log::open(dir, settings.max_bytes)?;
        let (sender, records) = sync_channel(MOST_WAITING);
        let mask = settings.mask;
        let work = move || {
            background::step_back();
            write(&records, &mut log, mask.as_deref(), &registry);
        };
        thread::Builder::new().name("policy-recorder".into()).spawn(work)?;
        Ok(Recorder { tenants: settings.tenants, records: sender, dropped: AtomicU64::new(0) })
    }

    /// Whether turns of this tenant are written down.
    pub(crate) fn wants(&self, tenant: &str) -> bool {
        self.tenants.iter().any(|wanted| wanted == tenant || wanted == "*")
    }

    /// Writes one down soon.
    pub(crate) fn record(&self, record: Record) {
        if self.records.try_send(record).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Records that there was no room for.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }
}

fn write(records: &Receiver<Record>, log: &mut Log, mask: Option<&str>, registry: &Weak<Registry>) {
    let mut failing = false;
    while let Ok(record) = records.recv() {
        let written =
            line(record, mask, registry).and_then(|line| log.append(&line).map_err(|e| e.to_string()));
        // Once for each time that it begins: a full disk must not fill the log as well.
        if let Err(why) = &written
            && !failing
        {
            tracing::error!(why, "a call could not be recorded");
        }
        failing = written.is_err();
    }
}

fn line(mut record: Record, mask: Option<&str>, registry: &Weak<Registry>) -> Result<Vec<u8>, String> {
    if let Some(name) = mask {
        let registry = registry.upgrade().ok_or("the host is ending")?;
        let patch = registry.current();
        let filter = patch.get(name).ok_or_else(|| format!("the mask `{name}` is not in force"))?;
        record = mask::masked(&record, filter)?;
    }
    let mut line = serde_json::to_vec(&record).map_err(|error| error.to_string())?;
    line.push(b'\n');
    Ok(line)
}

/// Numbered files in a folder.
struct Log {
    dir: PathBuf,
    file_bytes: u64,
    /// The file that is written to, its number and its size; none before the first record.
    file: Option<(BufWriter<File>, u64)>,
    next: u64,
}

impl Log {
    fn open(dir: &Path, max_bytes: u64) -> io::Result<Log> {
        let last = numbered(dir)?.last().map_or(0, |(number, _)| *number);
        Ok(Log { dir: dir.to_owned(), file_bytes: (max_bytes / FILES).max(1), file: None, next: last + 1 })
    }

    fn append(&mut self, line: &[u8]) -> io::Result<()> {
        let (mut file, bytes) = match self.file.take() {
            Some((file, bytes)) if bytes < self.file_bytes => (file, bytes),
            _ => (self.begin()?, 0),
        };
        file.write_all(line)?;
        file.flush()?;
        self.file = Some((file, bytes + line.len() as u64));
        Ok(())
    }

    fn begin(&mut self) -> io::Result<BufWriter<File>> {
        let path = self.dir.join(format!("{:08}.jsonl", self.next));
        self.next += 1;
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
        let files = numbered(&self.dir)?;
        for (_, oldest) in files.iter().take(files.len().saturating_sub(FILES as usize)) {
            fs::remove_file(oldest)?;
        }
        Ok(BufWriter::new(file))
    }
}

/// The files of a log, the oldest first.
fn numbered(dir: &Path) -> io::Result<Vec<(u64, PathBuf)>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        let number = path.file_stem().and_then(|stem| stem.to_str()).and_then(|stem| stem.parse().ok());
        if let Some(number) = number.filter(|_| path.extension().is_some_and(|ending| ending == "jsonl")) {
            files.push((number, path));
        }
    }
    files.sort();
    Ok(files)
}

/// Why a log cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The system says no.
    #[error("{}: {error}", path.display())]
    Io {
        /// Where.
        path: PathBuf,
        /// What it says.
        error: io::Error,
    },
    /// A line is not a record.
    #[error("{}:{line}: not a record: {error}", path.display())]
    Line {
        /// Where.
        path: PathBuf,
        /// From 1.
        line: usize,
        /// What is wrong.
        error: serde_json::Error,
    },
}

/// Calls `each` with the records of a file, or of all files of a folder, the oldest first. A last line that is not whole, as
/// a crash leaves it, is passed over.
///
/// # Errors
/// A file that cannot be read, or a line that is not a record.
pub fn read_log(path: &Path, mut each: impl FnMut(Record)) -> Result<(), LogError> {
    let at = |path: &Path| {
        let path = path.to_owned();
        move |error| LogError::Io { path, error }
    };
    let files = match path.is_dir() {
        true => numbered(path).map_err(at(path))?.into_iter().map(|(_, path)| path).collect(),
        false => vec![path.to_owned()],
    };
    for path in files {
        let mut reader = BufReader::new(File::open(&path).map_err(at(&path))?);
        let mut line = String::new();
        for number in 1.. {
            line.clear();
            if reader.read_line(&mut line).map_err(at(&path))? == 0 {
                break;
            }
            match serde_json::from_str(&line) {
                Ok(record) => each(record),
                Err(_) if !line.ends_with('\n') => break,
                Err(error) => return Err(LogError::Line { path, line: number, error }),
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Call, Outcome, PolicyVersion, Turn};

    fn record(turn: &str) -> Record {
        let version = PolicyVersion {
            name: "p".into(),
            version: "1".into(),
            digest: String::new(),
            config_digest: String::new(),
        };
        Record {
            generation: 1,
            policy: version,
            turn: Turn { id: turn.into(), ..Turn::default() },
            call: Call::OutputFilter { text: "x".into() },
            outcome: Outcome::Fault("trap".into()),
            imports: Vec::new(),
            micros: 5,
        }
    }

    fn append(log: &mut Log, turn: &str) {
        log.append(&line(record(turn), None, &Weak::new()).expect("a line")).expect("written");
    }

    fn turns(path: &Path) -> Vec<String> {
        let mut turns = Vec::new();
        read_log(path, |record| turns.push(record.turn.id)).expect("reads");
        turns
    }

    #[test]
    fn records_come_back_in_order_over_restarts() {
        let dir = tempfile::tempdir().expect("a folder");
        for start in 0..3 {
            let mut log = Log::open(dir.path(), 1 << 20).expect("opens");
            append(&mut log, &format!("{start} a"));
            append(&mut log, &format!("{start} b"));
        }
        assert_eq!(turns(dir.path()), ["0 a", "0 b", "1 a", "1 b", "2 a", "2 b"]);
    }

    #[test]
    fn the_oldest_go_when_the_bound_is_reached() {
        let dir = tempfile::tempdir().expect("a folder");
        let bytes = serde_json::to_vec(&record("000")).expect("plain data").len() as u64 + 1;
        let mut log = Log::open(dir.path(), 32 * bytes).expect("opens");
        for turn in 0..100 {
            append(&mut log, &format!("{turn:03}"));
            let size: u64 = fs::read_dir(dir.path())
                .expect("a folder")
                .map(|file| file.and_then(|file| file.metadata()).expect("a file").len())
                .sum();
            assert!(size <= 32 * bytes, "{size} bytes after {turn}");
        }
        let kept = turns(dir.path());
        assert_eq!((kept.len(), kept.last().map(String::as_str)), (32, Some("099")));
    }

    #[test]
    fn a_torn_end_is_passed_over_and_a_broken_line_is_named() {
        let dir = tempfile::tempdir().expect("a folder");
        let mut log = Log::open(dir.path(), 1 << 20).expect("opens");
        append(&mut log, "a");
        let file = dir.path().join("00000001.jsonl");
        let whole = fs::read_to_string(&file).expect("there");
        fs::write(&file, format!("{whole}{}", &whole[..20])).expect("writes");
        assert_eq!(turns(&file), ["a"]);
        fs::write(&file, format!("{whole}{}\n{whole}", &whole[..20])).expect("writes");
        let error = read_log(&file, |_| ()).expect_err("a broken line").to_string();
        assert!(error.contains("00000001.jsonl:2"), "{error}");
    }
}
