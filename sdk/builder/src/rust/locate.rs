use std::path::{Path, PathBuf};

use crate::error::ToolchainError;
use crate::process::ask;

pub(crate) const TARGET: &str = "wasm32-unknown-unknown";

/// The Rust that is there: rustup's active toolchain, or what PATH has.
#[derive(Debug, Clone)]
pub(crate) struct Installed {
    pub(crate) cargo: PathBuf,
    pub(crate) rustc: PathBuf,
    pub(crate) sysroot: PathBuf,
    pub(crate) host: String,
    /// `rustc -vV`, whole: names the build of the compiler.
    pub(crate) version: String,
    pub(crate) has_rustup: bool,
}

impl Installed {
    pub(crate) fn locate() -> Result<Installed, ToolchainError> {
        // rustup's real paths, so that its proxies do not pick another toolchain inside a policy's folder.
        let from_rustup =
            ask("rustup", &["which", "cargo"]).ok().zip(ask("rustup", &["which", "rustc"]).ok());
        let has_rustup = from_rustup.is_some();
        let (cargo, rustc) = from_rustup.unwrap_or_else(|| ("cargo".into(), "rustc".into()));
        let no_rust = |detail| ToolchainError::NoRust { detail };
        ask(&cargo, &["--version"]).map_err(no_rust)?;
        let version = ask(&rustc, &["-vV"]).map_err(no_rust)?;
        let sysroot = ask(&rustc, &["--print", "sysroot"]).map_err(no_rust)?;
        let host = host_of(&version).ok_or_else(|| no_rust(format!("{rustc} -vV names no host")))?.to_owned();
        Ok(Installed {
            cargo: cargo.into(),
            rustc: rustc.into(),
            sysroot: sysroot.into(),
            host,
            version,
            has_rustup,
        })
    }

    /// Whether the precompiled standard library for guests is installed.
    pub(crate) fn has_target(&self) -> bool {
        let lib = self.sysroot.join("lib/rustlib").join(TARGET).join("lib");
        std::fs::read_dir(lib).is_ok_and(|mut files| files.next().is_some())
    }
}

/// The linker that turns a guest into a component by itself.
#[derive(Debug, Clone)]
pub(crate) struct Linker {
    pub(crate) component_ld: PathBuf,
    /// The linker it runs; none lets it look on PATH.
    pub(crate) wasm_ld: Option<PathBuf>,
}

impl Linker {
    pub(crate) fn locate(rust: &Installed) -> Result<Linker, ToolchainError> {
        let folder = rust.sysroot.join("lib/rustlib").join(&rust.host).join("bin");
        let component_ld = folder.join(executable("wasm-component-ld"));
        let wasm_ld = folder.join("gcc-ld").join(executable("wasm-ld"));
        if component_ld.is_file() {
            return Ok(Linker { component_ld, wasm_ld: wasm_ld.is_file().then_some(wasm_ld) });
        }
        match ask("wasm-component-ld", &["--version"]) {
            Ok(_) => Ok(Linker { component_ld: "wasm-component-ld".into(), wasm_ld: None }),
            Err(_) => Err(ToolchainError::NoLinker { folder }),
        }
    }
}

fn executable(name: &str) -> String {
    format!("{name}{}", std::env::consts::EXE_SUFFIX)
}

fn host_of(version: &str) -> Option<&str> {
    version.lines().find_map(|line| line.strip_prefix("host: "))
}

/// Whether a compiler's library source, which build-std compiles, lies under its sysroot.
pub(crate) fn has_library_source(sysroot: &Path) -> bool {
    sysroot.join("lib/rustlib/src/rust/library/std/src/lib.rs").is_file()
}

#[cfg(test)]
mod tests {
    use super::host_of;

    #[test]
    fn the_host_is_read_from_the_verbose_version() {
        let version =
            "rustc 1.95.0 (59807616e 2026-04-14)\nbinary: rustc\nhost: aarch64-apple-darwin\nrelease: 1.95.0";
        assert_eq!(host_of(version), Some("aarch64-apple-darwin"));
        assert_eq!(host_of("rustc 1.95.0"), None);
    }
}
