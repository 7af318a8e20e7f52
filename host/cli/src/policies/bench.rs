//! `jackfield policy bench`: what a call costs over the recorded cases, against the limits of the manifest.

use std::sync::Arc;
use std::time::{Duration, Instant};

use console::style;
use indicatif::BinaryBytes;
use jackfield_builder::Builder;
use jackfield_policy::{Policy, Runtime, Strategy, Upload, inspect};
use serde::Serialize;

use super::files;
use super::show::{number, table, text};
use super::subject::Subject;
use crate::Failure;
use crate::args::BenchPolicyArgs;
use crate::dirs::Dirs;

/// One policy's calls are measured for no longer than this.
const LONGEST: Duration = Duration::from_secs(10);

pub(super) fn run(args: &BenchPolicyArgs, dirs: &Dirs) -> Result<(), Failure> {
    let subjects = Subject::all(&args.paths)?;
    if let Some(path) = &args.json {
        files::try_output(path)?;
    }
    let builder = super::builder(dirs);
    let (mut measured, mut failed) = (Vec::new(), Vec::new());
    for subject in &subjects {
        match measure(subject, args.calls, &builder) {
            Ok(figures) => measured.push(figures),
            Err(why) => failed.push(format!("{}: {why}", subject.name())),
        }
    }
    print!("{}", shown(&measured));
    if let Some(path) = &args.json {
        let json = serde_json::to_string_pretty(&measured).map_err(Failure::failed)?;
        files::write_output(path, &(json + "\n"))?;
    }
    let over = measured.iter().filter(|figures| !figures.within_budget);
    failed.extend(over.map(|figures| format!("{}: over its budget", figures.policy)));
    if failed.is_empty() { Ok(()) } else { Err(Failure::failed(failed.join("\nerror: "))) }
}

/// What was measured of one policy.
#[derive(Debug, Serialize)]
struct Figures {
    policy: String,
    version: String,
    kind: &'static str,
    component_bytes: usize,
    strategy: Strategy,
    /// Compiling the component, nothing of it known before.
    compile_ms: f64,
    /// From the bytes to a policy that can be called: compiled, configured, frozen.
    ready_ms: f64,
    /// The same once more, with its compiled functions known.
    ready_again_ms: f64,
    /// The first call of all, which finds nothing in the caches.
    first_call_us: f64,
    calls: usize,
    p50_us: f64,
    p99_us: f64,
    max_us: f64,
    deadline_us: f64,
    /// The most that an instance had of linear memory.
    memory_bytes: usize,
    memory_limit_bytes: usize,
    /// Whether the 99th percentile is within the deadline.
    within_budget: bool,
}

fn measure(subject: &Subject, calls: u32, builder: &Builder) -> Result<Figures, String> {
    let upload = subject.upload(builder)?;
    if upload.cases.is_empty() {
        return Err("it has no recorded cases to measure over: put some in cases/".into());
    }
    let as_text = |error: crate::Failure| error.into_message();
    let compile = inspect(&*super::runtime().map_err(as_text)?, &upload.component)
        .map_err(|refusal| refusal.to_string())?
        .compile;
    // An engine that has compiled nothing yet.
    let runtime = super::runtime().map_err(as_text)?;
    let (policy, ready) = prepare(&runtime, &upload)?;
    let (_, again) = prepare(&runtime, &upload)?;
    let mut taken = call(&policy, &upload, calls as usize)?;
    let Some(first) = taken.first().copied() else {
        return Err(
            "its cases call it never: the host finds nothing in them that the filter watches for".into()
        );
    };
    taken.sort();
    let at = |share: f64| micros(taken[((taken.len() - 1) as f64 * share) as usize]);
    let limits = &policy.manifest().limits;
    let deadline = f64::from(limits.deadline_ms) * 1000.0;
    Ok(Figures {
        policy: policy.version().name.clone(),
        version: policy.version().version.clone(),
        kind: policy.manifest().kind.world(),
        component_bytes: upload.component.len(),
        strategy: policy.strategy().clone(),
        compile_ms: millis(compile),
        ready_ms: millis(ready),
        ready_again_ms: millis(again),
        first_call_us: micros(first),
        calls: taken.len(),
        p50_us: at(0.5),
        p99_us: at(0.99),
        max_us: at(1.0),
        deadline_us: deadline,
        memory_bytes: policy.peak_memory_bytes(),
        memory_limit_bytes: limits.memory_bytes,
        within_budget: at(0.99) <= deadline,
    })
}

fn prepare(runtime: &Arc<Runtime>, upload: &Upload) -> Result<(Policy, Duration), String> {
    let begun = Instant::now();
    let policy = Policy::prepare(runtime, Upload { cases: Vec::new(), ..upload.clone() });
    let took = begun.elapsed();
    // A call that takes longer than it may is measured, not ended.
    policy.map(|policy| (policy.patient(), took)).map_err(|refusal| refusal.to_string())
}

/// The cases in turn, until there are so many calls or the time is over.
fn call(policy: &Policy, upload: &Upload, calls: usize) -> Result<Vec<Duration>, String> {
    let begun = Instant::now();
    let mut taken = Vec::with_capacity(calls);
    loop {
        let before = taken.len();
        for case in &upload.cases {
            let failed = |failure| format!("case {:?}: {failure}", case.name);
            taken.extend(policy.time_case(case).map_err(failed)?);
            if taken.len() >= calls || begun.elapsed() >= LONGEST {
                return Ok(taken);
            }
        }
        if taken.len() == before {
            return Ok(taken);
        }
    }
}

fn shown(measured: &[Figures]) -> String {
    if measured.is_empty() {
        return String::new();
    }
    let columns = [
        text("POLICY"),
        number("CALLS"),
        number("P50 µs"),
        number("P99 µs"),
        number("MAX µs"),
        number("FIRST µs"),
        number("DEADLINE"),
        number("MEMORY"),
        number("LIMIT"),
        number("SIZE"),
        number("COMPILE ms"),
        number("READY ms"),
        number("AGAIN ms"),
        text("INSTANCES"),
    ];
    let rows: Vec<_> = measured.iter().map(row).collect();
    table(&columns, &rows)
}

fn row(figures: &Figures) -> [String; 14] {
    let p99 = format!("{:.1}", figures.p99_us);
    let p99 = if figures.within_budget { p99 } else { style(p99).red().to_string() };
    let instances = match &figures.strategy {
        Strategy::Frozen => "frozen",
        Strategy::PerCall { .. } => "configured per call",
    };
    [
        format!("{}@{}", figures.policy, figures.version),
        figures.calls.to_string(),
        format!("{:.1}", figures.p50_us),
        p99,
        format!("{:.1}", figures.max_us),
        format!("{:.1}", figures.first_call_us),
        format!("{} ms", figures.deadline_us / 1000.0),
        BinaryBytes(figures.memory_bytes as u64).to_string(),
        BinaryBytes(figures.memory_limit_bytes as u64).to_string(),
        BinaryBytes(figures.component_bytes as u64).to_string(),
        format!("{:.0}", figures.compile_ms),
        format!("{:.0}", figures.ready_ms),
        format!("{:.0}", figures.ready_again_ms),
        instances.to_owned(),
    ]
}

fn micros(duration: Duration) -> f64 {
    duration.as_nanos() as f64 / 1000.0
}

fn millis(duration: Duration) -> f64 {
    micros(duration) / 1000.0
}
