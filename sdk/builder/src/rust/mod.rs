//! Rust: the target `wasm32-unknown-unknown`, by rustup or by Debian's packages, and the linker that makes components.

mod build;
mod debian;
mod locate;
mod memory;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::builder::{Compiler, Say};
use crate::error::{BuildError, ToolchainError};
use crate::process::{last_line, run};

pub(crate) use locate::Linker;
use locate::{Installed, TARGET};
use memory::Memory;

/// How long `rustup target add` may take; it fetches some tens of megabytes.
const RUSTUP_LIMIT: Duration = Duration::from_secs(180);

/// How the standard library for guests comes to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// Precompiled, by `rustup target add wasm32-unknown-unknown` or a distribution's equivalent.
    Target,
    /// Compiled on first use from Debian's `rust-web-src` by Debian's `rustc-web`.
    DebianSource,
}

/// A compiler for policies in Rust.
#[derive(Debug)]
pub(crate) struct Rust {
    way: Way,
    cargo: PathBuf,
    rustc: PathBuf,
    linker: Linker,
    /// Where folders outside a workspace are built, so that the standard library is compiled once for all of them.
    shared_target_dir: PathBuf,
}

impl Compiler for Rust {
    /// In this order: the target `wasm32-unknown-unknown` of the active toolchain; `rustup target add`, for at most
    /// three minutes; Debian's packages `rustc-web` and `rust-web-src`, installed by apt-get when run as root.
    ///
    /// `cache` holds one small file about earlier searches and the shared build folder. Neither rustup nor apt-get leaves
    /// a state that is taken for complete when it is interrupted.
    fn find(cache: &Path, say: Say<'_>) -> Result<Rust, ToolchainError> {
        let installed = Installed::locate()?;
        let linker = Linker::locate(&installed)?;
        let (way, rustc) = choose(&installed, cache, say)?;
        Ok(Rust { way, cargo: installed.cargo, rustc, linker, shared_target_dir: cache.join("guest-target") })
    }

    fn compile(&self, folder: &Path, say: Say<'_>) -> Result<PathBuf, BuildError> {
        self.cargo(folder, say)
    }
}

/// The linker that turns objects into a component by itself, of the Rust that is there.
pub(crate) fn component_linker() -> Result<Linker, ToolchainError> {
    Linker::locate(&Installed::locate()?)
}

fn choose(rust: &Installed, cache: &Path, say: Say<'_>) -> Result<(Way, PathBuf), ToolchainError> {
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

fn add_target(rust: &Installed, say: Say<'_>) -> Result<(), String> {
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
    Err(format!("rustup cannot add {TARGET} ({})", last_line(&ran.stderr)))
}
