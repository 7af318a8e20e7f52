//! What a call of a policy costs: `cargo run --release -p jackfield-policy --example call_cost -- FOLDER|FILE.wasm...`
//!
//! Of a built policy folder, its `policy.wasm` is taken with its `rules.toml`; of a component, `FILE.json` beside it is its
//! configuration. `{}` when absent. The kind is found from the exports. Prints microseconds of a call, instance and checks
//! included, at P50 and P99, for inputs of a usual size.

use std::{
    path::Path,
    process::ExitCode,
    sync::Arc,
    time::{Duration, Instant},
};

use jackfield_policy::{
    Budget, Dialog, Fault, Grant, Kind, Manifest, Message, NoServices, Part, Policy, Refusal, Role,
    RouteRequest, Runtime, RuntimeConfig, Strategy, Target, Turn, Upload, Window, stream::FilterStream,
};

const CALLS: usize = 2000;
const APART: Duration = Duration::from_millis(10);
const TEXT: &str = "您好，请问一下，我昨天的订单 AB-123456 到哪里了？麻烦您帮我查一下，谢谢！My card is 4111 1111 1111 1111.";

fn main() -> ExitCode {
    let files: Vec<String> = std::env::args().skip(1).collect();
    if files.is_empty() {
        eprintln!("usage: call_cost FOLDER|FILE.wasm...");
        return ExitCode::from(2);
    }
    let runtime = match Runtime::new(RuntimeConfig::default(), Arc::new(NoServices)) {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    };
    println!("{:<28} {:<26} {:>9} {:>9} {:>9}", "policy", "call", "P50 µs", "P99 µs", "max µs");
    let mut failed = false;
    for file in &files {
        if let Err(error) = measure(&runtime, Path::new(file)) {
            eprintln!("{file}: {error}");
            failed = true;
        }
    }
    if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

fn measure(runtime: &Arc<Runtime>, file: &Path) -> Result<(), String> {
    let name = file.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    let (file, rules) = match file.is_dir() {
        true => (file.join("policy.wasm"), file.join("rules.toml")),
        false => (file.to_owned(), file.with_extension("json")),
    };
    let component: Arc<[u8]> = std::fs::read(file).map_err(|e| e.to_string())?.into();
    let config = match std::fs::read_to_string(&rules) {
        Ok(text) if rules.extension().is_some_and(|is| is == "toml") => {
            toml::from_str(&text).map_err(|e| e.to_string())?
        }
        Ok(text) => serde_json::from_str(&text).map_err(|e| e.to_string())?,
        Err(_) => serde_json::json!({}),
    };
    let start = Instant::now();
    let policy = prepare(runtime, &name, &component, &config)?;
    println!(
        "{:<28} prepared in {} ms, {:?}, {} KiB",
        policy.version().to_string(),
        start.elapsed().as_millis(),
        policy.strategy(),
        component.len() / 1024
    );
    match policy.manifest().kind {
        Kind::OutputFilter => measure_filter(&policy),
        kind => time(&policy, &format!("{kind}, {} bytes", TEXT.len()), || call(&policy, kind)),
    }
}

/// Of the kind that it turns out to be.
fn prepare(
    runtime: &Arc<Runtime>,
    name: &str,
    component: &Arc<[u8]>,
    config: &serde_json::Value,
) -> Result<Policy, String> {
    let of_kind = |kind| {
        let mut manifest = Manifest::new(name, kind);
        manifest.grants = Grant::ALL.to_vec();
        // What is measured is the cost, whatever else the machine does.
        manifest.limits.deadline_ms = 10_000;
        Policy::prepare(
            runtime,
            Upload { manifest, component: component.clone(), config: config.clone(), cases: Vec::new() },
        )
    };
    match of_kind(Kind::Router) {
        Err(Refusal::WrongWorld { found: Some(kind), .. }) => of_kind(kind),
        outcome => outcome,
    }
    .map_err(|refusal| refusal.to_string())
}

fn call(policy: &Policy, kind: Kind) -> Result<u32, Fault> {
    let turn = Turn::default();
    let message = Message::new(Role::User, TEXT);
    match kind {
        Kind::SlotExtractor => {
            let dialog = Dialog::default();
            policy.extract(&turn, &[message], &dialog).map(|c| c.micros)
        }
        Kind::Router => {
            let request = RouteRequest {
                last_user_text: TEXT.into(),
                messages: 1,
                prompt_tokens: 60,
                ..RouteRequest::default()
            };
            let target = Target { model: "default".into(), ..Target::default() };
            policy.route(&turn, &request, &[target]).map(|c| c.micros)
        }
        Kind::Compressor => {
            let part = Part { message, protected: Vec::new(), cached_bytes: 0 };
            let parts = vec![part; 8];
            let budget = Budget { keep_tokens: 200, prompt_tokens: 480, us_per_token: 2000.0 };
            policy.compress(&turn, &parts, &budget).map(|c| c.micros)
        }
        Kind::OutputFilter => Ok(0),
    }
}

fn measure_filter(policy: &Policy) -> Result<(), String> {
    for count in [1, 64] {
        let windows: Vec<Window> = (0..count).map(|id| window(policy, id)).collect();
        time(policy, &format!("review, {count} windows"), || {
            policy.review(&windows).map(|called| called.micros)
        })?;
    }
    natively(policy);
    Ok(())
}

/// A window with the hits that the host itself finds.
fn window(policy: &Policy, id: u32) -> Window {
    let mut stream = FilterStream::new(policy, id);
    stream.feed(TEXT);
    stream.finish();
    stream.window().unwrap_or_else(|| Window { pending: TEXT.into(), ..Window::default() })
}

/// The host's own matching of 64 streams, a token of each in a step, without a hit: no guest is called.
fn natively(policy: &Policy) {
    const TOKENS: [&str; 6] = ["The ", "quick", " brown", " fox", " jumps", "。\n"];
    const STREAMS: u32 = 64;
    let mut streams: Vec<FilterStream> = (0..STREAMS).map(|id| FilterStream::new(policy, id)).collect();
    let (mut micros, mut asked) = (Vec::with_capacity(CALLS), 0);
    for step in 0..CALLS {
        let start = Instant::now();
        for (index, stream) in streams.iter_mut().enumerate() {
            stream.feed(TOKENS[(step + index) % TOKENS.len()]);
            asked += usize::from(stream.window().is_some());
            stream.pass();
        }
        micros.push(start.elapsed().as_nanos() as f64 / 1000.0 / f64::from(STREAMS));
    }
    let what = format!("a window of {STREAMS}, {asked} hits");
    show("", &what, &mut micros, 3);
}

/// One call after another; then, for policies that have an instance made ahead, with time between them to make it.
fn time(policy: &Policy, what: &str, call: impl Fn() -> Result<u32, Fault>) -> Result<(), String> {
    time_apart(policy, what, CALLS, Duration::ZERO, &call)?;
    match policy.strategy() {
        Strategy::Frozen => Ok(()),
        Strategy::PerCall { .. } => {
            let what = format!("the same, {} ms apart", APART.as_millis());
            time_apart(policy, &what, CALLS / 10, APART, &call)
        }
    }
}

fn time_apart(
    policy: &Policy,
    what: &str,
    calls: usize,
    apart: Duration,
    call: impl Fn() -> Result<u32, Fault>,
) -> Result<(), String> {
    let mut micros = Vec::with_capacity(calls);
    for _ in 0..calls {
        std::thread::sleep(apart);
        let start = Instant::now();
        call().map_err(|fault| fault.to_string())?;
        micros.push(start.elapsed().as_nanos() as f64 / 1000.0);
    }
    show(&policy.version().to_string(), what, &mut micros, 1);
    Ok(())
}

fn show(policy: &str, what: &str, micros: &mut [f64], digits: usize) {
    micros.sort_by(f64::total_cmp);
    let at = |share: f64| micros[((micros.len() - 1) as f64 * share) as usize];
    println!("{policy:<28} {what:<26} {:>9.digits$} {:>9.digits$} {:>9.digits$}", at(0.5), at(0.99), at(1.0));
}
