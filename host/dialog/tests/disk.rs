//! Sessions on disk: restarts, limits, damage, a full disk.

mod common;

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use common::{Stepped, begin, count_one, held, key, state};
use jackfield_dialog::{
    DiskLimits, DiskStore, Found, Message, OpenError, Role, SessionStore, StoreError, Version,
};
use tempfile::TempDir;

const TTL: Duration = Duration::from_secs(16);

fn limits() -> DiskLimits {
    DiskLimits { ttl: TTL, ..DiskLimits::default() }
}

fn folder() -> TempDir {
    tempfile::tempdir().expect("a folder")
}

fn open(folder: &Path, limits: DiskLimits, clock: &Stepped) -> DiskStore {
    DiskStore::open_with_clocks(folder, limits, clock.clocks()).expect("opens")
}

#[tokio::test]
async fn sessions_outlive_the_store_and_versions_go_on() {
    let (folder, clock) = (folder(), Stepped::new());
    let store = open(folder.path(), limits(), &clock);
    let a = begin(&store, &key("a"), "a").await;
    let b = begin(&store, &key("b"), "b").await;
    store.delete(&key("b")).await.expect("deletes");
    drop(store);
    let store = open(folder.path(), limits(), &clock);
    assert_eq!((store.len(), store.moved_aside()), (1, 0));
    assert_eq!(store.load(&key("a")).await, Ok(Found::Held(state("a"), a)));
    assert_eq!(store.load(&key("b")).await, Ok(Found::New));
    assert_eq!(store.list("acme", None, 9).await.expect("lists")[0].turns, 1);
    assert!(begin(&store, &key("b"), "again").await > b.max(a));
}

#[tokio::test]
async fn time_goes_on_while_the_store_is_closed() {
    let (folder, clock) = (folder(), Stepped::new());
    let store = open(folder.path(), limits(), &clock);
    begin(&store, &key("old"), "old").await;
    clock.step(TTL / 2);
    begin(&store, &key("new"), "new").await;
    drop(store);
    clock.step(TTL / 2);
    let store = open(folder.path(), limits(), &clock);
    assert_eq!(store.load(&key("old")).await, Ok(Found::Expired));
    assert!(matches!(store.load(&key("new")).await, Ok(Found::Held(..))));
    // Its content is gone from the disk with the sweep; that it was there is still told.
    store.tend().expect("sweeps");
    drop(store);
    clock.step(TTL / 2);
    let longer = DiskLimits { ttl: TTL * 2, ..limits() };
    let store = open(folder.path(), longer, &clock);
    assert_eq!(store.load(&key("old")).await, Ok(Found::Expired), "even when it would now live for longer");
    drop(store);
    clock.step(TTL * 4);
    let store = open(folder.path(), limits(), &clock);
    assert_eq!(store.load(&key("old")).await, Ok(Found::New));
    assert!(store.is_empty());
}

#[tokio::test]
async fn a_wall_clock_that_went_back_makes_nothing_older() {
    let (folder, clock, earlier) = (folder(), Stepped::new(), Stepped::new());
    clock.step(TTL * 100);
    let store = open(folder.path(), limits(), &clock);
    begin(&store, &key("a"), "a").await;
    drop(store);
    let store = open(folder.path(), limits(), &earlier);
    earlier.step(TTL - Duration::from_secs(1));
    assert!(matches!(store.load(&key("a")).await, Ok(Found::Held(..))));
    earlier.step(TTL);
    assert_eq!(store.load(&key("a")).await, Ok(Found::Expired));
}

#[tokio::test]
async fn uses_without_a_commit_are_noted_on_disk() {
    let (folder, clock) = (folder(), Stepped::new());
    let store = open(folder.path(), limits(), &clock);
    begin(&store, &key("a"), "a").await;
    clock.step(TTL * 3 / 4);
    assert_eq!(store.touch(&key("a")).await, Ok(true));
    store.tend().expect("notes");
    drop(store);
    clock.step(TTL * 3 / 4);
    let store = open(folder.path(), limits(), &clock);
    assert!(matches!(store.load(&key("a")).await, Ok(Found::Held(..))));
}

#[tokio::test]
async fn the_session_longest_unused_goes_first_and_stays_away() {
    let (folder, clock) = (folder(), Stepped::new());
    let two = DiskLimits { max_sessions: 2, ..limits() };
    let store = open(folder.path(), two, &clock);
    for id in ["a", "b"] {
        begin(&store, &key(id), id).await;
        clock.step(Duration::from_secs(1));
    }
    store.touch(&key("a")).await.expect("touches");
    begin(&store, &key("c"), "c").await;
    assert_eq!(store.len(), 2);
    assert_eq!(store.load(&key("b")).await, Ok(Found::New), "pushed out is not expired");
    drop(store);
    let store = open(folder.path(), limits(), &clock);
    assert_eq!((store.len(), store.load(&key("b")).await), (2, Ok(Found::New)));
    drop(store);
    let one = DiskLimits { max_sessions: 1, ..limits() };
    let store = open(folder.path(), one, &clock);
    assert_eq!(store.len(), 1, "a lower limit holds at once");
}

#[tokio::test]
async fn a_second_store_in_one_folder_is_refused() {
    let folder = folder();
    let first = DiskStore::open(folder.path(), limits()).expect("opens");
    let second = DiskStore::open(folder.path(), limits()).err();
    assert_eq!(second, Some(OpenError::Locked(folder.path().to_owned())));
    drop(first);
    assert!(DiskStore::open(folder.path(), limits()).is_ok());
}

#[tokio::test]
async fn a_folder_that_is_none_is_an_error() {
    let folder = folder();
    let file = folder.path().join("file");
    fs::write(&file, "x").expect("writes");
    assert!(matches!(DiskStore::open(&file, limits()), Err(OpenError::Failed { .. })));
}

#[tokio::test]
async fn a_creation_that_was_cut_off_is_begun_anew() {
    let folder = folder();
    fs::create_dir_all(folder.path().join("db.new/keyspaces")).expect("makes");
    fs::write(folder.path().join("db.new/0.jnl"), [0; 64]).expect("writes");
    let store = DiskStore::open(folder.path(), limits()).expect("opens");
    begin(&store, &key("a"), "a").await;
}

/// Without Tokio there is an error, not a panic.
#[test]
fn outside_of_a_runtime_it_says_so() {
    let store = DiskStore::open(folder().path(), limits()).expect("opens");
    let key = key("a");
    let mut commit = store.commit(&key, Version::NEW, state("a"));
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    let std::task::Poll::Ready(committed) = commit.as_mut().poll(&mut context) else { panic!("it waits") };
    assert!(matches!(committed, Err(StoreError::Unavailable(_))), "{committed:?}");
}

/// Journals and tables, damaged one after the other at a few places: an error, or sessions as they were committed.
#[tokio::test]
async fn damaged_files_never_give_another_session() {
    let pristine = folder();
    let store = DiskStore::open(pristine.path(), limits()).expect("opens");
    // Enough that some of them leave the journal for a table.
    let session = |at: u32| state(&format!("{at} ").repeat(50_000));
    for at in 0..200 {
        let committed = store.commit(&key(&format!("s{at}")), Version::NEW, session(at)).await;
        committed.expect("commits");
    }
    let mut files = files(pristine.path());
    for _ in 0..100 {
        if files.iter().any(|file| !is_journal(file)) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
        files = self::files(pristine.path());
    }
    drop(store);
    assert!(files.iter().any(|file| is_journal(file)) && files.iter().any(|file| !is_journal(file)));
    for (file, part) in files.iter().flat_map(|file| (0..3).map(move |part| (file, part))) {
        let copy = folder();
        let copied = Command::new("cp").arg("-a").arg(pristine.path().join("db")).arg(copy.path()).status();
        assert!(copied.expect("cp").success());
        damage(&copy.path().join(file), part);
        let Ok(store) = DiskStore::open(copy.path(), limits()) else { continue };
        for at in 0..200 {
            match store.load(&key(&format!("s{at}"))).await {
                Ok(Found::Held(found, _)) => assert_eq!(found, session(at)),
                // After damage in the journal, what was committed later is not there.
                Ok(Found::New) | Err(StoreError::Unavailable(_)) => {}
                other => panic!("{other:?}"),
            }
        }
    }
}

fn is_journal(file: &Path) -> bool {
    file.extension().is_some_and(|extension| extension == "jnl")
}

/// Journals and tables under a folder, as paths below it. Not the database's lists of its tables: damage there may end the process.
fn files(root: &Path) -> Vec<PathBuf> {
    let (mut found, mut folders) = (Vec::new(), vec![root.join("db")]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a folder").flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if is_journal(&path) || path.parent().is_some_and(|parent| parent.ends_with("tables")) {
                found.push(path.strip_prefix(root).expect("inside").to_owned());
            }
        }
    }
    found.sort();
    found
}

/// Turns some bits over, a quarter of the content further with each part.
fn damage(path: &Path, part: usize) {
    let mut bytes = fs::read(path).expect("reads");
    // The journal is longer than what was written to it.
    let content = bytes.iter().rposition(|byte| *byte != 0).map_or(bytes.len(), |last| last + 1);
    let at = content * part / 4;
    for byte in bytes.iter_mut().skip(at).take(3) {
        *byte ^= 0x5a;
    }
    fs::write(path, bytes).expect("writes");
}

/// A file system of its own, of 24 MB. None, and said aloud, where this user cannot make one.
struct SmallDisk(TempDir);

impl SmallDisk {
    fn new() -> Option<SmallDisk> {
        let folder = folder();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=24m", "tmpfs"]).arg(folder.path());
        if !mount.status().is_ok_and(|status| status.success()) {
            eprintln!("SKIPPED: this user cannot mount; a full disk was not tested");
            return None;
        }
        Some(SmallDisk(folder))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(self.0.path()).status();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_is_an_error_that_passes() {
    let Some(disk) = SmallDisk::new() else { return };
    let place = disk.0.path().join("sessions");
    let store = DiskStore::open(&place, limits()).expect("opens");
    let mut committed = Vec::new();
    // Ever new sessions: nothing can be tidied up.
    let failed = loop {
        let id = format!("s{}", committed.len());
        let mut session = state(&id);
        session.instructions = vec![Message::plain(Role::System, "x".repeat(100_000))];
        match store.commit(&key(&id), Version::NEW, session.clone()).await {
            Ok(version) => committed.push((id, session, version)),
            Err(error) => break error,
        }
        assert!(committed.len() < 1000, "the disk is larger than it should be");
    };
    assert!(matches!(failed, StoreError::Unavailable(_)), "{failed:?}");
    let (id, session, version) = &committed[0];
    assert_eq!(store.load(&key(id)).await, Ok(Found::Held(session.clone(), *version)), "can be read");
    let again = store.commit(&key(id), *version, session.clone()).await;
    assert!(matches!(again, Err(StoreError::Unavailable(_))), "{again:?}");
    assert!(store.tend().is_err(), "there is no room yet");
    let grown = Command::new("mount").args(["-o", "remount,size=200m"]).arg(disk.0.path()).status();
    assert!(grown.expect("mount").success());
    store.tend().expect("there is room");
    for (id, session, version) in &committed {
        assert_eq!(store.load(&key(id)).await, Ok(Found::Held(session.clone(), *version)));
    }
    let next = count_one(&store, &key(id)).await;
    drop(store);
    let store = DiskStore::open(&place, limits()).expect("opens");
    assert_eq!(held(&store, &key(id)).await.1, next);
}
