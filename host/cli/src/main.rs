//! The `jackfield` binary: the one place where the parts are put together.

mod args;
mod bench;
mod config;
mod dev;
mod dirs;
mod distribution;
mod host;
mod log;
mod model;
mod policies;
mod serve;
mod services;
mod watch;

use std::process::ExitCode;

use clap::Parser;

use args::{Cli, Command};
use dirs::Dirs;

/// Why a command ended before it was done.
#[derive(Debug)]
enum Failure {
    /// Wrong use or configuration: exit code 2.
    Usage(String),
    /// Everything else: exit code 1.
    Failed(String),
}

impl Failure {
    fn usage(error: impl std::fmt::Display) -> Failure {
        Failure::Usage(error.to_string())
    }

    fn failed(error: impl std::fmt::Display) -> Failure {
        Failure::Failed(error.to_string())
    }

    fn into_message(self) -> String {
        match self {
            Failure::Usage(message) | Failure::Failed(message) => message,
        }
    }
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    log::start();
    let dirs = Dirs::from_environment();
    let outcome = match &cli.command {
        Command::Serve(args) => serve::run(args, &dirs),
        Command::Dev(args) => dev::run(args, &dirs),
        Command::Policy(command) => policies::run(command, &dirs),
        Command::Config(command) => config::run(command, &dirs),
        Command::Model(command) => model::run(command, &dirs),
        Command::Bench(args) => bench::run(args),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Failed(message)) => report(&message, 1),
        Err(Failure::Usage(message)) => report(&message, 2),
    }
}

fn report(message: &str, code: u8) -> ExitCode {
    eprintln!("error: {message}");
    ExitCode::from(code)
}
