//! Blocks below the device: what comes back is what went, nobody finds what is another's, and nothing doubtful is used.

mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jackfield_engine::{
    ConfigError, DiskTier, Engine, EngineConfig, Fetched, Job, KvStore, KvType, Rejection, Sampling,
    StartError,
};
use jackfield_model::{Cpu, Gguf, Model};
use jackfield_tiny::tiny_model::TinyModel;
use support::{
    BLOCK, HELD, Reply, ask, cold, engine, engine_of, eventually, greedy, job, kv_bytes, prompt, push_out,
    run, scarce,
};

const MINUTE: Duration = Duration::from_secs(60);
fn on_disk(folder: &Path) -> impl Fn(&mut EngineConfig) {
    let disk = DiskTier { folder: folder.to_owned(), bytes: 1 << 20 };
    move |config| config.kv_disk = Some(disk.clone())
}

/// A folder in which a host has kept a prompt, and what it answered.
async fn stored(number: u32, change: impl Fn(&mut EngineConfig)) -> (tempfile::TempDir, Reply) {
    let folder = tempfile::tempdir().expect("a folder");
    let host = engine(|config| {
        on_disk(folder.path())(config);
        change(config);
    });
    let reply = run(&host, ask(&host, number)).await;
    host.keep(&prompt(number), &[0; 32], Duration::ZERO);
    assert!(host.flush(MINUTE));
    assert_eq!(host.stats().kv.disk.blocks, HELD / BLOCK);
    (folder, reply)
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let shards = fs::read_dir(folder).expect("it is there").flatten().map(|entry| entry.path());
    shards.filter_map(|shard| fs::read_dir(shard).ok()).flatten().flatten().map(|file| file.path()).collect()
}

#[tokio::test]
async fn an_evicted_prompt_comes_back_from_memory() {
    let host = engine(scarce);
    let first = run(&host, ask(&host, 1)).await;
    assert_eq!((first.usage.cached_tokens, &first.choices), (0, &cold(1).await.choices));
    push_out(&host, 1).await;
    let other = run(&host, Job { salt: [9; 32], ..ask(&host, 1) }).await;
    assert_eq!(other.usage.cached_tokens, 0, "another group finds nothing");
    push_out(&host, 1).await;
    let again = run(&host, ask(&host, 1)).await;
    assert_eq!((again.usage.cached_tokens, &again.choices), (HELD, &first.choices));
    let stats = host.stats().kv;
    assert!(stats.promoted_blocks >= 5 && stats.demoted_blocks >= 5 && stats.memory.hits >= 5, "{stats:?}");

    let without = engine(|config| {
        scarce(config);
        config.kv_memory_bytes = 0;
    });
    run(&without, ask(&without, 1)).await;
    push_out(&without, 1).await;
    let again = run(&without, ask(&without, 1)).await;
    assert_eq!((again.usage.cached_tokens, &again.choices), (0, &first.choices));
    assert_eq!(without.stats().kv, Default::default());
}

#[tokio::test]
async fn a_host_that_starts_again_finds_what_was_kept() {
    let (folder, reply) = stored(1, |_| ()).await;
    let host = engine(on_disk(folder.path()));
    let fetched = host.fetch(&prompt(1), &[9; 32]).await;
    assert_eq!(fetched, Fetched::default(), "another group finds nothing");
    let other = run(&host, Job { salt: [9; 32], ..ask(&host, 1) }).await;
    assert_eq!((other.usage.cached_tokens, &other.choices), (0, &reply.choices));

    let fetched = host.fetch(&prompt(1), &[0; 32]).await;
    assert_eq!(fetched, Fetched { held_tokens: 0, read_tokens: HELD, ready_tokens: HELD });
    let again = run(&host, ask(&host, 1)).await;
    assert_eq!((again.usage.cached_tokens, &again.choices), (HELD, &reply.choices));
    assert_eq!(&again.choices, &cold(1).await.choices);
    let stats = host.stats().kv;
    assert_eq!((stats.disk.hits, stats.promoted_blocks), (5, 5), "{stats:?}");
    let fetched = host.fetch(&prompt(1), &[0; 32]).await;
    assert_eq!(
        fetched,
        Fetched { held_tokens: HELD, read_tokens: 0, ready_tokens: HELD },
        "it is on the device"
    );
}

#[tokio::test]
async fn who_does_not_fetch_waits_for_no_disk() {
    let (folder, reply) = stored(1, |_| ()).await;
    let host = engine(on_disk(folder.path()));
    let again = run(&host, ask(&host, 1)).await;
    assert_eq!((again.usage.cached_tokens, &again.choices), (0, &reply.choices));
}

#[tokio::test]
async fn a_kept_dialog_is_found_with_its_answer() {
    let folder = tempfile::tempdir().expect("a folder");
    let host = engine(on_disk(folder.path()));
    let mut first = Job { max_new_tokens: 23, ..job(&host, "you and the system are in the world") };
    first.sampling.logprobs = Some(0);
    let begun = first.prompt.clone();
    let reply = run(&host, first).await;
    let said = [begun, reply.ids()].concat();
    host.keep(&said, &[0; 32], MINUTE);
    assert!(host.flush(MINUTE));
    drop(host);
    let host = engine(on_disk(folder.path()));
    let next = [said.clone(), vec![80, 81, 82]].concat();
    host.fetch(&next, &[0; 32]).await;
    let cached = run(&host, Job { prompt: next, ..job(&host, "x") }).await.usage.cached_tokens;
    // The last token's keys and values were never computed.
    assert_eq!(cached, (said.len() - 1) / BLOCK * BLOCK);
    assert!(cached > 0);
}

#[tokio::test]
async fn a_dialog_goes_on_where_it_stopped_and_not_at_the_last_whole_block() {
    let host = engine(|config| {
        scarce(config);
        config.kv_store = KvStore::Same;
    });
    for number in 1..=2 {
        let mut first = Job { max_new_tokens: 8, ..ask(&host, number) };
        first.sampling.logprobs = Some(0);
        let said = [prompt(number), run(&host, first).await.ids()].concat();
        if number == 2 {
            push_out(&host, number).await;
        }
        let next = Job { prompt: [said.clone(), vec![80, 81, 82]].concat(), ..job(&host, "x") };
        let warm = run(&host, next.clone()).await;
        assert_eq!(warm.usage.cached_tokens, said.len() - 1, "dialog {number}");
        assert!(!warm.usage.cached_tokens.is_multiple_of(BLOCK));
        let cold = engine(|config| config.kv_memory_bytes = 0);
        assert_eq!(warm.choices, run(&cold, next).await.choices, "dialog {number}");
    }
}

#[tokio::test]
async fn what_memory_gives_up_goes_to_disk_and_comes_back() {
    let folder = tempfile::tempdir().expect("a folder");
    let host = engine(|config| {
        scarce(config);
        on_disk(folder.path())(config);
        config.kv_memory_bytes = kv_bytes(12);
    });
    let first = run(&host, ask(&host, 1)).await;
    push_out(&host, 1).await;
    for other in 200..206 {
        run(&host, ask(&host, other)).await;
    }
    assert!(host.flush(MINUTE));
    let fetched = host.fetch(&prompt(1), &[0; 32]).await;
    assert_eq!(fetched, Fetched { held_tokens: 0, read_tokens: HELD, ready_tokens: HELD });
    let again = run(&host, ask(&host, 1)).await;
    assert_eq!((again.usage.cached_tokens, &again.choices), (HELD, &first.choices));
    let stats = host.stats().kv;
    assert!(stats.memory.evicted > 0 && stats.memory.bytes <= kv_bytes(12) as u64, "{stats:?}");
    assert_eq!((stats.dropped_writes, stats.failed_writes), (0, 0));
}

#[tokio::test]
async fn a_long_prompt_does_not_push_itself_out_of_memory() {
    let (folder, reply) = stored(1, |_| ()).await;
    let host = engine(|config| {
        on_disk(folder.path())(config);
        config.kv_memory_bytes = kv_bytes(4);
    });
    let fetched = host.fetch(&prompt(1), &[0; 32]).await;
    assert_eq!(fetched, Fetched { held_tokens: 0, read_tokens: 2 * BLOCK, ready_tokens: 2 * BLOCK });
    let again = run(&host, ask(&host, 1)).await;
    assert_eq!((again.usage.cached_tokens, &again.choices), (2 * BLOCK, &reply.choices));
}

/// Two hosts with and without tiers, the same jobs in the same order, two groups, and a pool that holds little of it.
#[tokio::test]
async fn tiers_change_no_text() {
    let folder = tempfile::tempdir().expect("a folder");
    for kv_type in [KvType::F16, KvType::Int8] {
        let with = engine(|config| {
            scarce(config);
            on_disk(&folder.path().join(format!("{kv_type:?}")))(config);
            config.kv_type = kv_type;
            config.kv_memory_bytes = kv_bytes(8);
        });
        let without = engine(|config| {
            config.kv_type = kv_type;
            config.prefix_cache = false;
        });
        let mut cached = 0;
        for round in 0..40u32 {
            let number = round * 7 % 5;
            let salt = [(round % 2) as u8; 32];
            let sampling = if round % 3 == 0 { support::seeded(u64::from(round)) } else { greedy() };
            let tail = (0..round % 4 * 9).map(|i| 71 + i);
            let prompt: Vec<u32> = prompt(number).into_iter().chain(tail).collect();
            let job = Job { prompt: prompt.clone(), salt, sampling, n: 1 + round % 2, ..job(&with, "x") };
            if round % 4 != 0 {
                with.fetch(&prompt, &salt).await;
            }
            let (plain, reply) = (run(&without, job.clone()).await, run(&with, job).await);
            assert_eq!(reply.choices, plain.choices, "{kv_type:?}, round {round}");
            cached += reply.usage.cached_tokens;
            with.keep(&prompt, &salt, Duration::from_millis(u64::from(round % 3) * 50));
        }
        let stats = with.stats().kv;
        assert!(cached > 0 && stats.promoted_blocks > 20 && stats.disk.hits > 0, "{stats:?}");
        assert!(stats.rejected.iter().all(|(_, count)| *count == 0), "{stats:?}");
    }
}

/// In 8 bits: up to the first place where another token is chosen all are the same, and there the one that is chosen was within
/// this many nats of the best.
const NEAR: f32 = 0.25;

#[tokio::test]
async fn in_eight_bits_only_what_was_nearly_as_likely_takes_anothers_place() {
    let mut same = 0;
    for number in 0..12 {
        let host = engine(|config| {
            scarce(config);
            config.kv_store = KvStore::Int8;
        });
        let sampling = Sampling { logprobs: Some(20), ..greedy() };
        let ask = || Job { sampling: sampling.clone(), ..ask(&host, number) };
        let exact = run(&host, ask()).await;
        push_out(&host, number).await;
        let rough = run(&host, ask()).await;
        assert_eq!(rough.usage.cached_tokens, HELD);
        let pairs = exact.choices[0].tokens.iter().zip(&rough.choices[0].tokens);
        let Some((one, other)) = pairs.clone().find(|(one, other)| one.id != other.id) else {
            same += 1;
            continue;
        };
        let listed = one.top.iter().find(|(id, _)| *id == other.id);
        let behind = listed.map_or(f32::INFINITY, |(_, logprob)| one.logprob - logprob);
        assert!(behind < NEAR, "prompt {number}: {behind} nats behind");
    }
    assert!(same > 0, "not one answer was the same");
}

/// Spoils every file of a stored prompt in one way: the answer is that of a host without tiers, the reason is counted, and
/// nothing of it is left.
async fn spoiled(reason: Rejection, spoil: impl Fn(&Path)) {
    let (folder, reply) = stored(1, |_| ()).await;
    let host = engine(on_disk(folder.path()));
    files(folder.path()).iter().for_each(|file| spoil(file));
    let fetched = host.fetch(&prompt(1), &[0; 32]).await;
    assert_eq!(fetched, Fetched::default(), "{reason}");
    let again = run(&host, ask(&host, 1)).await;
    assert_eq!((again.usage.cached_tokens, &again.choices), (0, &reply.choices), "{reason}");
    let stats = host.stats().kv;
    assert_eq!((stats.rejected_for(reason), stats.disk.blocks), (5, 0), "{stats:?}");
    assert!(files(folder.path()).iter().all(|file| !file.is_file()), "{reason}");
}

#[tokio::test]
async fn no_answer_depends_on_a_bad_file() {
    let flip = |at: usize| {
        move |file: &Path| {
            let mut bytes = fs::read(file).expect("it is there");
            bytes[at] ^= 0x10;
            fs::write(file, bytes).expect("written");
        }
    };
    spoiled(Rejection::Checksum, flip(1000)).await;
    spoiled(Rejection::Format, flip(9)).await;
    spoiled(Rejection::Model, flip(20)).await;
    spoiled(Rejection::Layout, flip(81)).await;
    spoiled(Rejection::Length, |file| {
        let bytes = fs::read(file).expect("it is there");
        fs::write(file, &bytes[..bytes.len() / 2]).expect("written");
    })
    .await;
    spoiled(Rejection::Gone, |file| fs::remove_file(file).expect("it was there")).await;
    spoiled(Rejection::Unreadable, |file| {
        fs::remove_file(file).expect("it was there");
        fs::create_dir(file).expect("made");
    })
    .await;
}

#[tokio::test]
async fn swapped_files_are_found_out() {
    let (folder, reply) = stored(1, |_| ()).await;
    let all = files(folder.path());
    let images: Vec<_> = all.iter().map(|file| fs::read(file).expect("it is there")).collect();
    for (file, image) in all.iter().zip(images.iter().cycle().skip(1)) {
        fs::write(file, image).expect("written");
    }
    let host = engine(on_disk(folder.path()));
    assert_eq!(host.fetch(&prompt(1), &[0; 32]).await, Fetched::default());
    assert_eq!(run(&host, ask(&host, 1)).await.choices, reply.choices);
    assert_eq!(host.stats().kv.rejected_for(Rejection::Name), 5);
}

#[tokio::test]
async fn what_a_host_of_another_model_or_layout_left_is_not_used() {
    let (folder, _) = stored(1, |_| ()).await;
    let other = TinyModel { seed: 2, ..TinyModel::default() }.bytes();
    let alone = engine_of(other.clone(), |config| config.kv_memory_bytes = 0);
    let host = engine_of(other, on_disk(folder.path()));
    assert_eq!(host.fetch(&prompt(1), &[0; 32]).await, Fetched::default());
    let (reply, plain) = (run(&host, ask(&host, 1)).await, run(&alone, ask(&alone, 1)).await);
    assert_eq!((reply.usage.cached_tokens, &reply.choices), (0, &plain.choices));
    assert_eq!(host.stats().kv.rejected_for(Rejection::Model), 5);

    let others: [fn(&mut EngineConfig); 2] =
        [|config| config.kv_store = KvStore::Int8, |config| config.kv_type = KvType::Int8];
    for other in others {
        let (folder, _) = stored(1, |_| ()).await;
        let host = engine(|config| {
            on_disk(folder.path())(config);
            other(config);
        });
        assert_eq!(host.fetch(&prompt(1), &[0; 32]).await, Fetched::default());
        assert_eq!(run(&host, ask(&host, 1)).await.usage.cached_tokens, 0);
        assert_eq!(host.stats().kv.rejected_for(Rejection::Layout), 5);
    }
}

/// The folder as it is at some instant, with what a killed host leaves: a temporary file, and a block that is half there.
#[tokio::test]
async fn what_a_killed_host_leaves_is_of_use_as_far_as_it_is_whole() {
    let (folder, reply) = stored(1, |_| ()).await;
    let copy = tempfile::tempdir().expect("a folder");
    let mut torn = None;
    for file in files(folder.path()) {
        let to = copy.path().join(file.strip_prefix(folder.path()).expect("inside"));
        fs::create_dir_all(to.parent().expect("a shard")).expect("made");
        fs::copy(&file, &to).expect("copied");
        fs::write(to.with_extension("1-0.tmp"), b"half").expect("written");
        torn.get_or_insert(to);
    }
    let torn = torn.expect("a file");
    fs::write(&torn, &fs::read(&torn).expect("there")[..700]).expect("cut");
    let host = engine(on_disk(copy.path()));
    assert_eq!(files(copy.path()).len(), 5, "what was being written is gone");
    let fetched = host.fetch(&prompt(1), &[0; 32]).await;
    let again = run(&host, ask(&host, 1)).await;
    assert_eq!(fetched.read_tokens, HELD - BLOCK);
    assert!(again.usage.cached_tokens < HELD && again.usage.cached_tokens.is_multiple_of(BLOCK));
    assert_eq!(again.choices, reply.choices);
    assert_eq!((host.stats().kv.rejected_for(Rejection::Length), torn.exists()), (1, false));
}

#[tokio::test]
async fn serving_goes_on_where_nothing_can_be_written() {
    let folder = tempfile::tempdir().expect("a folder");
    let host = engine(|config| {
        scarce(config);
        on_disk(folder.path())(config);
    });
    // Files in the place of every folder.
    (0..=255).for_each(|shard| fs::write(folder.path().join(format!("{shard:02x}")), "").expect("written"));
    let reply = run(&host, ask(&host, 1)).await;
    host.keep(&prompt(1), &[0; 32], MINUTE);
    assert!(host.flush(MINUTE));
    let stats = host.stats().kv;
    assert_eq!((stats.failed_writes, stats.disk.blocks, stats.kept_blocks), (5, 0, 5), "{stats:?}");
    push_out(&host, 1).await;
    let again = run(&host, ask(&host, 1)).await;
    assert_eq!((again.usage.cached_tokens, &again.choices), (HELD, &reply.choices), "memory has it");
}

#[tokio::test]
async fn a_small_disk_has_the_newest() {
    let folder = tempfile::tempdir().expect("a folder");
    let image = kv_bytes(1) as u64 + 184;
    let disk = DiskTier { folder: folder.path().to_owned(), bytes: 5 * image };
    let host = engine(|config| config.kv_disk = Some(disk.clone()));
    for number in 1..=3 {
        run(&host, ask(&host, number)).await;
        host.keep(&prompt(number), &[0; 32], Duration::ZERO);
        assert!(host.flush(MINUTE));
    }
    assert_eq!((files(folder.path()).len(), host.stats().kv.disk.evicted), (5, 10));
    drop(host);
    let host = engine(|config| config.kv_disk = Some(DiskTier { bytes: 2 * image, ..disk.clone() }));
    assert_eq!(files(folder.path()).len(), 2);
    assert_eq!(host.fetch(&prompt(3), &[0; 32]).await.read_tokens, 2 * BLOCK, "the beginning is left");
}

#[tokio::test]
async fn who_gives_up_leaves_nothing_behind() {
    let (folder, _) = stored(1, |_| ()).await;
    let host = engine(on_disk(folder.path()));
    drop(host.fetch(&prompt(1), &[0; 32]));
    eventually(&host, "it is read all the same", |stats| stats.kv.memory.blocks == 5);
    drop(host.submit(ask(&host, 1)).expect("taken"));
    support::settle(&host);
    let nothing = engine(|config| config.kv_memory_bytes = 0);
    assert_eq!(nothing.fetch(&prompt(1), &[0; 32]).await, Fetched::default());
    nothing.keep(&prompt(1), &[0; 32], MINUTE);
    assert!(nothing.flush(Duration::ZERO));
}

#[test]
fn a_thread_may_wait_for_it() {
    let host = engine(|_| ());
    assert_eq!(host.fetch(&prompt(1), &[0; 32]).wait(), Fetched::default());
}

#[test]
fn settings_that_cannot_be_are_refused() {
    let start = |change: &dyn Fn(&mut EngineConfig)| {
        let cpu = Cpu::new(1);
        let model =
            Model::from_gguf(Gguf::from_bytes(TinyModel::default().bytes()).unwrap(), cpu.clone()).unwrap();
        let mut config = EngineConfig { kv_bytes: 1 << 20, ..EngineConfig::default() };
        change(&mut config);
        Engine::start(model, &cpu, &config).err()
    };
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("file");
    fs::write(&file, "").expect("written");
    assert!(start(&|_| ()).is_none());
    for memory in [0, 1000] {
        let error = start(&|config| {
            on_disk(folder.path())(config);
            config.kv_memory_bytes = memory;
        });
        assert!(matches!(error, Some(StartError::Config(ConfigError::StoreTooSmall { .. }))), "{error:?}");
    }
    let error = start(&|config| on_disk(&file)(config)).expect("a file is no folder");
    assert!(matches!(&error, StartError::KvDisk { folder, .. } if *folder == file), "{error}");
}
