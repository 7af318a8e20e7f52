//! How long a session of 10 KB takes to be loaded and committed, by store: `latency FOLDER [redis://HOST:PORT]`.
//!
//! In one task and in eight, over 1000 sessions: as fast as it goes, and with a pause after each commit, since a disk that is
//! written all the time makes everybody wait. Microseconds.

use std::{
    env,
    sync::Arc,
    time::{Duration, Instant},
};

use jackfield_dialog::{
    DiskLimits, DiskStore, Found, MemoryLimits, MemoryStore, Message, PastTurn, RedisConfig, RedisStore,
    Role, Session, SessionKey, SessionStore, Version,
};

const SESSIONS: usize = 1000;
const ROUNDS: usize = 4000;
const PAUSES_MS: [u64; 2] = [0, 10];
const BYTES: usize = 10_000;

type Failure = Box<dyn std::error::Error + Send + Sync>;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let mut arguments = env::args().skip(1);
    let Some(folder) = arguments.next() else {
        return Err("usage: latency FOLDER [redis://HOST:PORT]".into());
    };
    println!(
        "store   tasks  pause   load P50   P99   commit P50   P99   both P50    P99    max  (microseconds)"
    );
    measure("memory", Arc::new(MemoryStore::new(MemoryLimits::default()))).await?;
    measure("disk", Arc::new(DiskStore::open(folder, DiskLimits::default())?)).await?;
    if let Some(url) = arguments.next() {
        let config = RedisConfig { url, ..RedisConfig::default() };
        measure("redis", Arc::new(RedisStore::connect(config).await?)).await?;
    }
    Ok(())
}

async fn measure(name: &str, store: Arc<dyn SessionStore>) -> Result<(), Failure> {
    for (pause_ms, tasks) in PAUSES_MS.into_iter().flat_map(|pause_ms| [(pause_ms, 1), (pause_ms, 8)]) {
        let pause = Duration::from_millis(pause_ms);
        let running: Vec<_> =
            (0..tasks).map(|task| tokio::spawn(rounds(store.clone(), task, ROUNDS / tasks, pause))).collect();
        let mut times = Vec::new();
        for task in running {
            times.extend(task.await??);
        }
        let [load, commit, both] = [0, 1, 2].map(|which| {
            let mut sorted: Vec<u128> =
                times.iter().map(|(load, commit)| pick(which, *load, *commit)).collect();
            sorted.sort_unstable();
            sorted
        });
        println!(
            "{name:<8}{tasks:>5}{pause_ms:>5}ms{:>11}{:>6}{:>13}{:>6}{:>11}{:>7}{:>7}",
            part(&load, 50),
            part(&load, 99),
            part(&commit, 50),
            part(&commit, 99),
            part(&both, 50),
            part(&both, 99),
            part(&both, 100),
        );
    }
    Ok(())
}

fn pick(which: usize, load: Duration, commit: Duration) -> u128 {
    [load, commit, load + commit][which].as_micros()
}

/// The value that so many hundredths do not exceed.
fn part(sorted: &[u128], hundredths: usize) -> u128 {
    let last = sorted.len().saturating_sub(1);
    sorted.get(last * hundredths / 100).copied().unwrap_or_default()
}

/// How long each load and each commit took.
async fn rounds(
    store: Arc<dyn SessionStore>,
    task: usize,
    rounds: usize,
    pause: Duration,
) -> Result<Vec<(Duration, Duration)>, Failure> {
    let mut times = Vec::with_capacity(rounds);
    for round in 0..rounds {
        // Each task has sessions of its own, so that none meets a conflict.
        let key = SessionKey::new("acme", format!("{task}-{}", round * 7919 % SESSIONS))?;
        let start = Instant::now();
        let (session, version) = match store.load(&key).await? {
            Found::Held(session, version) => (session, version),
            Found::New | Found::Expired => (large(), Version::NEW),
        };
        let loaded = start.elapsed();
        store.commit(&key, version, session).await?;
        times.push((loaded, start.elapsed() - loaded));
        if !pause.is_zero() {
            tokio::time::sleep(pause).await;
        }
    }
    Ok(times)
}

/// Twenty turns of 500 bytes.
fn large() -> Session {
    let mut session = Session::new(vec![Message::plain(Role::System, "be brief")], 1);
    for _ in 0..20 {
        let said = |role| Message::plain(role, "so many words ".repeat(BYTES / 20 / 2 / 14));
        let messages = vec![said(Role::User), said(Role::Assistant)];
        session.push(PastTurn { messages, ..PastTurn::default() });
    }
    session
}
