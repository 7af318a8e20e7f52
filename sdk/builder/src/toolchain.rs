use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::debian;
use crate::error::ToolchainError;
use crate::memory::Memory;
use crate::process::run;
use crate::rust::{Linker, Rust, TARGET};

/// How long `rustup target add` may take; it fetches some tens of megabytes.
const RUSTUP_LIMIT: Duration = Duration::from_secs(180);

/// How the standard library for guests comes to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// Precompiled, by `rustup target add wasm32-unknown-unknown` or a distribution's equivalent.
    Target,
    /// Compiled on first use from Debian's `rust-web-src` by Debian's `rustc-web`.
    DebianSource,
}

/// A compiler for policies. Cheap to clone; any number of builds may run at a time.
#[derive(Debug, Clone)]
pub struct Toolchain {
    pub(crate) way: Way,
    pub(crate) cargo: PathBuf,
    pub(crate) rustc: PathBuf,
    pub(crate) linker: Linker,
    /// Where folders outside a workspace are built, so that the standard library is compiled once for all of them.
    pub(crate) shared_target_dir: PathBuf,
}

impl Toolchain {
    /// Finds a compiler for policies, installing what is missing where that is possible, and says what it does.
    ///
    /// In this order: the target `wasm32-unknown-unknown` of the active toolchain; `rustup target add`, for at most
    /// three minutes; Debian's packages `rustc-web` and `rust-web-src`, installed by apt-get when run as root.
    ///
    /// `cache` holds one small file about earlier searches and the shared build folder. It is made when needed.
    ///
    /// # Errors
    /// Each names the commands that would help. After an interruption the next call starts over: neither rustup nor
    /// apt-get leaves a state that is taken for complete.
    pub fn find(cache: &Path, say: &mut dyn FnMut(&str)) -> Result<Toolchain, ToolchainError> {
        let rust = Rust::locate()?;
        let linker = Linker::locate(&rust)?;
        let (way, rustc) = choose(&rust, cache, say)?;
        Ok(Toolchain { way, cargo: rust.cargo, rustc, linker, shared_target_dir: cache.join("guest-target") })
    }

    /// Which way [`Toolchain::find`] took.
    pub fn way(&self) -> Way {
        self.way
    }

    /// The same toolchain, building folders outside a workspace under `dir`.
    pub fn with_shared_target_dir(self, dir: impl Into<PathBuf>) -> Toolchain {
        Toolchain { shared_target_dir: dir.into(), ..self }
    }
}

fn choose(rust: &Rust, cache: &Path, say: &mut dyn FnMut(&str)) -> Result<(Way, PathBuf), ToolchainError> {
    if rust.has_target() {
        return Ok((Way::Target, rust.rustc.clone()));
    }
    let known_missing =
        Memory::read(cache).is_some_and(|memory| memory.target_not_available_for == rust.version);
    let debian = debian::installed();
    if known_missing && let Some(rustc) = debian {
        return Ok((Way::DebianSource, rustc));
    }
    let why_not = match add_target(rust, say) {
        Ok(()) => return Ok((Way::Target, rust.rustc.clone())),
        Err(why) => why,
    };
    say(&format!("{why_not}; taking Debian's compiler instead"));
    let rustc = match debian {
        Some(rustc) => rustc,
        None => debian::install(say)
            .map_err(|error| ToolchainError::NoTarget { tried: format!("{why_not}; {error}") })?,
    };
    Memory { target_not_available_for: rust.version.clone() }.write(cache)?;
    say(
        "using Debian's rustc-web; the first build also compiles the standard library, which takes some minutes",
    );
    Ok((Way::DebianSource, rustc))
}

fn add_target(rust: &Rust, say: &mut dyn FnMut(&str)) -> Result<(), String> {
    if !rust.has_rustup {
        return Err(format!("this Rust has no {TARGET} and there is no rustup to add it"));
    }
    say(&format!("adding the target: rustup target add {TARGET}"));
    let mut command = Command::new("rustup");
    command.args(["target", "add", TARGET]);
    let ran = run(&mut command, Some(RUSTUP_LIMIT), say).map_err(|error| error.to_string())?;
    if ran.success && rust.has_target() {
        return Ok(());
    }
    let last = ran.stderr.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("no message");
    Err(format!("rustup cannot add {TARGET} ({})", last.trim()))
}
