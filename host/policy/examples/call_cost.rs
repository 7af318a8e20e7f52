//! What a call of a policy costs: `cargo run --release -p jackfield-policy --example call_cost -- FILE.wasm...`
//!
//! The kind is found from the exports. `FILE.json` beside a component is its configuration; `{}` when absent. Prints
//! microseconds of a call, instance and checks included, at P50 and P99, for inputs of a usual size.

use std::{path::Path, process::ExitCode, sync::Arc, time::Instant};

use jackfield_policy::{
    Budget, Dialog, Fault, Grant, Kind, Manifest, Message, NoServices, Part, Policy, Refusal, Role,
    RouteRequest, Runtime, RuntimeConfig, Target, Turn, Upload, Window, stream::FilterStream,
};

const CALLS: usize = 2000;
const TEXT: &str = "您好，请问一下，我昨天的订单 AB-123456 到哪里了？麻烦您帮我查一下，谢谢！My card is 4111 1111 1111 1111.";

fn main() -> ExitCode {
    let files: Vec<String> = std::env::args().skip(1).collect();
    if files.is_empty() {
        eprintln!("usage: call_cost FILE.wasm...");
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
    let component: Arc<[u8]> = std::fs::read(file).map_err(|e| e.to_string())?.into();
    let config = match std::fs::read_to_string(file.with_extension("json")) {
        Ok(text) => serde_json::from_str(&text).map_err(|e| e.to_string())?,
        Err(_) => serde_json::json!({}),
    };
    let start = Instant::now();
    let policy = prepare(runtime, &component, &config)?;
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
    component: &Arc<[u8]>,
    config: &serde_json::Value,
) -> Result<Policy, String> {
    let of_kind = |kind| {
        let mut manifest = Manifest::new("measured", kind);
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

/// The host's own matching, for text without a hit: no guest is called.
fn natively(policy: &Policy) {
    const TOKENS: [&str; 6] = ["The ", "quick", " brown", " fox", " jumps", "。\n"];
    let mut stream = FilterStream::new(policy, 0);
    let (start, mut asked) = (Instant::now(), 0);
    const ROUNDS: usize = 20_000;
    for _ in 0..ROUNDS {
        for token in TOKENS {
            stream.feed(token);
            asked += usize::from(stream.window().is_some());
            stream.pass();
        }
    }
    let nanos = start.elapsed().as_nanos() as f64 / (ROUNDS * TOKENS.len()) as f64;
    println!("{:<28} {:<26} {nanos:>6.0} ns a token, {asked} with a hit", "", "native watching");
}

fn time(policy: &Policy, what: &str, call: impl Fn() -> Result<u32, Fault>) -> Result<(), String> {
    let mut micros = Vec::with_capacity(CALLS);
    for _ in 0..CALLS {
        let start = Instant::now();
        call().map_err(|fault| fault.to_string())?;
        micros.push(start.elapsed().as_nanos() as f64 / 1000.0);
    }
    micros.sort_by(f64::total_cmp);
    let at = |share: f64| micros[((micros.len() - 1) as f64 * share) as usize];
    println!(
        "{:<28} {what:<26} {:>9.1} {:>9.1} {:>9.1}",
        policy.version().to_string(),
        at(0.5),
        at(0.99),
        at(1.0)
    );
    Ok(())
}
