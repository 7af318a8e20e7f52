//! The store on disk answers as the one in memory does, whatever is done to both, and however often it is closed in between.

mod common;

use std::time::Duration;

use common::{Stepped, state};
use jackfield_dialog::{
    DiskLimits, DiskStore, Found, MemoryLimits, MemoryStore, SessionKey, SessionStore, StoreError, Version,
};
use proptest::prelude::*;
use tempfile::TempDir;

const TTL: Duration = Duration::from_secs(16);

/// What is done to two stores at once.
#[derive(Clone, Debug)]
enum Act {
    Load(usize),
    /// At the version last seen there, or at that of a new session.
    Commit(usize, bool),
    Touch(usize),
    Delete(usize),
    List(usize),
    Wait(u64),
    Reopen,
    Tend,
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let act = prop_oneof![
        4 => (0..5usize).prop_map(Act::Load),
        6 => (0..5usize, any::<bool>()).prop_map(|(at, seen)| Act::Commit(at, seen)),
        2 => (0..5usize).prop_map(Act::Touch),
        1 => (0..5usize).prop_map(Act::Delete),
        2 => (0..3usize).prop_map(Act::List),
        2 => (1..20u64).prop_map(Act::Wait),
        1 => Just(Act::Reopen),
        1 => Just(Act::Tend),
    ];
    prop::collection::vec(act, 1..60)
}

/// Both stores, and by key the versions last seen in them, which differ.
struct Both {
    memory: MemoryStore,
    disk: Option<DiskStore>,
    folder: TempDir,
    clock: Stepped,
    seen: Vec<(Version, Version)>,
}

impl Both {
    fn new() -> Both {
        let (folder, clock) = (tempfile::tempdir().expect("a folder"), Stepped::new());
        let limits = MemoryLimits { max_sessions: 3, ttl: TTL, ..MemoryLimits::default() };
        let memory = MemoryStore::with_clock(limits, clock.clock());
        let mut both = Both { memory, disk: None, folder, clock, seen: vec![Default::default(); 5] };
        both.reopen();
        both
    }

    fn reopen(&mut self) {
        self.disk = None;
        let limits = DiskLimits { max_sessions: 3, ttl: TTL, ..DiskLimits::default() };
        let opened = DiskStore::open_with_clocks(self.folder.path(), limits, self.clock.clocks());
        self.disk = Some(opened.expect("opens"));
    }

    async fn act(&mut self, act: &Act, number: usize) {
        // So that all uses differ by more than a store may leave out on disk.
        self.clock.step(TTL / 16);
        let Some(disk) = &self.disk else { return };
        match act {
            Act::Load(at) => {
                let found = (self.memory.load(&name(*at)).await, disk.load(&name(*at)).await);
                match found {
                    (Ok(Found::Held(one, a)), Ok(Found::Held(other, b))) => {
                        assert_eq!(one, other);
                        self.seen[*at] = (a, b);
                    }
                    (one, other) => assert_eq!(one, other),
                }
            }
            Act::Commit(at, seen) => {
                let expected = if *seen { self.seen[*at] } else { Default::default() };
                let session = state(&number.to_string());
                let one = self.memory.commit(&name(*at), expected.0, session.clone()).await;
                let other = disk.commit(&name(*at), expected.1, session).await;
                match (one, other) {
                    (Ok(a), Ok(b)) => self.seen[*at] = (a, b),
                    (
                        Err(StoreError::Conflict { found: one, .. }),
                        Err(StoreError::Conflict { found: other, .. }),
                    ) => assert_eq!(one == Version::NEW, other == Version::NEW),
                    (one, other) => panic!("{one:?} and {other:?}"),
                }
            }
            Act::Touch(at) => assert_eq!(self.memory.touch(&name(*at)).await, disk.touch(&name(*at)).await),
            Act::Delete(at) => {
                assert_eq!(self.memory.delete(&name(*at)).await, disk.delete(&name(*at)).await)
            }
            Act::List(limit) => {
                let after = (*limit == 2).then_some("s1");
                let listed = self.memory.list("acme", after, *limit).await;
                assert_eq!(listed, disk.list("acme", after, *limit).await);
            }
            Act::Wait(seconds) => self.clock.step(Duration::from_secs(*seconds)),
            Act::Reopen => self.reopen(),
            Act::Tend => disk.tend().expect("tends"),
        }
    }
}

/// Five keys of two tenants.
fn name(at: usize) -> SessionKey {
    let tenant = if at < 3 { "acme" } else { "acmf" };
    SessionKey::new(tenant, format!("s{at}")).expect("a good id")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn it_answers_as_the_store_in_memory_does(acts in acts()) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        let mut both = Both::new();
        for (number, act) in acts.iter().enumerate() {
            runtime.block_on(both.act(act, number));
        }
    }
}
