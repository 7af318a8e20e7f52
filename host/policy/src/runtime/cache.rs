//! Compiled code that outlives the process.
//!
//! ```text
//! compiled/key          32 random bytes, readable by the owner alone
//! compiled/<name>.code  MAC, length of the head, head (JSON), native code
//! ```
//!
//! A file's name is a hash of everything that its code depends on: the component, its configuration (which is frozen into
//! it), its kind, the contract, and what the engine says of its version, its settings and the processor. So nothing is ever
//! out of date: what differs has another name, and what is not used is swept.
//!
//! Native code is run without being checked, so only what this host wrote may be loaded: each file carries a keyed MAC over
//! its name and content, and the whole file is in memory when it is checked and when it is loaded. A file that was changed,
//! torn, renamed or put there by someone else is a miss. Who can read the key can also write to the host's memory by other
//! means: it belongs to the host's user.

use std::{
    fs::{self, File, OpenOptions},
    hash::{DefaultHasher, Hash, Hasher},
    io::{self, Read, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    time::SystemTime,
};

use serde::{Deserialize, Serialize};
use wasmtime::{Engine, component::Component};

use super::{Strategy, contract};
use crate::{Description, Kind};

/// Changes when what is written changes its meaning.
const FORMAT: u32 = 1;
/// What all files together may take.
const MOST_BYTES: u64 = 1 << 30;
const MAC_BYTES: usize = 32;

/// The folder.
pub(super) struct CodeCache {
    dir: PathBuf,
    key: [u8; 32],
    /// What the engine says of itself.
    engine: u64,
}

/// What is kept of a policy that was set up.
#[derive(Serialize, Deserialize)]
pub(super) struct Head {
    pub(super) strategy: Strategy,
    pub(super) description: Description,
}

/// What code depends on, beside the engine.
#[derive(Clone, Copy)]
pub(super) struct Sources<'a> {
    pub(super) component: &'a [u8],
    pub(super) config: &'a str,
    pub(super) kind: Kind,
}

impl CodeCache {
    /// Opens the folder, and makes it where there is none.
    pub(super) fn open(dir: &Path, engine: &Engine) -> io::Result<CodeCache> {
        fs::create_dir_all(dir)?;
        let mut hasher = DefaultHasher::new();
        engine.precompile_compatibility_hash().hash(&mut hasher);
        Ok(CodeCache { key: key(&dir.join("key"))?, engine: hasher.finish(), dir: dir.to_owned() })
    }

    /// What was kept of these, if it is whole and ours.
    pub(super) fn read(&self, engine: &Engine, sources: Sources<'_>) -> Option<(Head, Component)> {
        let name = self.name(sources);
        let path = self.path(&name);
        let file = fs::read(&path).ok()?;
        let (mac, content) = file.split_first_chunk::<MAC_BYTES>()?;
        if self.mac(&name, content) != blake3::Hash::from_bytes(*mac) {
            tracing::warn!(file = %path.display(), "not code that this host wrote; it is compiled again");
            return None;
        }
        let (length, rest) = content.split_first_chunk::<4>()?;
        let (head, code) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
        let head = serde_json::from_slice(head).ok()?;
        // The engine itself refuses code of another version, other settings or another processor.
        let component =
            load(engine, code).inspect_err(|error| tracing::warn!(%error, "kept code is of no use")).ok()?;
        // The sweep goes by this.
        let _ = File::open(&path).and_then(|file| file.set_modified(SystemTime::now()));
        Some((head, component))
    }

    /// Keeps what was set up. What cannot be kept is compiled again the next time.
    pub(super) fn write(&self, sources: Sources<'_>, head: &Head, component: &Component) {
        if let Err(error) = self.try_write(&self.name(sources), head, component) {
            tracing::warn!(dir = %self.dir.display(), %error, "compiled code could not be kept");
        }
    }

    fn try_write(&self, name: &str, head: &Head, component: &Component) -> io::Result<()> {
        let head = serde_json::to_vec(head)?;
        let mut content = u32::try_from(head.len()).map_err(io::Error::other)?.to_le_bytes().to_vec();
        content.extend(head);
        content.extend(component.serialize().map_err(io::Error::other)?);
        let beside = self.dir.join(format!("{name}.new"));
        let mut file = File::create(&beside)?;
        file.write_all(self.mac(name, &content).as_bytes())?;
        file.write_all(&content)?;
        // Not flushed to the disk: a file that a crash tears is a miss.
        fs::rename(&beside, self.path(name))?;
        self.sweep()
    }

    /// Removes what was used longest ago, until the rest is small enough.
    fn sweep(&self) -> io::Result<()> {
        let mut files = Vec::new();
        for entry in fs::read_dir(&self.dir)?.flatten() {
            let meta = entry.metadata()?;
            if entry.path().extension().is_some_and(|extension| extension == "code") {
                files.push((meta.modified()?, meta.len(), entry.path()));
            }
        }
        files.sort();
        let mut bytes: u64 = files.iter().map(|(_, bytes, _)| bytes).sum();
        for (_, size, path) in files {
            if bytes <= MOST_BYTES {
                break;
            }
            fs::remove_file(path)?;
            bytes -= size;
        }
        Ok(())
    }

    fn name(&self, sources: Sources<'_>) -> String {
        let mut hasher = blake3::Hasher::new_derive_key("jackfield 2026 compiled policy");
        hasher.update(&FORMAT.to_le_bytes());
        hasher.update(&self.engine.to_le_bytes());
        let contract = contract::full_name(sources.kind.interface());
        for part in [contract.as_bytes(), sources.config.as_bytes(), sources.component] {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
        hasher.finalize().to_hex().to_string()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.join(format!("{name}.code"))
    }

    fn mac(&self, name: &str, content: &[u8]) -> blake3::Hash {
        // A name has always the same length.
        blake3::Hasher::new_keyed(&self.key).update(name.as_bytes()).update(content).finalize()
    }
}

/// The key, drawn when there is none or none of the right size: then all that was kept is a miss.
fn key(path: &Path) -> io::Result<[u8; 32]> {
    let mut key = [0; 32];
    if File::open(path).and_then(|mut file| file.read_exact(&mut key)).is_ok() {
        return Ok(key);
    }
    getrandom::fill(&mut key).map_err(io::Error::other)?;
    let beside = path.with_extension("new");
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&beside)?;
    file.write_all(&key)?;
    file.sync_all()?;
    fs::rename(&beside, path)?;
    Ok(key)
}

/// The one place where code is run that was not compiled in this process.
#[allow(unsafe_code)]
fn load(engine: &Engine, code: &[u8]) -> wasmtime::Result<Component> {
    // SAFETY: the bytes are what `Component::serialize` gave to a process of this host: `CodeCache::read`, the only caller,
    // has checked a MAC over them whose key nobody else has, and they are in memory that nobody else can write to.
    unsafe { Component::deserialize(engine, code) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EMPTY: &str = "(component)";

    fn sources() -> Sources<'static> {
        Sources { component: EMPTY.as_bytes(), config: "{}", kind: Kind::Router }
    }

    fn head() -> Head {
        let description = Description {
            name: "n".into(),
            version: "1".into(),
            config_schema: "{}".into(),
            dialog_schema: 0,
            reads_dialog_schemas: Vec::new(),
            attributes: Vec::new(),
        };
        Head { strategy: Strategy::Frozen, description }
    }

    /// A cache that keeps one component, and the file that it is in.
    fn kept(dir: &Path) -> (Engine, CodeCache, PathBuf) {
        let engine = Engine::default();
        let cache = CodeCache::open(dir, &engine).expect("a folder");
        let bytes = wat::parse_str(EMPTY).expect("a component");
        let component = Component::new(&engine, bytes).expect("compiles");
        cache.write(sources(), &head(), &component);
        let file = cache.path(&cache.name(sources()));
        (engine, cache, file)
    }

    #[test]
    fn what_was_kept_is_found_by_another_process() {
        let dir = tempfile::tempdir().expect("a folder");
        let (engine, cache, _) = kept(dir.path());
        assert!(cache.read(&engine, sources()).is_some());
        let again = CodeCache::open(dir.path(), &engine).expect("the same key");
        let (found, _) = again.read(&engine, sources()).expect("kept");
        assert_eq!((found.strategy, found.description), (head().strategy, head().description));
    }

    #[test]
    fn anything_that_differs_is_a_miss() {
        let dir = tempfile::tempdir().expect("a folder");
        let (engine, cache, _) = kept(dir.path());
        let miss = |sources| assert!(cache.read(&engine, sources).is_none());
        miss(Sources { component: b"(component )", ..sources() });
        miss(Sources { config: "{ }", ..sources() });
        miss(Sources { kind: Kind::Compressor, ..sources() });
        let mut config = wasmtime::Config::new();
        config.epoch_interruption(true);
        let other = Engine::new(&config).expect("an engine");
        let cache = CodeCache::open(dir.path(), &other).expect("opens");
        assert!(cache.read(&other, sources()).is_none(), "another engine");
    }

    #[test]
    fn a_file_that_was_changed_at_any_byte_is_a_miss() {
        let dir = tempfile::tempdir().expect("a folder");
        let (engine, cache, file) = kept(dir.path());
        let whole = fs::read(&file).expect("there");
        for at in (0..whole.len()).step_by(whole.len() / 97 + 1) {
            let mut changed = whole.clone();
            changed[at] ^= 1;
            fs::write(&file, changed).expect("writes");
            assert!(cache.read(&engine, sources()).is_none(), "byte {at}");
        }
        for length in [0, 10, 32, 35, 36, 40, whole.len() - 1] {
            fs::write(&file, &whole[..length]).expect("writes");
            assert!(cache.read(&engine, sources()).is_none(), "{length} bytes");
        }
        fs::write(&file, &whole).expect("writes");
        assert!(cache.read(&engine, sources()).is_some());
    }

    #[test]
    fn a_file_of_another_name_or_another_host_is_a_miss() {
        let dir = tempfile::tempdir().expect("a folder");
        let (engine, cache, file) = kept(dir.path());
        let renamed = Sources { config: "{\"a\":1}", ..sources() };
        fs::copy(&file, cache.path(&cache.name(renamed))).expect("copies");
        assert!(cache.read(&engine, renamed).is_none());
        let elsewhere = tempfile::tempdir().expect("a folder");
        let other = CodeCache::open(elsewhere.path(), &engine).expect("another key");
        fs::copy(&file, other.path(&other.name(sources()))).expect("copies");
        assert!(other.read(&engine, sources()).is_none());
    }
}
