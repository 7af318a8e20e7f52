//! What was saved in policy folders, gathered until the editor is done.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Duration;

use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};

/// Editors save in several steps; after this long without another one the save is complete.
const QUIET: Duration = Duration::from_millis(60);

/// Whose files are watched.
#[derive(Debug)]
pub(crate) enum Watched {
    /// Every folder in this one, those that come later too.
    Inside(PathBuf),
    /// These folders.
    Folders(Vec<PathBuf>),
}

/// What changed in one policy's folder.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Change {
    /// Whether something changed that is compiled.
    pub(crate) source: bool,
    files: BTreeSet<String>,
}

impl Change {
    pub(crate) fn everything() -> Change {
        Change { source: true, files: BTreeSet::new() }
    }

    fn add(&mut self, file: &Path) {
        let name = file.to_string_lossy().into_owned();
        let data = name == "policy.toml" || name == "rules.toml" || file.starts_with("cases");
        self.source |= !data;
        self.files.insert(name);
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.files.len() {
            0 => f.write_str("built"),
            1..=3 => write!(f, "{} saved", self.files.iter().cloned().collect::<Vec<_>>().join(", ")),
            many => write!(f, "{many} files saved"),
        }
    }
}

/// Sees what is saved from when it is made.
pub(crate) struct Watch {
    watched: Watched,
    events: Receiver<notify::Result<Event>>,
    /// Ends watching when dropped.
    _watcher: RecommendedWatcher,
}

impl Watch {
    /// Begins. Paths must be canonical, as the events' are.
    pub(crate) fn start(watched: Watched) -> Result<Watch, notify::Error> {
        let (sender, events) = mpsc::channel();
        let mut watcher = notify::recommended_watcher(move |event| {
            // The receiver is gone only when the process ends.
            let _ = sender.send(event);
        })?;
        for root in watched.roots() {
            watcher.watch(root, RecursiveMode::Recursive)?;
        }
        Ok(Watch { watched, events, _watcher: watcher })
    }

    /// Calls `react` with what changed, per policy folder, until watching fails.
    pub(crate) fn each_change(
        &self,
        mut react: impl FnMut(BTreeMap<PathBuf, Change>),
    ) -> Result<(), notify::Error> {
        while let Some(batch) = next_batch(&self.events)? {
            let changes = self.watched.sort(batch);
            if !changes.is_empty() {
                react(changes);
            }
        }
        Ok(())
    }
}

/// Waits for an event and then for quiet. None when the watcher is gone.
fn next_batch(events: &Receiver<notify::Result<Event>>) -> Result<Option<Vec<Event>>, notify::Error> {
    let Ok(first) = events.recv() else { return Ok(None) };
    let mut batch = vec![first?];
    loop {
        match events.recv_timeout(QUIET) {
            Ok(event) => batch.push(event?),
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return Ok(Some(batch)),
        }
    }
}

impl Watched {
    fn roots(&self) -> &[PathBuf] {
        match self {
            Watched::Inside(folder) => std::slice::from_ref(folder),
            Watched::Folders(folders) => folders,
        }
    }

    fn sort(&self, batch: Vec<Event>) -> BTreeMap<PathBuf, Change> {
        let mut changes: BTreeMap<PathBuf, Change> = BTreeMap::new();
        let written = batch.into_iter().filter(|event| !matches!(event.kind, EventKind::Access(_)));
        for path in written.flat_map(|event| event.paths) {
            if let Some((folder, file)) = self.split(&path)
                && is_source(&path, &file)
            {
                changes.entry(folder).or_default().add(&file);
            }
        }
        changes
    }

    /// The policy's folder and the file in it; none for what is in no policy's folder.
    fn split(&self, path: &Path) -> Option<(PathBuf, PathBuf)> {
        match self {
            Watched::Inside(all) => {
                let mut parts = path.strip_prefix(all).ok()?.components();
                let folder = Path::new(parts.next()?.as_os_str());
                (folder != "target").then(|| (all.join(folder), parts.as_path().to_owned()))
            }
            Watched::Folders(folders) => folders
                .iter()
                .find_map(|folder| Some((folder.clone(), path.strip_prefix(folder).ok()?.to_owned()))),
        }
    }
}

/// Whether a file of a policy's folder is the author's own: not what editors, compilers and package managers leave there.
fn is_source(path: &Path, file: &Path) -> bool {
    let Some(name) = file.file_name().map(|name| name.to_string_lossy()) else { return false };
    let scratch = name.starts_with('.')
        || name.starts_with('#')
        || name.ends_with('~')
        || name.ends_with(".swp")
        || name == "4913";
    // Some editors write beside the file and rename: a name without an ending that is gone again was never a source.
    let passing = file.extension().is_none() && !path.exists();
    let made = ["target", "node_modules", "__pycache__"];
    let built = file.components().any(|part| made.iter().any(|made| part.as_os_str() == *made));
    !scratch && !built && !passing
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(paths: &[&str]) -> BTreeMap<PathBuf, Change> {
        let paths = paths.iter().map(|path| Path::new("/p").join(path)).collect();
        let event = Event { kind: EventKind::Any, paths, attrs: notify::event::EventAttributes::default() };
        Watched::Inside("/p".into()).sort(vec![event])
    }

    #[test]
    fn data_files_are_told_from_source() {
        let changes = change(&["a/rules.toml", "a/cases/one.json", "b/src/lib.rs"]);
        assert!(!changes[Path::new("/p/a")].source);
        assert!(changes[Path::new("/p/b")].source);
        assert_eq!(changes[Path::new("/p/a")].to_string(), "cases/one.json, rules.toml saved");
    }

    #[test]
    fn what_editors_and_compilers_leave_is_no_change() {
        assert!(
            change(&[
                "target/x/y",
                "a/.rules.toml.swp",
                "a/rules.toml~",
                "a/target/z.rs",
                "a/node_modules/b/c.js",
                "Cargo.lock"
            ])
            .is_empty()
        );
    }

    #[test]
    fn folders_are_watched_by_themselves() {
        let paths = ["/p/a/src/app.js", "/p/b/policy.toml", "/p/c/x.py"].map(PathBuf::from).to_vec();
        let event = Event { kind: EventKind::Any, paths, attrs: notify::event::EventAttributes::default() };
        let changes = Watched::Folders(vec!["/p/a".into(), "/p/b".into()]).sort(vec![event]);
        let seen: Vec<_> = changes.iter().map(|(folder, change)| (folder.as_path(), change.source)).collect();
        assert_eq!(seen, [(Path::new("/p/a"), true), (Path::new("/p/b"), false)]);
    }
}
