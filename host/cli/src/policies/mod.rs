//! Policy folders: made, built, tested, and handed to the registry.

mod folder;
mod prebuilt;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use jackfield_builder::{PolicyKind, Toolchain, new_policy};
use jackfield_policy::{NoServices, Registry, Runtime, RuntimeConfig};

pub(crate) use folder::{PolicyFolder, is_policy_folder, policy_folders};
pub(crate) use prebuilt::{read_prebuilt, write_prebuilt};

use crate::Failure;
use crate::args::PolicyCommand;
use crate::dirs::Dirs;

pub(crate) fn run(command: &PolicyCommand, dirs: &Dirs) -> Result<(), Failure> {
    match command {
        PolicyCommand::New { kind, name, dir } => new(kind, name, dir),
        PolicyCommand::Build { folders, out } => build(folders, out, dirs),
        PolicyCommand::Test { folders } => test(folders, dirs),
    }
}

/// Finds a compiler for policies and says on standard error what it does.
pub(crate) fn toolchain(dirs: &Dirs) -> Result<Toolchain, Failure> {
    let mut say = |line: &str| eprintln!("toolchain: {line}");
    Toolchain::find(&dirs.toolchain(), &mut say).map_err(Failure::failed)
}

fn new(kind: &str, name: &str, dir: &Path) -> Result<(), Failure> {
    let kind: PolicyKind = kind.parse().map_err(Failure::usage)?;
    let folder = dir.join(name);
    new_policy(kind, name, &folder).map_err(Failure::failed)?;
    println!("{}", folder.display());
    Ok(())
}

fn build(folders: &[PathBuf], out: &Path, dirs: &Dirs) -> Result<(), Failure> {
    let folders = expand(folders)?;
    let toolchain = toolchain(dirs)?;
    for folder in folders {
        let upload = folder.build(&toolchain).map_err(Failure::failed)?;
        let written = write_prebuilt(&folder, &upload, out).map_err(Failure::failed)?;
        println!("{} {} bytes", written.display(), upload.component.len());
    }
    Ok(())
}

/// Runs each folder's cases through the whole of what an activation does.
fn test(folders: &[PathBuf], dirs: &Dirs) -> Result<(), Failure> {
    let folders = expand(folders)?;
    let toolchain = toolchain(dirs)?;
    let runtime = Runtime::new(RuntimeConfig::default(), Arc::new(NoServices)).map_err(Failure::failed)?;
    let registry = Registry::open(runtime, None).map_err(Failure::failed)?;
    let mut failed = 0;
    for folder in &folders {
        let outcome = folder.build(&toolchain).map_err(Failure::failed).and_then(|upload| {
            let cases = upload.cases.len();
            registry.put(upload).map(|_| cases).map_err(Failure::failed)
        });
        match outcome {
            Ok(cases) => println!("{}: {cases} cases passed", folder.name()),
            Err(Failure::Usage(why) | Failure::Failed(why)) => {
                failed += 1;
                println!("{}: {why}", folder.name());
            }
        }
    }
    match failed {
        0 => Ok(()),
        failed => Err(Failure::failed(format!("{failed} of {} policies failed", folders.len()))),
    }
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
