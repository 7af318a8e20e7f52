//! When to look again: SIGHUP, and changes of the files that the configuration is made of.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use tokio::signal::unix::{SignalKind, signal};

use crate::Failure;
use crate::config::{FileOrTable, Settings};
use crate::distribution::Source;
use crate::policies::{COMPONENT, signature_path};

/// Files come in several steps; after this long without another one they are complete.
const QUIET: Duration = Duration::from_millis(200);

/// Something that writes beside the files without end does not keep a change from being seen for longer than this.
const MOST: Duration = Duration::from_secs(2);

/// Why to look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reason {
    Signal,
    Files,
}

/// Where reasons come from.
pub(super) struct Changes {
    sender: Sender<Reason>,
    reasons: Receiver<Reason>,
    /// Ends watching when dropped.
    watcher: Option<RecommendedWatcher>,
}

impl Changes {
    /// From here on SIGHUP ends the process no more.
    pub(super) fn start() -> Result<Changes, Failure> {
        let (sender, reasons) = mpsc::channel();
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_io().build().map_err(Failure::failed)?;
        let guard = runtime.enter();
        let mut hangup = signal(SignalKind::hangup()).map_err(Failure::failed)?;
        drop(guard);
        let signals = sender.clone();
        thread::spawn(move || {
            runtime.block_on(async move {
                while hangup.recv().await.is_some() && signals.send(Reason::Signal).is_ok() {}
            });
        });
        Ok(Changes { sender, reasons, watcher: None })
    }

    /// Watches the folders of these files, and no others any more.
    pub(super) fn watch(&mut self, stamps: &Stamps) {
        self.watcher = None;
        let news = self.sender.clone();
        let watcher = notify::recommended_watcher(move |event: notify::Result<Event>| {
            if event.is_ok_and(|event| !matches!(event.kind, EventKind::Access(_))) {
                // The receiver is gone only when the process ends.
                let _ = news.send(Reason::Files);
            }
        });
        let mut watcher = match watcher {
            Ok(watcher) => watcher,
            Err(error) => {
                tracing::warn!(%error, "files cannot be watched; send SIGHUP after a change");
                return;
            }
        };
        for folder in stamps.folders() {
            if let Err(error) = watcher.watch(&folder, RecursiveMode::NonRecursive) {
                tracing::warn!(folder = %folder.display(), %error, "not watched; send SIGHUP after a change");
            }
        }
        self.watcher = Some(watcher);
    }

    /// Waits for a reason and then for quiet, but not for long. None when there can be none any more.
    pub(super) fn next(&self) -> Option<Reason> {
        let mut reason = self.reasons.recv().ok()?;
        let end = Instant::now() + MOST;
        while Instant::now() < end
            && let Ok(more) = self.reasons.recv_timeout(QUIET)
        {
            if more == Reason::Signal {
                reason = more;
            }
        }
        Some(reason)
    }
}

/// What tells one state of a file from another: time, size, inode; none where there is no file.
type Stamp = Option<(SystemTime, u64, u64)>;

/// Files, as they were when they were looked at.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Stamps(BTreeMap<PathBuf, Stamp>);

impl Stamps {
    pub(super) fn of_file(path: Option<&Path>) -> Stamps {
        Stamps::default().with(path.map(Path::to_owned))
    }

    /// And these, as they are now.
    pub(super) fn with(mut self, files: impl IntoIterator<Item = PathBuf>) -> Stamps {
        self.0.extend(files.into_iter().map(|path| {
            let stamp = stamp(&path);
            (path, stamp)
        }));
        self
    }

    /// The same files, as they are now.
    pub(super) fn renewed(self) -> Stamps {
        Stamps::default().with(self.0.into_keys())
    }

    /// Whether one of them is not as it was.
    pub(super) fn changed(&self) -> bool {
        self.0.iter().any(|(path, before)| stamp(path) != *before)
    }

    /// Where they are, and where those folders are: a folder may be replaced as a whole.
    fn folders(&self) -> BTreeSet<PathBuf> {
        let parent = |path: &Path| match path.parent() {
            Some(parent) if parent.as_os_str().is_empty() => Some(PathBuf::from(".")),
            parent => parent.map(Path::to_owned),
        };
        let near: BTreeSet<PathBuf> = self.0.keys().filter_map(|path| parent(path)).collect();
        let above: Vec<PathBuf> = near.iter().filter_map(|folder| parent(folder)).collect();
        near.into_iter().chain(above).filter(|folder| folder.is_dir()).collect()
    }
}

fn stamp(path: &Path) -> Stamp {
    let data = fs::metadata(path).ok()?;
    Some((data.modified().ok()?, data.len(), data.ino()))
}

/// The files that `[[policy]]` names, those that may lie beside them, and the folder of recorded cases.
pub(super) fn local_files(settings: &Settings) -> BTreeSet<PathBuf> {
    let mut files = BTreeSet::new();
    for reference in &settings.references {
        if let Source::Path(path) = &reference.source {
            let is_folder = path.is_dir();
            let component = if is_folder { path.join(COMPONENT) } else { path.clone() };
            let folder = if is_folder { path.clone() } else { path.parent().unwrap_or(path).to_owned() };
            files.extend(["policy.toml", "rules.toml", "cases"].map(|name| folder.join(name)));
            files.insert(signature_path(&component));
            files.insert(component);
        }
        for file in [&reference.manifest, &reference.config].into_iter().flatten() {
            if let FileOrTable::File(path) = file {
                files.insert(path.clone());
            }
        }
    }
    files
}
