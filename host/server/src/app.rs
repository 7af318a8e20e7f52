//! The parts of a running server, put together once.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::http::HeaderMap;
use jackfield_dialog::SessionStore;
use jackfield_engine::Engine;
use jackfield_policy::Registry;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::config::ServerConfig;
use crate::error::ApiError;
use crate::http::auth::{Keys, Tenant};
use crate::http::body::BodyLimits;
use crate::http::guard;
use crate::metrics::{Metrics, NoVectors, Readings, Swaps, VersionReading};
use crate::openai::Bounds;
use crate::session::{Embed, Lines, Recall, Sessions};
use crate::turn::filter::batch::Desks;

/// Times to the first text that the median is taken of.
const RECENT_TTFTS: usize = 64;

/// What a token of prefill is taken to cost before anything was measured.
const ASSUMED_US_PER_TOKEN: f32 = 3000.0;

/// What the server is built from.
pub struct Host {
    /// The running engine.
    pub engine: Engine,
    /// The policies in force.
    pub registry: Arc<Registry>,
    /// Where dialogs are kept between turns.
    pub sessions: Arc<dyn SessionStore>,
    /// Gives vectors of texts, by which earlier topics are found; none leaves them where they are.
    pub embed: Option<Embed>,
    /// Settings of the HTTP side.
    pub config: ServerConfig,
    /// Counts changes of policies; those that the admin API does not bring about are counted by who does.
    pub swaps: Swaps,
}

/// Shared by all handlers.
pub(crate) struct App {
    pub(crate) engine: Engine,
    pub(crate) registry: Arc<Registry>,
    pub(crate) sessions: Sessions,
    pub(crate) config: ServerConfig,
    pub(crate) metrics: Metrics,
    pub(crate) desks: Desks,
    pub(crate) model_id: String,
    pub(crate) started_unix_s: u64,
    pub(crate) admin_keys: Keys,
    keys: Keys,
    permits: Arc<Semaphore>,
    draining: AtomicBool,
    /// Times to the first text, with the tokens of the prompt.
    ttfts: Mutex<VecDeque<(Duration, usize)>>,
    ids: Ids,
}

impl App {
    pub(crate) fn new(host: Host) -> Result<Arc<App>, getrandom::Error> {
        let Host { engine, registry, sessions, embed, config, swaps } = host;
        let permits = Arc::new(Semaphore::new(config.request_permits.min(Semaphore::MAX_PERMITS)));
        let model_id = config.model_id.clone().unwrap_or_else(|| engine.model().name.clone());
        let no_vectors = NoVectors::default();
        Ok(Arc::new(App {
            metrics: Metrics::new(
                swaps,
                no_vectors.clone(),
                reader(&engine, &registry, &permits, config.request_permits),
            ),
            desks: Desks::default(),
            model_id,
            started_unix_s: unix_time().as_secs(),
            admin_keys: Keys::admin(config.admin_key.as_deref()),
            keys: Keys::new(&config.keys),
            permits,
            draining: AtomicBool::new(false),
            ttfts: Mutex::default(),
            ids: Ids::new()?,
            engine,
            registry,
            sessions: Sessions {
                store: sessions,
                lines: Arc::new(Lines::default()),
                config: config.sessions.clone(),
                recall: Recall::new(&config.sessions, embed, no_vectors),
            },
            config,
        }))
    }

    /// Whose request this is.
    pub(crate) fn tenant(&self, headers: &HeaderMap) -> Result<Tenant, ApiError> {
        authenticate(&self.keys, headers)
    }

    /// Whether this request may change policies.
    pub(crate) fn admin(&self, headers: &HeaderMap) -> Result<(), ApiError> {
        authenticate(&self.admin_keys, headers).map(|_| ())
    }

    /// A place among the turns in progress.
    pub(crate) fn permit(&self) -> Result<OwnedSemaphorePermit, ApiError> {
        let permit = Arc::clone(&self.permits).try_acquire_owned();
        permit.map_err(|_| ApiError::overloaded("As many turns are in progress as may be"))
    }

    pub(crate) fn check_model(&self, wanted: &str) -> Result<(), ApiError> {
        let served = wanted == self.model_id || self.config.model_aliases.iter().any(|alias| alias == wanted);
        if served { Ok(()) } else { Err(ApiError::unknown_model(wanted, &self.model_id)) }
    }

    pub(crate) fn bounds(&self) -> Bounds {
        Bounds { vocab: self.engine.model().vocab }
    }

    pub(crate) fn body_limits(&self) -> BodyLimits {
        BodyLimits { bytes: self.config.max_body_bytes, idle: self.config.body_timeout() }
    }

    pub(crate) fn upload_limits(&self) -> BodyLimits {
        BodyLimits { bytes: self.config.max_upload_bytes, idle: self.config.body_timeout() }
    }

    /// `prefix` and 24 hexadecimal digits, unique.
    pub(crate) fn new_id(&self, prefix: &str) -> String {
        format!("{prefix}{}", self.ids.next())
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Acquire)
    }

    /// `ok` while new turns are taken; otherwise what is in the way.
    pub(crate) fn readiness(&self) -> &'static str {
        match () {
            () if self.is_draining() => "draining",
            () if !self.engine.is_ready() => "engine_down",
            () if !self.registry.is_healthy() => "policies_down",
            () => "ok",
        }
    }

    /// Sends new turns away and waits for the running ones, for so long.
    pub(crate) async fn drain(&self, longest: Duration) -> bool {
        self.draining.store(true, Ordering::Release);
        let all = u32::try_from(self.config.request_permits).unwrap_or(u32::MAX);
        tokio::time::timeout(longest, self.permits.acquire_many(all)).await.is_ok()
    }

    pub(crate) fn saw_first_text(&self, after: Duration, prompt_tokens: usize) {
        self.metrics.first_text(after);
        let mut recent = self.ttfts.lock().unwrap_or_else(PoisonError::into_inner);
        if recent.len() == RECENT_TTFTS {
            recent.pop_front();
        }
        recent.push_back((after, prompt_tokens));
    }

    fn recent_ttfts(&self) -> Vec<(Duration, usize)> {
        self.ttfts.lock().unwrap_or_else(PoisonError::into_inner).iter().copied().collect()
    }

    /// Median time to the first text lately, in milliseconds; 0 when nothing is known.
    pub(crate) fn ttft_p50_ms(&self) -> f32 {
        let mut recent = self.recent_ttfts();
        recent.sort_unstable();
        recent.get(recent.len() / 2).map_or(0.0, |(median, _)| median.as_secs_f32() * 1000.0)
    }

    /// What a token of prefill costs lately, waiting included, in microseconds.
    pub(crate) fn us_per_token(&self) -> f32 {
        let recent = self.recent_ttfts();
        let tokens: usize = recent.iter().map(|(_, tokens)| tokens).sum();
        let time: Duration = recent.iter().map(|(time, _)| *time).sum();
        if tokens == 0 { ASSUMED_US_PER_TOKEN } else { time.as_secs_f32() * 1e6 / tokens as f32 }
    }
}

fn authenticate(keys: &Keys, headers: &HeaderMap) -> Result<Tenant, ApiError> {
    if keys.are_open() {
        guard::check_origin(headers)?;
    }
    keys.tenant(headers)
}

/// Since 1970, on the machine's clock.
pub(crate) fn unix_time() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// The same in milliseconds.
pub(crate) fn unix_ms() -> i64 {
    i64::try_from(unix_time().as_millis()).unwrap_or(i64::MAX)
}

/// Ids that nobody can guess from others: a keyed hash of a counter, the key drawn at the start.
struct Ids {
    key: [u8; 32],
    count: AtomicU64,
}

impl Ids {
    fn new() -> Result<Self, getrandom::Error> {
        let mut key = [0; 32];
        getrandom::fill(&mut key)?;
        Ok(Ids { key, count: AtomicU64::new(0) })
    }

    fn next(&self) -> String {
        let count = self.count.fetch_add(1, Ordering::Relaxed);
        blake3::keyed_hash(&self.key, &count.to_le_bytes()).to_hex()[..24].to_owned()
    }
}

/// What a scrape reads beside the counters.
fn reader(
    engine: &Engine,
    registry: &Arc<Registry>,
    permits: &Arc<Semaphore>,
    all_permits: usize,
) -> impl Fn() -> Readings + Send + Sync + 'static {
    let (engine, registry, permits) = (engine.clone(), Arc::clone(registry), Arc::clone(permits));
    move || {
        let stats = engine.stats();
        let (s, kv) = (&stats.scheduler, &stats.kv);
        Readings {
            versions: registry.policies().iter().flat_map(VersionReading::of).collect(),
            gauges: vec![
                ("running_sequences", "Sequences that hold blocks", s.running as f64),
                ("waiting_requests", "Requests that wait for their first step", s.waiting as f64),
                ("preempted_sequences", "Sequences that lost their blocks and wait", s.preempted as f64),
                ("in_flight_requests", "Requests inside the engine", stats.in_flight as f64),
                ("max_in_flight_requests", "How many may be", stats.max_in_flight as f64),
                ("scoring_texts", "Texts that policies have scored now", stats.scoring as f64),
                ("kv_blocks_used", "KV blocks that sequences hold", s.used_blocks as f64),
                ("kv_blocks_free", "KV blocks that no sequence holds", s.free_blocks as f64),
                ("kv_blocks_cached", "Free KV blocks that hold a cached prefix", s.cached_blocks as f64),
                ("kv_memory_bytes", "Bytes of KV blocks below the device, in memory", kv.memory.bytes as f64),
                ("kv_disk_bytes", "Bytes of KV blocks on disk", kv.disk.bytes as f64),
                ("kv_writes_waiting", "KV blocks that wait to be written to disk", kv.queued_writes as f64),
                (
                    "kv_remote_up",
                    "1 while the server for KV blocks answers",
                    f64::from(u8::from(kv.remote.is_up)),
                ),
                (
                    "kv_remote_writes_waiting",
                    "KV blocks that wait to be written to the server",
                    kv.remote.queued_writes as f64,
                ),
                (
                    "turns_in_progress",
                    "Turns that hold a place",
                    (all_permits - permits.available_permits()) as f64,
                ),
                (
                    "policy_generation",
                    "The generation of policies in force",
                    registry.current().generation() as f64,
                ),
                ("ready", "1 while the engine runs", f64::from(u8::from(engine.is_ready()))),
            ],
            counters: vec![
                ("prefix_hit_tokens", "Tokens taken from the prefix cache", s.hit_tokens),
                ("prefix_looked_up_tokens", "Tokens looked up in the prefix cache", s.looked_up_tokens),
                ("computed_tokens", "Tokens computed", s.computed_tokens),
                (
                    "engine_busy_microseconds",
                    "Time in which the engine had something to do",
                    u64::try_from(stats.busy.as_micros()).unwrap_or(u64::MAX),
                ),
                ("scored_tokens", "Tokens computed for their probabilities alone", s.scored_tokens),
                ("recomputed_tokens", "Tokens computed again after a preemption", s.recomputed_tokens),
                ("preemptions", "Sequences that lost their blocks", s.preemptions),
                ("evicted_blocks", "Cached blocks given to something else", s.evicted_blocks),
                ("kv_memory_hits", "KV blocks looked for and found in memory", kv.memory.hits),
                ("kv_memory_misses", "Prompts of which memory lacked a block", kv.memory.misses),
                ("kv_disk_hits", "KV blocks looked for and found on disk", kv.disk.hits),
                ("kv_disk_misses", "Prompts of which the disk lacked a block", kv.disk.misses),
                ("kv_remote_hits", "KV blocks looked for and found on the server", kv.remote.hits),
                ("kv_remote_misses", "Prompts of which the server lacked a block", kv.remote.misses),
                ("kv_remote_stored_blocks", "KV blocks written to the server", kv.remote.stored),
                (
                    "kv_remote_dropped_writes",
                    "KV blocks that were not written to the server for want of time",
                    kv.remote.dropped_writes,
                ),
                (
                    "kv_remote_failed_writes",
                    "KV blocks that the server did not take",
                    kv.remote.failed_writes,
                ),
                (
                    "kv_remote_failures",
                    "Times that the server for KV blocks was found to be of no use",
                    kv.remote.failures,
                ),
                (
                    "kv_promoted_blocks",
                    "KV blocks written back instead of being computed",
                    kv.promoted_blocks,
                ),
                ("kv_demoted_blocks", "KV blocks that went down to memory", kv.demoted_blocks),
                ("kv_kept_blocks", "KV blocks copied down for dialogs that go on", kv.kept_blocks),
                (
                    "kv_dropped_writes",
                    "KV blocks that were not written to disk for want of time or room",
                    kv.dropped_writes,
                ),
                ("kv_failed_writes", "KV blocks that the disk refused", kv.failed_writes),
                (
                    "kv_rejected_blocks",
                    "Stored KV blocks that were found and not fit for use",
                    kv.rejected.iter().map(|(_, blocks)| blocks).sum(),
                ),
                ("interposed_steps", "Steps of short prompts in the middle of another", s.interposed_steps),
                (
                    "policy_records_dropped",
                    "Calls of policies that were to be recorded and were not, for want of time",
                    registry.records_dropped(),
                ),
            ],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_distinct_and_do_not_repeat_over_restarts() {
        let (a, b) = (Ids::new().unwrap(), Ids::new().unwrap());
        let ids: std::collections::HashSet<_> = (0..1000).flat_map(|_| [a.next(), b.next()]).collect();
        assert_eq!(ids.len(), 2000);
        assert!(ids.iter().all(|id| id.len() == 24));
    }
}
