//! Python: componentize-py, from PyPI, in a virtual environment of its own.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::apt;
use crate::builder::{Compiler, Say};
use crate::error::{BuildError, ToolchainError};
use crate::folder::kind_of;
use crate::inputs::Inputs;
use crate::process::{ask, last_line, run};
use crate::sdk::{SdkFile, TARGET, place};

/// The package and the version that the SDK's shim was written for.
const PACKAGE: &str = "componentize-py==0.25.1";

/// How long it may take to be installed; it is some tens of megabytes.
const LIMIT: Duration = Duration::from_secs(600);

/// The SDK as it was when this program was built.
pub(crate) const SDK: [SdkFile; 15] = [
    ("README.md", include_str!("../../template/vendored.md")),
    ("python/jackfield/__init__.py", include_str!("../../python/jackfield/__init__.py")),
    ("python/jackfield/answers.py", include_str!("../../python/jackfield/answers.py")),
    ("python/jackfield/component.py", include_str!("../../python/jackfield/component.py")),
    ("python/jackfield/convert.py", include_str!("../../python/jackfield/convert.py")),
    ("python/jackfield/describe.py", include_str!("../../python/jackfield/describe.py")),
    ("python/jackfield/host.py", include_str!("../../python/jackfield/host.py")),
    ("python/jackfield/offsets.py", include_str!("../../python/jackfield/offsets.py")),
    ("python/jackfield/text.py", include_str!("../../python/jackfield/text.py")),
    ("python/jackfield/types.py", include_str!("../../python/jackfield/types.py")),
    (
        "python/entry/jackfield_slot_extractor.py",
        include_str!("../../python/entry/jackfield_slot_extractor.py"),
    ),
    ("python/entry/jackfield_router.py", include_str!("../../python/entry/jackfield_router.py")),
    ("python/entry/jackfield_compressor.py", include_str!("../../python/entry/jackfield_compressor.py")),
    (
        "python/entry/jackfield_output_filter.py",
        include_str!("../../python/entry/jackfield_output_filter.py"),
    ),
    ("wit/policy.wit", include_str!("../../../wit/policy.wit")),
];

/// A compiler for policies in Python.
#[derive(Debug)]
pub(crate) struct Python {
    componentize: PathBuf,
}

impl Compiler for Python {
    /// A virtual environment in `cache`, made with the `python3` on PATH. On Debian its package `python3-venv` is
    /// installed by apt-get when run as root.
    fn find(cache: &Path, say: Say<'_>) -> Result<Python, ToolchainError> {
        let environment = cache.join(PACKAGE.replace("==", "-"));
        let componentize = environment.join(SCRIPTS).join("componentize-py");
        // Written last: without it the environment is from an interrupted run.
        let complete = environment.join("complete");
        let cache_error = |source| ToolchainError::Cache { path: environment.clone(), source };
        if !complete.is_file() {
            std::fs::create_dir_all(&environment).map_err(cache_error)?;
            // Another process may be at it.
            let lock = File::create(environment.with_extension("lock")).map_err(cache_error)?;
            lock.lock().map_err(cache_error)?;
            if !complete.is_file() {
                install(&environment, say).map_err(|tried| ToolchainError::NoPython { tried })?;
                File::create(&complete).map_err(cache_error)?;
            }
        }
        Ok(Python { componentize })
    }

    fn compile(&self, folder: &Path, say: Say<'_>) -> Result<PathBuf, BuildError> {
        let folder = &std::path::absolute(folder).map_err(|source| BuildError::io(folder, source))?;
        let kind = kind_of(folder)?;
        let sdk = place(folder, &SDK)?;
        let component = folder.join(TARGET).join("policy.wasm");
        let inputs = Inputs::of(&[folder, &sdk], &[PACKAGE, kind.name()])?;
        if inputs.made(&component) {
            return Ok(component);
        }
        let mut command = Command::new(&self.componentize);
        command
            .arg("--wit-path")
            .arg(sdk.join("wit"))
            .args(["--world", kind.name(), "componentize"])
            .arg(format!("jackfield_{}", kind.name().replace('-', "_")))
            .arg("--stub-wasi")
            .arg("--python-path")
            .arg(sdk.join("python/entry"))
            .arg("--python-path")
            .arg(sdk.join("python"))
            .arg("--python-path")
            .arg(folder)
            .arg("--output")
            .arg(&component);
        run(&mut command, None, say)?.compiled()?;
        inputs.remember(&component)?;
        Ok(component)
    }
}

#[cfg(windows)]
const SCRIPTS: &str = "Scripts";
#[cfg(not(windows))]
const SCRIPTS: &str = "bin";

fn install(environment: &Path, say: Say<'_>) -> Result<(), String> {
    say(&format!("installing {PACKAGE} from PyPI into {}", environment.display()));
    let venv = ["-m", "venv", "--clear", &environment.to_string_lossy()];
    let python = ["python3", "python"].into_iter().find(|python| ask(python, &["--version"]).is_ok());
    let python = python.ok_or("there is no python3")?;
    if let Err(why) = command(python, &venv, say) {
        // Debian leaves a part of Python out.
        say(&why);
        apt::install(&["python3-venv"], say)?;
        command(python, &venv, say)?;
    }
    let python = environment.join(SCRIPTS).join("python");
    command(python, &["-m", "pip", "install", "--quiet", "--disable-pip-version-check", PACKAGE], say)
}

fn command(program: impl AsRef<std::ffi::OsStr>, args: &[&str], say: Say<'_>) -> Result<(), String> {
    let ran = run(Command::new(program).args(args), Some(LIMIT), say).map_err(|error| error.to_string())?;
    if ran.success { Ok(()) } else { Err(format!("python3 {}: {}", args.join(" "), last_line(&ran.stderr))) }
}

#[cfg(test)]
mod tests {
    use super::SDK;
    use crate::sdk::tests::carries_all;

    #[test]
    fn the_carried_sdk_has_every_file_of_the_sdk() {
        carries_all(&SDK, "python/jackfield", &[".py"]);
        carries_all(&SDK, "python/entry", &[".py"]);
    }
}
