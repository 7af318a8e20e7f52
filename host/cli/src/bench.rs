//! `jackfield bench`: load against an address that speaks the OpenAI API.

mod suite;

use std::fs;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use jackfield_bench::{BenchError, DEFAULT, Options, Report, Workload};

use crate::Failure;
use crate::args::BenchArgs;

pub(crate) fn run(args: &BenchArgs) -> Result<(), Failure> {
    if args.list {
        return list();
    }
    if let Some(name) = args.suite {
        try_outputs(args)?;
        return suite::run(name, args, &options(args));
    }
    let workloads = chosen(&args.workloads).map_err(Failure::usage)?;
    try_outputs(args)?;
    let report = jackfield_bench::run(&workloads, &options(args), &|line| eprintln!("{line}"));
    let report = report.map_err(|error| match error {
        BenchError::Url { .. } | BenchError::Process { .. } => Failure::usage(error),
        _ => Failure::failed(error),
    })?;
    print!("{}", jackfield_bench::table(&report));
    write(args, &report)?;
    if report.any_served() {
        return Ok(());
    }
    Err(Failure::failed("no request was answered; the table says why"))
}

fn list() -> Result<(), Failure> {
    for workload in jackfield_bench::shipped().map_err(Failure::failed)? {
        println!("{:<24} {}", workload.name, workload.about);
    }
    Ok(())
}

fn chosen(names: &[String]) -> Result<Vec<Workload>, BenchError> {
    if names.is_empty() {
        return DEFAULT.into_iter().map(jackfield_bench::find).collect();
    }
    names.iter().map(|name| jackfield_bench::find(name)).collect()
}

/// Without a seed the clock gives one: a second run against the same server must not find the first one's prompts cached.
fn options(args: &BenchArgs) -> Options {
    let clock = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_micros() as u64);
    Options {
        url: args.url.clone(),
        model: args.model.clone(),
        key: args.key.clone().filter(|key| !key.is_empty()),
        quick: args.quick,
        pid: args.pid,
        seed: args.seed.unwrap_or_else(clock),
    }
}

/// Finds out before anything is measured whether the reports can be written.
fn try_outputs(args: &BenchArgs) -> Result<(), Failure> {
    if args.json.is_some() && args.json == args.html {
        return Err(Failure::usage("--json and --html name the same file"));
    }
    for path in args.json.iter().chain(&args.html) {
        // What is there stays until there is something to put in its place.
        let tried = fs::OpenOptions::new().append(true).create(true).open(path);
        tried.map_err(|error| cannot_write(path, &error))?;
    }
    Ok(())
}

/// Writes both reports, the second also when the first fails.
fn write(args: &BenchArgs, report: &Report) -> Result<(), Failure> {
    let json = serde_json::to_string_pretty(report).map_err(Failure::failed)? + "\n";
    let write = |path: &Path, text: &str| fs::write(path, text).map_err(|error| cannot_write(path, &error));
    let json = args.json.as_deref().map_or(Ok(()), |path| write(path, &json));
    let html = args.html.as_deref().map_or(Ok(()), |path| write(path, &jackfield_bench::html(report)));
    json.and(html)
}

fn cannot_write(path: &Path, error: &std::io::Error) -> Failure {
    Failure::failed(format!("cannot write {}: {error}", path.display()))
}
