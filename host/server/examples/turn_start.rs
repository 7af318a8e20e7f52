//! What policies add to a turn before the engine gets it, and to each token of its answer:
//! `cargo run --release --example turn_start -- [--model FILE.gguf] BUILT-POLICY…`
//!
//! A built policy is a folder that `jackfield policy build` wrote. All of them are put in force together. The same requests
//! are prepared by two hosts that share one engine, one with the policies and one without, in turns; what is printed is the
//! difference within each pair. Routers are told to have every prompt compressed, so that each kind has work.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use jackfield_builder::read_policy_dir;
use jackfield_dialog::{MemoryLimits, MemoryStore};
use jackfield_engine::{Engine, EngineConfig};
use jackfield_model::{Cpu, Gguf, Model};
use jackfield_policy::{Kind, Manifest, NoServices, Registry, Runtime, RuntimeConfig, Upload};
use jackfield_server::measure::Measured;
use jackfield_server::{Host, ServerConfig};
use jackfield_testkit::tiny_model::TinyModel;
use serde_json::{Value, json};

/// Pairs that are measured, after [`WARM_UP`].
const PAIRS: usize = 2000;
const WARM_UP: usize = 50;
/// Answers that are sent through the filters.
const ANSWERS: usize = 300;

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

fn main() -> ExitCode {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let model = match arguments.iter().position(|argument| argument == "--model") {
        Some(at) if at + 1 < arguments.len() => {
            arguments.remove(at);
            Some(PathBuf::from(arguments.remove(at)))
        }
        _ => None,
    };
    if arguments.is_empty() {
        eprintln!("usage: turn_start [--model FILE.gguf] BUILT-POLICY…");
        return ExitCode::from(2);
    }
    let folders: Vec<PathBuf> = arguments.into_iter().map(PathBuf::from).collect();
    match measure(model.as_deref(), &folders) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

#[tokio::main]
async fn measure(model: Option<&Path>, folders: &[PathBuf]) -> Outcome<()> {
    let engine = engine(model)?;
    let with = Measured::new(host(&engine, folders)?)?;
    let without = Measured::new(host(&engine, &[])?)?;
    println!(
        "{:<28} {:>8} {:>8} {:>8} {:>8}   of {PAIRS} pairs",
        "added to", "P50 µs", "P95 µs", "P99 µs", "max µs"
    );
    for (name, messages) in turns() {
        start(name, &with, &without, &json!({"model": "default", "messages": messages})).await?;
    }
    for (name, token) in [("a token, no hit", "quick "), ("a token, Chinese", "您好，")] {
        tokens(name, &with, &without, token).await?;
    }
    Ok(())
}

fn engine(model: Option<&Path>) -> Outcome<Engine> {
    let cpu = Cpu::new(1);
    let gguf = match model {
        Some(path) => Gguf::open(path)?,
        None => Gguf::from_bytes(TinyModel::default().bytes())?,
    };
    let model = Model::from_gguf(gguf, Arc::clone(&cpu))?;
    Ok(Engine::start(model, &cpu, &EngineConfig { kv_bytes: 64 << 20, ..EngineConfig::default() })?)
}

fn host(engine: &Engine, folders: &[PathBuf]) -> Outcome<Host> {
    let runtime = Runtime::new(RuntimeConfig::default(), Arc::new(NoServices))?;
    let registry = Registry::open(runtime, None)?;
    for folder in folders {
        registry.put(upload(folder)?)?;
    }
    Ok(Host {
        engine: engine.clone(),
        registry,
        sessions: Arc::new(MemoryStore::new(MemoryLimits::default())),
        embed: None,
        config: ServerConfig { compress_to: None, ..ServerConfig::default() },
        swaps: Default::default(),
    })
}

fn upload(folder: &Path) -> Outcome<Upload> {
    let files = read_policy_dir(folder)?;
    let manifest = Manifest::from_toml(&files.manifest_toml)?;
    let mut config = files.config;
    if manifest.kind == Kind::Router {
        config["default"]["compress_to"] = json!(0.5);
    }
    let component = std::fs::read(folder.join("policy.wasm"))?.into();
    Ok(Upload { manifest, component, config, cases: Vec::new() })
}

fn turns() -> [(&'static str, Value); 3] {
    let said = |role: &str, text: &str| json!({"role": role, "content": text});
    let short = json!([said("user", "Which planet of the solar system has the most moons?")]);
    let question = "Hello, could you please help me with something? I would really like to know, if it is not too much \
        trouble, which of the two insulated bottles keeps tea hot for longer, and whether the lid can go into the dishwasher. \
        Thank you very much in advance!";
    let answer = "Of course! The larger bottle keeps drinks hot for about twelve hours, the smaller one for about eight. Both \
        lids can be washed in the upper rack; take the seal out before, and let it dry by itself.";
    let long: Vec<Value> = (0..8)
        .map(|index| if index % 2 == 0 { said("assistant", answer) } else { said("user", question) })
        .collect();
    let service = json!([
        said("system", "你是一家网店的客服助手。请用简洁、礼貌的中文回答顾客的问题，不知道的事情不要编造。"),
        said("user", "您好，我在上海，想要3个保温杯，明天下午三点以前能送到吗？"),
        said("assistant", "您好！上海地区一般次日送达，具体时间要看下单的时间。请问您想要哪一款？"),
        said("user", "您好，请问一下，麻烦您帮我看看大号和小号哪一个更适合送长辈，价格分别是多少，谢谢您！"),
    ]);
    [("a short chat", short), ("a dialog of 8 messages", long.into()), ("a Chinese service turn", service)]
}

/// The start of one turn, with and without policies.
async fn start(name: &str, with: &Measured, without: &Measured, request: &Value) -> Outcome<()> {
    let body = request.to_string();
    let micros = async |host: &Measured| -> Outcome<f64> {
        Ok(host.start(body.as_bytes()).await?.took.as_secs_f64() * 1e6)
    };
    for _ in 0..WARM_UP {
        micros(with).await?;
        micros(without).await?;
    }
    let mut added = Vec::with_capacity(PAIRS);
    for pair in 0..PAIRS {
        // Which goes first alternates too.
        let (long, short) = if pair % 2 == 0 {
            let long = micros(with).await?;
            (long, micros(without).await?)
        } else {
            let short = micros(without).await?;
            (micros(with).await?, short)
        };
        added.push(long - short);
    }
    print(name, added);
    let one = with.start(body.as_bytes()).await?;
    let tokens =
        one.prompt_tokens.map_or("answered by a policy".into(), |tokens| format!("{tokens} prompt tokens"));
    println!("    {tokens}; {}", one.trace);
    Ok(())
}

/// Text that no filter replaces, token by token.
async fn tokens(name: &str, with: &Measured, without: &Measured, token: &str) -> Outcome<()> {
    const TOKENS: usize = 200;
    let micros = async |host: &Measured| -> Outcome<f64> {
        let mut answer = host.answer();
        let began = Instant::now();
        for _ in 0..TOKENS {
            answer.push(token, false).await.ok_or("a filter failed")?;
        }
        Ok(began.elapsed().as_secs_f64() * 1e6 / TOKENS as f64)
    };
    let mut added = Vec::with_capacity(ANSWERS);
    for _ in 0..ANSWERS {
        let long = micros(with).await?;
        added.push(long - micros(without).await?);
    }
    print(name, added);
    Ok(())
}

fn print(name: &str, mut micros: Vec<f64>) {
    micros.sort_by(f64::total_cmp);
    let at = |share: f64| micros[((micros.len() - 1) as f64 * share) as usize];
    println!("{name:<28} {:>8.1} {:>8.1} {:>8.1} {:>8.1}", at(0.5), at(0.95), at(0.99), at(1.0));
}
