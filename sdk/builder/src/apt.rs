use std::process::Command;
use std::time::Duration;

use crate::builder::Say;
use crate::process::{ask, last_line, run};

/// How long one run of apt-get may take.
const LIMIT: Duration = Duration::from_secs(1200);

/// Whether all these packages of Debian are wholly installed.
pub(crate) fn has(packages: &[&str]) -> bool {
    packages.iter().all(|package| {
        ask("dpkg-query", &["-W", "-f", "${db:Status-Status}", package])
            .is_ok_and(|status| status == "installed")
    })
}

/// Installs packages with apt-get, as root only. The error says why not.
///
/// A run that was interrupted leaves packages that [`has`] does not take for whole, so the next call takes up where it
/// ended.
pub(crate) fn install(packages: &[&str], say: Say<'_>) -> Result<(), String> {
    ask("apt-get", &["--version"]).map_err(|_| "this system has no apt-get".to_owned())?;
    if ask("id", &["-u"])? != "0" {
        return Err("apt-get needs root".into());
    }
    say(&format!("installing with apt-get: {}", packages.join(" ")));
    let install = [&["install", "-y", "--no-install-recommends"], packages].concat();
    if apt_get(&install, say).is_ok() {
        return Ok(());
    }
    say("apt-get does not find them: updating its lists, then trying again");
    apt_get(&["update"], say)?;
    apt_get(&install, say)
}

fn apt_get(args: &[&str], say: Say<'_>) -> Result<(), String> {
    let mut command = Command::new("apt-get");
    command.env("DEBIAN_FRONTEND", "noninteractive").args(args);
    let ran = run(&mut command, Some(LIMIT), say).map_err(|error| error.to_string())?;
    if ran.success { Ok(()) } else { Err(format!("apt-get {}: {}", args[0], last_line(&ran.stderr))) }
}
