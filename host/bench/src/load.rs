//! Runs phases: lanes side by side, each by its own arrivals.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, sleep_until};

use crate::client::{Client, Place, Prompt};
use crate::prompt::{Author, draw};
use crate::report::{Report, WorkloadReport};
use crate::turn::Turn;
use crate::waste::{self, Figures};
use crate::workload::{Arrivals, Extent, Lane, Workload};
use crate::{BenchError, Options, memory, summary};

/// What happened in a phase.
#[derive(Debug)]
pub(crate) struct PhaseRun {
    /// Of the foreground: what ran in the background is cut off then.
    pub(crate) seconds: f64,
    pub(crate) turns: Vec<Turn>,
    pub(crate) memory: Vec<memory::Sample>,
    pub(crate) waste: Figures,
}

/// Runs everything and reports.
pub(crate) async fn run(
    workloads: &[Workload],
    options: &Options,
    progress: &dyn Fn(&str),
) -> Result<Report, BenchError> {
    if let Some(pid) = options.pid {
        memory::check(pid)?;
    }
    let client = Arc::new(Client::connect(options).await?);
    let mut reports = Vec::new();
    for (place, workload) in (0..).zip(workloads) {
        // One that is named twice has other prompts the second time.
        let own = Options { seed: options.seed.wrapping_add(place), ..options.clone() };
        let mut phases = Vec::new();
        for (index, phase) in workload.phases.iter().enumerate() {
            progress(&format!("{}: {}", workload.name, phase.name));
            let run = run_phase(&client, workload, index, &own).await;
            phases.push(summary::phase(workload, phase, &run));
        }
        reports.push(WorkloadReport {
            name: workload.name.clone(),
            about: workload.about.clone(),
            slo: workload.slo,
            phases,
        });
    }
    Ok(Report {
        url: options.url.clone(),
        model: client.model.clone(),
        endpoint: client.endpoint(),
        fixed_length: client.fixed_length(),
        quick: options.quick,
        seed: options.seed,
        tokens_per_word: client.tokens_per_word,
        workloads: reports,
    })
}

async fn run_phase(client: &Arc<Client>, workload: &Workload, index: usize, options: &Options) -> PhaseRun {
    let before = client.figures().await;
    let (sink, mut turns) = unbounded_channel();
    let clock = Instant::now();
    let mut foreground = JoinSet::new();
    let mut background = JoinSet::new();
    for (number, lane) in workload.phases[index].lanes.iter().enumerate() {
        let place = format!("{}/{index}/{number}", workload.name);
        let author = Author::new(options.seed, &place, client.tokens_per_word);
        let driver = Arc::new(Driver {
            client: Arc::clone(client),
            clock,
            number,
            shared: if lane.shared_tokens == 0 { String::new() } else { author.shared(lane.shared_tokens) },
            author,
            extent: lane.extent(options.quick),
            lane: lane.clone(),
            sink: sink.clone(),
        });
        if lane.background { &mut background } else { &mut foreground }.spawn(driver.drive());
    }
    let memory = watch(&mut foreground, clock, options.pid).await;
    let seconds = clock.elapsed().as_secs_f64();
    background.shutdown().await;
    drop(sink);
    let mut done = Vec::new();
    while let Some(turn) = turns.recv().await {
        done.push(turn);
    }
    let waste = waste::between(&before, &client.figures().await);
    PhaseRun { seconds, turns: done, memory, waste }
}

/// Waits for the lanes, and looks at the server's memory meanwhile.
async fn watch(lanes: &mut JoinSet<()>, clock: Instant, pid: Option<u32>) -> Vec<memory::Sample> {
    let mut samples = Vec::new();
    let mut ticks = interval(memory::INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            joined = lanes.join_next() => if joined.is_none() { break },
            _ = ticks.tick(), if pid.is_some() => samples.extend(sample(clock, pid)),
        }
    }
    samples.extend(sample(clock, pid));
    samples
}

fn sample(clock: Instant, pid: Option<u32>) -> Option<memory::Sample> {
    Some((clock.elapsed(), memory::read(pid?)?))
}

/// One lane of a running phase.
struct Driver {
    client: Arc<Client>,
    clock: Instant,
    number: usize,
    lane: Lane,
    extent: Extent,
    author: Author,
    shared: String,
    sink: UnboundedSender<Turn>,
}

impl Driver {
    async fn drive(self: Arc<Self>) {
        match self.lane.arrivals {
            Arrivals::Closed(streams) => self.closed(streams).await,
            Arrivals::Open(open) => {
                let schedule = open.schedule(self.extent, self.author.schedule());
                self.open(schedule).await;
            }
        }
    }

    async fn closed(self: Arc<Self>, streams: usize) {
        let next = Arc::new(AtomicUsize::new(0));
        let mut tasks = JoinSet::new();
        for _ in 0..streams {
            let (lane, next) = (Arc::clone(&self), Arc::clone(&next));
            tasks.spawn(async move {
                loop {
                    let request = next.fetch_add(1, Ordering::Relaxed);
                    let started = lane.clock.elapsed();
                    if lane.is_over(request, started) {
                        break;
                    }
                    lane.request(request, started).await;
                }
            });
        }
        tasks.join_all().await;
    }

    async fn open(self: Arc<Self>, schedule: impl Iterator<Item = Duration>) {
        let mut tasks = JoinSet::new();
        for (request, due) in schedule.enumerate() {
            sleep_until((self.clock + due).into()).await;
            let lane = Arc::clone(&self);
            // A request counts from when it was due, so that a client that is late flatters nobody.
            tasks.spawn(async move { lane.request(request, due).await });
            while tasks.try_join_next().is_some() {}
        }
        tasks.join_all().await;
    }

    fn is_over(&self, request: usize, now: Duration) -> bool {
        match self.extent {
            Extent::Requests(count) => request >= count,
            Extent::Seconds(seconds) => now.as_secs_f64() >= seconds,
        }
    }

    async fn request(&self, request: usize, started: Duration) {
        let mut random = self.author.random(request as u64);
        let Some(turns) = self.lane.turns else {
            let tokens = draw(self.lane.prompt_tokens, &mut random);
            let text = self.shared.clone() + &self.author.text(tokens, &mut random);
            let output = draw(self.lane.output_tokens, &mut random);
            self.ask(Prompt::Text(&text), output, started).await;
            return;
        };
        let mut messages = Vec::new();
        if !self.shared.is_empty() {
            messages.push(json!({"role": "system", "content": self.shared}));
        }
        for turn in 0..turns {
            let tokens = draw(self.lane.prompt_tokens, &mut random);
            let text = self.author.text(tokens, &mut random);
            messages.push(json!({"role": "user", "content": text}));
            let output = draw(self.lane.output_tokens, &mut random);
            let started = if turn == 0 { started } else { self.clock.elapsed() };
            // A dialog whose turn failed has nothing to go on from.
            let Some(answer) = self.ask(Prompt::Chat(&messages), output, started).await else { break };
            messages.push(json!({"role": "assistant", "content": answer}));
        }
    }

    /// The answer's text; none when the request failed.
    async fn ask(&self, prompt: Prompt<'_>, output: u32, started: Duration) -> Option<String> {
        let place = Place { lane: self.number, clock: self.clock, started };
        let (turn, text) = self.client.ask(prompt, output, place).await;
        let served = turn.outcome.is_ok();
        // The phase is over when nobody receives.
        let _ = self.sink.send(turn);
        served.then_some(text)
    }
}
