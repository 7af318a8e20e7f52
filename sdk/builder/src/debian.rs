use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::process::{ask, run};
use crate::rust::has_library_source;

const PACKAGES: [&str; 2] = ["rustc-web", "rust-web-src"];
const RUSTC: &str = "/usr/bin/rustc";

/// Debian's compiler, if both packages are whole and the library's source is where build-std looks.
pub(crate) fn installed() -> Option<PathBuf> {
    let whole = PACKAGES.iter().all(|package| {
        ask("dpkg-query", &["-W", "-f", "${db:Status-Status}", package])
            .is_ok_and(|status| status == "installed")
    });
    let sysroot = whole.then(|| ask(RUSTC, &["--print", "sysroot"]).ok()).flatten()?;
    has_library_source(Path::new(&sysroot)).then(|| RUSTC.into())
}

/// Installs the packages with apt-get, as root only. The error says why not.
///
/// A run that was interrupted leaves the packages in a state that [`installed`] does not accept, so the next call
/// takes up where it ended.
pub(crate) fn install(say: &mut dyn FnMut(&str)) -> Result<PathBuf, String> {
    ask("apt-get", &["--version"]).map_err(|_| "this system has no apt-get".to_owned())?;
    if ask("id", &["-u"])? != "0" {
        return Err("apt-get needs root".into());
    }
    say("installing Debian's packages rustc-web and rust-web-src with apt-get");
    if apt(&["install", "-y", "--no-install-recommends", PACKAGES[0], PACKAGES[1]], say).is_err() {
        say("apt-get does not find them: updating its lists, then trying again");
        apt(&["update"], say)?;
        apt(&["install", "-y", "--no-install-recommends", PACKAGES[0], PACKAGES[1]], say)?;
    }
    installed().ok_or_else(|| "apt-get is done, and the compiler or its source is still not there".into())
}

fn apt(args: &[&str], say: &mut dyn FnMut(&str)) -> Result<(), String> {
    let mut command = Command::new("apt-get");
    command.env("DEBIAN_FRONTEND", "noninteractive").args(args);
    let ran = run(&mut command, Some(Duration::from_secs(1200)), say).map_err(|error| error.to_string())?;
    if ran.success {
        return Ok(());
    }
    let last = ran.stderr.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("no message");
    Err(format!("apt-get {}: {last}", args[0]))
}
