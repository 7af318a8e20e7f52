//! Policies on disk and on a server: made, built, checked, tested, measured, deployed, and handed to the registry.

mod bench;
mod changes;
mod check;
mod files;
mod folder;
mod inspect;
mod prebuilt;
mod remote;
mod replay;
mod show;
mod subject;
mod test;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use jackfield_builder::{Builder, Language, PolicyKind, new_policy};
use jackfield_policy::{NoServices, Runtime, RuntimeConfig};

pub(crate) use files::{config as read_config, text as read_text};
pub(crate) use folder::{PolicyFolder, is_policy_folder, policy_folders};
pub(crate) use prebuilt::{COMPONENT, PrebuiltError, write_prebuilt};
pub(crate) use subject::signature_path;

use crate::Failure;
use crate::args::PolicyCommand;
use crate::dirs::Dirs;

pub(crate) fn run(command: &PolicyCommand, dirs: &Dirs) -> Result<(), Failure> {
    match command {
        PolicyCommand::New { kind, lang, name, dir } => new(kind, lang, name, dir),
        PolicyCommand::Build { folders, out } => build(folders, out, dirs),
        PolicyCommand::Check { paths } => check::run(paths, dirs),
        PolicyCommand::Test(args) => test::run(args, dirs),
        PolicyCommand::Bench(args) => bench::run(args, dirs),
        PolicyCommand::Inspect { path, config, json } => inspect::run(path, config.as_deref(), *json, dirs),
        PolicyCommand::Replay(args) => replay::run(args, dirs),
        PolicyCommand::Push(args) => remote::push(args, dirs),
        PolicyCommand::Promote { name, admin } => remote::promote(name, admin),
        PolicyCommand::Rollback { name, admin } => remote::rollback(name, admin),
        PolicyCommand::Status(args) => remote::status(args),
        PolicyCommand::Diff { before, after, admin } => remote::diff(before, after, admin, dirs),
    }
}

/// What compiles policies, in every language.
pub(crate) fn builder(dirs: &Dirs) -> Builder {
    Builder::new(dirs.toolchain())
}

/// The runtime that serves, with a stand-in for the model.
fn runtime() -> Result<Arc<Runtime>, Failure> {
    Runtime::new(RuntimeConfig::default(), Arc::new(NoServices)).map_err(Failure::failed)
}

fn new(kind: &str, language: &str, name: &str, dir: &Path) -> Result<(), Failure> {
    let kind: PolicyKind = kind.parse().map_err(Failure::usage)?;
    let language: Language = language.parse().map_err(Failure::usage)?;
    let folder = dir.join(name);
    new_policy(kind, language, name, &folder).map_err(Failure::failed)?;
    println!("{}", folder.display());
    Ok(())
}

fn build(folders: &[PathBuf], out: &Path, dirs: &Dirs) -> Result<(), Failure> {
    let folders = expand(folders)?;
    let builder = builder(dirs);
    for folder in folders {
        let upload = folder.build(&builder).map_err(Failure::failed)?;
        let written = write_prebuilt(&folder, &upload, out).map_err(Failure::failed)?;
        println!("{} {} bytes", written.display(), upload.component.len());
    }
    Ok(())
}

/// Policy folders as they are; of any other folder the policy folders in it.
fn expand(paths: &[PathBuf]) -> Result<Vec<PolicyFolder>, Failure> {
    let mut found = Vec::new();
    for path in paths {
        let inside = if is_policy_folder(path) { vec![path.clone()] } else { policy_folders(path) };
        if inside.is_empty() {
            return Err(Failure::usage(format!(
                "{} has no policy.toml, nor has a folder in it",
                path.display()
            )));
        }
        found.extend(inside.iter().map(|path| PolicyFolder::new(path)));
    }
    Ok(found)
}
