//! `jackfield config`: the schema of the file, and whether a file is good.

use std::path::Path;

use clap::Parser;

use super::Settings;
use super::file::File;
use crate::Failure;
use crate::args::{Cli, Command, ConfigCommand};
use crate::dirs::Dirs;
use crate::distribution::Resolver;

pub(crate) fn run(command: &ConfigCommand, dirs: &Dirs) -> Result<(), Failure> {
    match command {
        ConfigCommand::Schema => schema(),
        ConfigCommand::Check { file } => check(file, dirs),
    }
}

fn schema() -> Result<(), Failure> {
    let schema = schemars::schema_for!(File);
    println!("{}", serde_json::to_string_pretty(&schema).map_err(Failure::failed)?);
    Ok(())
}

/// What `serve --config FILE` would refuse before it fetches anything.
fn check(file: &Path, dirs: &Dirs) -> Result<(), Failure> {
    let line = ["jackfield".as_ref(), "serve".as_ref(), "--config".as_ref(), file.as_os_str()];
    let cli = Cli::try_parse_from(line).map_err(Failure::usage)?;
    let Command::Serve(args) = cli.command else { return Err(Failure::failed("no arguments of serve")) };
    let settings = Settings::read(&args, dirs).map_err(Failure::usage)?;
    Resolver::new(&settings).check().map_err(Failure::usage)?;
    println!("{} is good", file.display());
    Ok(())
}
