//! What was saved under `plugins/`, gathered until the editor is done.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Duration;

use notify::{Event, EventKind, RecursiveMode, Watcher};

/// Editors save in several steps; after this long without another one the save is complete.
const QUIET: Duration = Duration::from_millis(60);

/// What changed in one plugin's folder.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Change {
    /// Whether something changed that is compiled.
    pub(super) source: bool,
    files: BTreeSet<String>,
}

impl Change {
    pub(super) fn everything() -> Change {
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

/// Calls `react` with what changed, per plugin folder, until watching fails.
pub(super) fn each_change(
    plugins: &Path,
    mut react: impl FnMut(BTreeMap<PathBuf, Change>),
) -> Result<(), notify::Error> {
    let (sender, events) = mpsc::channel();
    let mut watcher = notify::recommended_watcher(move |event| {
        // The receiver is gone only when the process ends.
        let _ = sender.send(event);
    })?;
    watcher.watch(plugins, RecursiveMode::Recursive)?;
    while let Some(batch) = next_batch(&events)? {
        let changes = sort(plugins, batch);
        if !changes.is_empty() {
            react(changes);
        }
    }
    Ok(())
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

fn sort(plugins: &Path, batch: Vec<Event>) -> BTreeMap<PathBuf, Change> {
    let mut changes: BTreeMap<PathBuf, Change> = BTreeMap::new();
    let written = batch.into_iter().filter(|event| !matches!(event.kind, EventKind::Access(_)));
    for path in written.flat_map(|event| event.paths) {
        if let Some((plugin, file)) = split(plugins, &path) {
            changes.entry(plugins.join(plugin)).or_default().add(&file);
        }
    }
    changes
}

/// The plugin's folder and the file in it; none for what is not a plugin's own.
fn split(plugins: &Path, path: &Path) -> Option<(PathBuf, PathBuf)> {
    let inside = path.strip_prefix(plugins).ok()?;
    let mut parts = inside.components();
    let plugin = PathBuf::from(parts.next()?.as_os_str());
    let file = parts.as_path().to_owned();
    let name = file.file_name()?.to_string_lossy();
    let scratch = name.starts_with('.')
        || name.starts_with('#')
        || name.ends_with('~')
        || name.ends_with(".swp")
        || name == "4913";
    // Some editors write beside the file and rename: a name without an ending that is gone again was never a source.
    let passing = file.extension().is_none() && !path.exists();
    let built = plugin.as_os_str() == "target" || file.starts_with("target");
    (!scratch && !built && !passing).then_some((plugin, file))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(paths: &[&str]) -> BTreeMap<PathBuf, Change> {
        let paths = paths.iter().map(|path| Path::new("/p").join(path)).collect();
        let event = Event { kind: EventKind::Any, paths, attrs: notify::event::EventAttributes::default() };
        sort(Path::new("/p"), vec![event])
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
            change(&["target/x/y", "a/.rules.toml.swp", "a/rules.toml~", "a/target/z", "Cargo.lock"])
                .is_empty()
        );
    }
}
