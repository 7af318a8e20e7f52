use std::path::{Path, PathBuf};

use super::locate::has_library_source;
use crate::apt;
use crate::builder::Say;
use crate::process::ask;

const PACKAGES: [&str; 2] = ["rustc-web", "rust-web-src"];
const RUSTC: &str = "/usr/bin/rustc";

/// Debian's compiler, if both packages are whole and the library's source is where build-std looks.
pub(crate) fn installed() -> Option<PathBuf> {
    let sysroot = apt::has(&PACKAGES).then(|| ask(RUSTC, &["--print", "sysroot"]).ok()).flatten()?;
    has_library_source(Path::new(&sysroot)).then(|| RUSTC.into())
}

/// Installs the packages with apt-get. The error says why not.
pub(crate) fn install(say: Say<'_>) -> Result<PathBuf, String> {
    apt::install(&PACKAGES, say)?;
    installed().ok_or_else(|| "apt-get is done, and the compiler or its source is still not there".into())
}
