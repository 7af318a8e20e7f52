//! The tiers over a tier that is slow, and over none; what a block costs on its way.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Instant;

use jackfield_kernels::{Cpu, KvArena, KvShape, KvType};

use super::lower::WRITES;
use super::tier::{LowerStats, Tier};
use super::*;

fn kept(shape: KvShape, store: KvStore, bytes: usize) -> Kept {
    Kept { shape, kv_type: KvType::F16, store, bytes }
}

fn small(bytes: usize) -> Kept {
    let shape = KvShape { layers: 1, blocks: 100, block_size: 16, kv_heads: 1, head_dim: 8 };
    kept(shape, KvStore::Same, bytes)
}

fn prefix(number: usize) -> BlockHash {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&number.to_le_bytes());
    BlockHash::from_bytes(bytes)
}

fn payload() -> Bytes {
    vec![1; 10].into()
}

/// Keeps a chain of these blocks for an hour.
fn keep(tiers: &Tiers, blocks: std::ops::Range<usize>) {
    let chain: Vec<_> = blocks.map(prefix).collect();
    let hour = Duration::from_secs(3600);
    tiers.not_kept(&chain, hour).into_iter().for_each(|block| tiers.keep(block, || Some(payload())));
}

/// A tier that does nothing until it is told to.
struct Stuck {
    go: Mutex<Receiver<()>>,
    put: Arc<Mutex<Vec<BlockHash>>>,
}

impl Tier for Stuck {
    fn may_have(&self, _: &BlockHash) -> bool {
        false
    }

    fn wants(&self, _: &BlockHash) -> bool {
        true
    }

    fn get(&self, prefixes: &[BlockHash], _: Rank) -> Vec<Option<Bytes>> {
        vec![None; prefixes.len()]
    }

    fn put(&self, prefix: &BlockHash, _: &Bytes, _: Rank) {
        // The test may be over.
        if self.go.lock().unwrap().recv().is_ok() {
            self.put.lock().unwrap().push(*prefix);
        }
    }

    fn touch(&self, _: &[BlockHash], _: Rank) {}

    fn stats(&self) -> LowerStats {
        LowerStats::default()
    }
}

fn stuck_tier() -> (Lower, Sender<()>, Arc<Mutex<Vec<BlockHash>>>) {
    let (sender, go) = channel();
    let put = Arc::default();
    let tier = Stuck { go: Mutex::new(go), put: Arc::clone(&put) };
    (Lower::over(Box::new(tier)), sender, put)
}

fn stuck() -> (Tiers, Sender<()>, Arc<Mutex<Vec<BlockHash>>>) {
    let (lower, sender, put) = stuck_tier();
    (Tiers::over(50, Some(lower), None, small(10)).expect("threads"), sender, put)
}

#[test]
fn nobody_waits_for_a_tier_that_is_stuck() {
    let (tiers, go, put) = stuck();
    let blocks = WRITES + 500;
    (0..blocks).for_each(|number| tiers.demote(prefix(number), payload(), true));
    let stats = tiers.stats();
    assert_eq!((stats.demoted_blocks, stats.memory.blocks, stats.memory.bytes), (blocks as u64, 5, 50));
    // All but those in memory went down; one may be under way already.
    let dropped = (blocks - 5 - WRITES) as u64;
    assert!((dropped - 1..=dropped).contains(&stats.dropped_writes), "{stats:?}");
    assert!(!tiers.flush(Duration::from_millis(1)), "it has written nothing");
    (0..blocks).for_each(|_| go.send(()).expect("it waits"));
    assert!(tiers.flush(Duration::from_secs(60)));
    assert_eq!(put.lock().unwrap()[..10], (0..10).map(prefix).collect::<Vec<_>>(), "the oldest first");
    assert_eq!(tiers.stats().queued_writes, 0);
}

#[test]
fn what_waits_is_written_when_all_is_over() {
    let (tiers, go, put) = stuck();
    keep(&tiers, 0..8);
    drop(tiers);
    (0..8).for_each(|_| go.send(()).expect("it waits"));
    let begun = Instant::now();
    while put.lock().unwrap().len() < 8 {
        assert!(begun.elapsed() < Duration::from_secs(60), "it ended before");
        std::thread::yield_now();
    }
}

#[test]
fn tiers_do_not_wait_for_each_other() {
    let (slow, go_slow, put_slow) = stuck_tier();
    let (fast, go_fast, put_fast) = stuck_tier();
    let tiers = Tiers::over(1000, Some(fast), Some(slow), small(10)).expect("threads");
    keep(&tiers, 0..8);
    (0..8).for_each(|_| go_fast.send(()).expect("it waits"));
    let begun = Instant::now();
    while put_fast.lock().unwrap().len() < 8 {
        assert!(begun.elapsed() < Duration::from_secs(60), "it waits for the other");
        std::thread::yield_now();
    }
    assert!(put_slow.lock().unwrap().is_empty());
    assert!(!tiers.flush(Duration::from_millis(1)), "the other has written nothing");
    (0..8).for_each(|_| go_slow.send(()).expect("it waits"));
    assert!(tiers.flush(Duration::from_secs(60)));
    assert_eq!(put_slow.lock().unwrap().len(), 8);
}

/// A tier that has these blocks, and says which it was asked for.
struct Has(Vec<usize>, Arc<Mutex<Vec<BlockHash>>>);

impl Tier for Has {
    fn may_have(&self, _: &BlockHash) -> bool {
        true
    }

    fn wants(&self, _: &BlockHash) -> bool {
        false
    }

    fn get(&self, prefixes: &[BlockHash], _: Rank) -> Vec<Option<Bytes>> {
        self.1.lock().unwrap().extend(prefixes);
        let has = |asked: &BlockHash| self.0.iter().any(|number| prefix(*number) == *asked);
        prefixes.iter().map(|prefix| has(prefix).then(payload)).collect()
    }

    fn put(&self, _: &BlockHash, _: &Bytes, _: Rank) {}

    fn touch(&self, _: &[BlockHash], _: Rank) {}

    fn stats(&self) -> LowerStats {
        LowerStats::default()
    }
}

#[test]
fn the_second_tier_is_asked_for_what_the_first_lacks_and_nobody_for_what_is_behind_a_gap() {
    let (first, second) = (Arc::default(), Arc::default());
    let has = |blocks: &[usize], asked: &Arc<_>| {
        Some(Lower::over(Box::new(Has(blocks.to_vec(), Arc::clone(asked)))))
    };
    let (disk, remote) = (has(&[0, 1, 4], &first), has(&[2, 3, 6], &second));
    let tiers = Tiers::over(1000, disk, remote, small(10)).expect("threads");
    let chain: Vec<_> = (0..80).map(prefix).collect();
    let fetched = tiers.fetch(&chain, &[false; 80], 16).wait();
    assert_eq!((fetched.held_tokens, fetched.read_tokens), (0, 6 * 16));
    assert_eq!(tiers.leading(chain.iter().copied()).len(), 5);
    let asked = second.lock().unwrap().clone();
    assert_eq!(
        [0, 1, 2, 3, 4, 5].map(|number| asked.contains(&prefix(number))),
        [false, false, true, true, false, true]
    );
    let stats = tiers.stats();
    assert_eq!((stats.disk.misses, stats.remote.misses), (1, 1), "once for a prompt");
    // Again: what is read already is not asked for, and the gap is still where it was.
    first.lock().unwrap().clear();
    tiers.fetch(&chain[..8], &[false; 8], 16).wait();
    assert_eq!(*first.lock().unwrap(), [5, 7].map(prefix));
}

#[test]
fn a_chain_is_found_up_to_its_first_gap() {
    let tiers = Tiers::over(1000, None, None, small(10)).expect("no threads");
    [0, 1, 3].into_iter().for_each(|number| tiers.demote(prefix(number), payload(), true));
    assert_eq!(tiers.leading((0..4).map(prefix)).len(), 2);
    let stats = tiers.stats();
    assert_eq!((stats.memory.hits, stats.memory.misses, stats.disk), (2, 1, TierStats::default()));
    assert!(tiers.flush(Duration::ZERO), "there is nothing to write to");
}

#[test]
fn what_is_not_a_whole_block_goes_no_further_down_than_memory() {
    let (tiers, go, put) = stuck();
    (0..20).for_each(|number| tiers.demote(prefix(number), payload(), number % 2 == 0));
    (0..20).for_each(|_| go.send(()).expect("it waits"));
    assert!(tiers.flush(Duration::from_secs(60)));
    // Of those that memory gave up.
    assert_eq!(*put.lock().unwrap(), [0, 2, 4, 6, 8, 10, 12, 14].map(prefix));
    assert_eq!(tiers.first(&[prefix(1), prefix(15), prefix(16)]), Some((prefix(15), payload())));
    tiers.forget(&prefix(15));
    assert_eq!(tiers.first(&[prefix(15)]), None);
}

#[test]
fn without_a_disk_memory_keeps_what_is_to_be_kept() {
    let tiers = Tiers::over(30, None, None, small(10)).expect("no threads");
    let hour = Duration::from_secs(3600);
    keep(&tiers, 0..1);
    tiers.demote(prefix(1), payload(), true);
    let not_kept = tiers.not_kept(&[prefix(1), prefix(2)], hour);
    assert_eq!(not_kept.iter().map(|block| block.prefix).collect::<Vec<_>>(), [prefix(2)]);
    (10..20).for_each(|number| tiers.demote(prefix(number), payload(), true));
    assert!(tiers.is_in_memory(&prefix(0)) && tiers.is_in_memory(&prefix(1)));
    assert_eq!((tiers.stats().kept_blocks, tiers.stats().memory.blocks), (1, 3));
}

#[test]
fn the_beginning_of_a_chain_outlives_its_end() {
    let tiers = Tiers::over(50, None, None, small(10)).expect("no threads");
    keep(&tiers, 0..5);
    keep(&tiers, 10..12);
    assert_eq!(tiers.leading((0..5).map(prefix)).len(), 3);
}

/// What a block costs: `cargo test --release -p jackfield-engine what_a_block_costs -- --ignored --nocapture`.
#[test]
#[ignore = "a measurement"]
fn what_a_block_costs() {
    const BLOCKS: usize = 256;
    let models = [("SmolLM2-135M", 30, 3, 64), ("Qwen2.5-0.5B", 24, 2, 64), ("Llama-3.2-1B", 16, 8, 64)];
    let cpu = Cpu::new(1);
    for (name, layers, kv_heads, head_dim) in models {
        let shape = KvShape { layers, blocks: BLOCKS, block_size: 16, kv_heads, head_dim };
        for store in [KvStore::Int8, KvStore::Same] {
            let mut arena = KvArena::new(shape).expect("memory");
            let bytes = arena.stored_bytes(store);
            let mut blocks = vec![vec![0u8; bytes]; BLOCKS];
            let each = |begun: Instant| begun.elapsed().as_secs_f64() * 1e6 / BLOCKS as f64;
            // Once to have the pages, once to measure.
            let mut out = 0.0;
            for _ in 0..2 {
                let begun = Instant::now();
                (0..).zip(&mut blocks).for_each(|(block, to)| arena.export_block(&cpu, block, store, to));
                out = each(begun);
            }
            let mut back = 0.0;
            for _ in 0..2 {
                let begun = Instant::now();
                (0..).zip(&blocks).for_each(|(block, from)| arena.import_block(&cpu, block, store, from));
                back = each(begun);
            }
            let folder = tempfile::tempdir().expect("a folder");
            let config = DiskTier { folder: folder.path().to_owned(), bytes: u64::MAX };
            let identity = Identity::new([0; 32], &kept(shape, store, bytes));
            let disk = Disk::open(&config, identity).expect("a folder");
            let names: Vec<_> = (0..BLOCKS).map(prefix).collect();
            let blocks: Vec<Bytes> = blocks.into_iter().map(Bytes::from).collect();
            let begun = Instant::now();
            names.iter().zip(&blocks).for_each(|(name, block)| disk.put(name, block, now()));
            let written = each(begun);
            let begun = Instant::now();
            let found = disk.get(&names, now()).into_iter().flatten().count();
            let read = each(begun);
            assert_eq!(found, BLOCKS);
            println!(
                "{name}, {store:?}, {} KiB: out {out:.0} µs, back {back:.0} µs, to disk {written:.0} µs, from disk {read:.0} µs",
                bytes / 1024
            );
        }
    }
}
