//! The plugins of a project: what was built of each, and what happens when one is saved.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use jackfield_builder::Builder;
use jackfield_policy::{Applied, Refusal, Registry, Upload};

use crate::policies::{PolicyFolder, policy_folders};
use crate::watch::{Change, Watch, Watched};

/// Everything under `plugins/`, and the registry that it goes to.
pub(super) struct Plugins {
    folder: PathBuf,
    builder: Builder,
    registry: Arc<Registry>,
    known: BTreeMap<PathBuf, Known>,
}

/// What is in force of one folder.
struct Known {
    name: String,
    component: Arc<[u8]>,
}

impl Plugins {
    pub(super) fn new(folder: PathBuf, builder: Builder, registry: Arc<Registry>) -> Plugins {
        let folder = folder.canonicalize().unwrap_or(folder);
        Plugins { folder, builder, registry, known: BTreeMap::new() }
    }

    /// Builds and activates every plugin. One that fails is reported; the others serve.
    pub(super) fn start(&mut self) {
        for folder in self.folders() {
            self.apply(&folder, &Change::everything());
        }
    }

    /// Swaps what is saved, for as long as the process lives.
    pub(super) fn watch(mut self) {
        let watched = Watched::Inside(self.folder.clone());
        let ended = Watch::start(watched).and_then(|watch| watch.each_change(|changes| self.react(changes)));
        if let Err(error) = ended {
            let folder = self.folder.display();
            eprintln!("watching {folder} failed: {error}; saving no longer swaps, restart to mend");
        }
    }

    fn react(&mut self, changes: BTreeMap<PathBuf, Change>) {
        let present: BTreeSet<PathBuf> = self.folders().into_iter().collect();
        let gone: Vec<PathBuf> =
            self.known.keys().filter(|folder| !present.contains(*folder)).cloned().collect();
        for folder in gone {
            self.remove(&folder);
        }
        for (folder, change) in changes {
            if present.contains(&folder) {
                self.apply(&folder, &change);
            }
        }
    }

    fn folders(&self) -> Vec<PathBuf> {
        policy_folders(&self.folder)
    }

    /// Builds what must be built, verifies and swaps; says what came of it.
    fn apply(&mut self, path: &Path, change: &Change) {
        let folder = PolicyFolder::new(path);
        let begun = Instant::now();
        if change.source && !self.known.contains_key(path) {
            eprintln!("{}: building", folder.name());
        }
        match self.upload(&folder, change) {
            Ok(upload) => self.put(path, upload, change, begun),
            Err(message) => self.keep_old(&folder, change, &message),
        }
    }

    fn upload(&self, folder: &PolicyFolder, change: &Change) -> Result<Upload, String> {
        let built = match self.known.get(folder.path()) {
            Some(known) if !change.source => folder.with_component(Arc::clone(&known.component)),
            _ => folder.build(&self.builder),
        };
        built.map_err(|error| error.to_string())
    }

    fn put(&mut self, path: &Path, upload: Upload, change: &Change, begun: Instant) {
        let known = Known { name: upload.manifest.name.clone(), component: Arc::clone(&upload.component) };
        let name = known.name.clone();
        let (outcome, outdated) = self.put_or_outdate(upload, change);
        match outcome {
            Ok(applied) if applied.changed => {
                let ms = begun.elapsed().as_millis();
                eprintln!("{name}: {change} → in force as generation {} after {ms} ms", applied.generation);
                self.forget_old_name(path, &name);
                self.known.insert(path.to_owned(), known);
            }
            Ok(applied) => {
                eprintln!("{name}: {change} → nothing changed, generation {} stays", applied.generation);
                self.known.insert(path.to_owned(), known);
            }
            Err(refusal) => return self.keep_old(&PolicyFolder::new(path), change, &refusal.to_string()),
        }
        if let Some(case) = outdated {
            eprintln!(
                "    a recorded case says otherwise; change it too, a server would refuse this:\n{}",
                indent(&case)
            );
        }
    }

    /// An author who edits a rule means it, so a recorded case that holds the old rule is reported and does not stop the
    /// swap. A case that fails after an edit of the source does.
    fn put_or_outdate(&self, upload: Upload, change: &Change) -> (Result<Applied, Refusal>, Option<String>) {
        let untried = Upload { cases: Vec::new(), ..upload.clone() };
        match self.registry.put(upload) {
            Err(case @ Refusal::Case { .. }) if !change.source => {
                (self.registry.put(untried), Some(case.to_string()))
            }
            outcome => (outcome, None),
        }
    }

    /// A folder whose manifest was renamed leaves its old name.
    fn forget_old_name(&mut self, path: &Path, name: &str) {
        let renamed = self.known.get(path).filter(|known| known.name != name).map(|known| known.name.clone());
        if let Some(old) = renamed {
            self.delete(&old);
        }
    }

    fn remove(&mut self, path: &Path) {
        if let Some(known) = self.known.remove(path) {
            self.delete(&known.name);
        }
    }

    fn delete(&self, name: &str) {
        match self.registry.delete(name) {
            Ok(applied) => eprintln!("{name}: removed, generation {}", applied.generation),
            Err(refusal) => eprintln!("{name}: cannot be removed: {refusal}"),
        }
    }

    fn keep_old(&self, folder: &PolicyFolder, change: &Change, message: &str) {
        let stays = match self.known.contains_key(folder.path()) {
            true => "the version before stays in force",
            false => "it is not in force",
        };
        eprintln!("{}: {change} → refused; {stays}\n{}", folder.name(), indent(message));
    }
}

fn indent(text: &str) -> String {
    text.lines().map(|line| format!("    {line}\n")).collect()
}
