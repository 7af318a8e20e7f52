//! JavaScript and TypeScript: esbuild makes one module of a folder, componentize-qjs a component of that, with the QuickJS
//! engine in it. Both come from npm, into a folder of their own.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::apt;
use crate::builder::{Compiler, Say};
use crate::error::{BuildError, ToolchainError};
use crate::folder::kind_of;
use crate::process::{ask, last_line, run};
use crate::sdk::{SdkFile, TARGET, place};

/// The packages; neither has dependencies but its own binaries, of the same version.
const PACKAGES: [&str; 2] = ["componentize-qjs@0.4.5", "esbuild@0.28.2"];

/// The oldest Node.js that both run on.
const OLDEST_NODE: u32 = 18;

/// How long the packages may take to be installed; they are some tens of megabytes.
const LIMIT: Duration = Duration::from_secs(600);

/// Runs the two packages, from the folder that holds them.
const BUILD: &str = include_str!("../../javascript/build.mjs");

/// The SDK as it was when this program was built.
pub(crate) const SDK: [SdkFile; 13] = [
    ("README.md", include_str!("../../template/vendored.md")),
    ("javascript/package.json", include_str!("../../javascript/package.json")),
    ("javascript/src/answers.js", include_str!("../../javascript/src/answers.js")),
    ("javascript/src/clock.js", include_str!("../../javascript/src/clock.js")),
    ("javascript/src/imports.d.ts", include_str!("../../javascript/src/imports.d.ts")),
    ("javascript/src/index.d.ts", include_str!("../../javascript/src/index.d.ts")),
    ("javascript/src/index.js", include_str!("../../javascript/src/index.js")),
    ("javascript/src/kinds.js", include_str!("../../javascript/src/kinds.js")),
    ("javascript/src/shape.js", include_str!("../../javascript/src/shape.js")),
    ("javascript/src/text.js", include_str!("../../javascript/src/text.js")),
    ("javascript/src/types.d.ts", include_str!("../../javascript/src/types.d.ts")),
    ("javascript/src/unsigned.js", include_str!("../../javascript/src/unsigned.js")),
    ("wit/policy.wit", include_str!("../../../wit/policy.wit")),
];

/// A compiler for policies in JavaScript and TypeScript.
#[derive(Debug)]
pub(crate) struct JavaScript {
    /// [`BUILD`], beside the packages.
    build: PathBuf,
}

impl Compiler for JavaScript {
    /// The packages in `cache`, installed by the `npm` on PATH. On Debian `nodejs` and `npm` are installed by apt-get when
    /// run as root.
    fn find(cache: &Path, say: Say<'_>) -> Result<JavaScript, ToolchainError> {
        let packages = cache.join(PACKAGES.join("-").replace('@', "-"));
        let build = packages.join("build.mjs");
        // Written last: without it the folder is from an interrupted run.
        let complete = packages.join("complete");
        let cache_error = |source| ToolchainError::Cache { path: packages.clone(), source };
        let no_node = |tried| ToolchainError::NoNode { tried };
        std::fs::create_dir_all(&packages).map_err(cache_error)?;
        // Another process may be at it.
        let lock = File::create(packages.with_extension("lock")).map_err(cache_error)?;
        lock.lock().map_err(cache_error)?;
        node(say).map_err(no_node)?;
        if !complete.is_file() {
            install(&packages, say).map_err(no_node)?;
            File::create(&complete).map_err(cache_error)?;
        }
        if std::fs::read_to_string(&build).ok().as_deref() != Some(BUILD) {
            std::fs::write(&build, BUILD).map_err(cache_error)?;
        }
        Ok(JavaScript { build })
    }

    fn compile(&self, folder: &Path, say: Say<'_>) -> Result<PathBuf, BuildError> {
        let folder = &std::path::absolute(folder).map_err(|source| BuildError::io(folder, source))?;
        let sdk = place(folder, &SDK)?;
        let target = folder.join(TARGET);
        std::fs::create_dir_all(&target).map_err(|source| BuildError::io(&target, source))?;
        let component = target.join("policy.wasm");
        let mut command = Command::new("node");
        command
            .current_dir(folder)
            .arg(&self.build)
            .arg(sdk.join("wit"))
            .arg(kind_of(folder)?.name())
            .arg(sdk.join("javascript/src/index.js"))
            .arg(entry(folder))
            .arg(&component);
        run(&mut command, None, say)?.compiled()?;
        Ok(component)
    }
}

/// `app.ts` before `app.js`, which may have been made of it.
fn entry(folder: &Path) -> PathBuf {
    let typed = folder.join("app.ts");
    if typed.is_file() { typed } else { folder.join("app.js") }
}

/// Whether there is a Node.js that will do, after an attempt to install one where there is none.
fn node(say: Say<'_>) -> Result<(), String> {
    let version = match ask("node", &["--version"]) {
        Ok(version) => version,
        Err(why) => {
            apt::install(&["nodejs", "npm"], say).map_err(|error| format!("{why}; {error}"))?;
            ask("node", &["--version"])?
        }
    };
    match major(&version) {
        Some(major) if major >= OLDEST_NODE => Ok(()),
        _ => Err(format!("`node --version` says {version}")),
    }
}

fn major(version: &str) -> Option<u32> {
    version.strip_prefix('v')?.split('.').next()?.parse().ok()
}

fn install(packages: &Path, say: Say<'_>) -> Result<(), String> {
    say(&format!("installing {} from npm into {}", PACKAGES.join(" and "), packages.display()));
    let mut npm = Command::new(NPM);
    npm.args(["install", "--no-save", "--no-package-lock", "--ignore-scripts"])
        .args(["--no-audit", "--no-fund", "--no-progress", "--prefix"])
        .arg(packages)
        .args(PACKAGES);
    let ran = run(&mut npm, Some(LIMIT), say).map_err(|error| error.to_string())?;
    if ran.success { Ok(()) } else { Err(format!("npm install: {}", last_line(&ran.stderr))) }
}

#[cfg(windows)]
const NPM: &str = "npm.cmd";
#[cfg(not(windows))]
const NPM: &str = "npm";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_major_version_is_read_from_what_node_says() {
        assert_eq!(major("v20.20.2"), Some(20));
        assert_eq!(major("20.20.2"), None);
        assert_eq!(major("vault"), None);
    }

    #[test]
    fn what_is_written_in_typescript_comes_first() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("app.js"), "").expect("written");
        assert_eq!(entry(folder.path()), folder.path().join("app.js"));
        std::fs::write(folder.path().join("app.ts"), "").expect("written");
        assert_eq!(entry(folder.path()), folder.path().join("app.ts"));
    }

    #[test]
    fn the_carried_sdk_has_every_file_of_the_sdk() {
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../javascript/src");
        let files = std::fs::read_dir(sources).expect("sources");
        let mut files: Vec<String> = files
            .map(|file| format!("javascript/src/{}", file.expect("a file").file_name().to_string_lossy()))
            .collect();
        files.sort();
        let carried = SDK.iter().map(|(file, _)| *file).filter(|file| file.contains("/src/"));
        assert_eq!(files, carried.collect::<Vec<_>>());
    }
}
