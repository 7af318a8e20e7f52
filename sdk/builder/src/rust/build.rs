use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;

use super::{Rust, TARGET, Way};
use crate::builder::Say;
use crate::error::BuildError;
use crate::process::{ask, run};

impl Rust {
    /// A folder of a cargo workspace is built in that workspace's target folder, any other in a shared one. Builds at
    /// the same time wait for each other there.
    pub(super) fn cargo(&self, folder: &Path, say: Say<'_>) -> Result<PathBuf, BuildError> {
        let manifest = folder.join("Cargo.toml");
        let manifest = std::path::absolute(&manifest).map_err(|source| BuildError::io(&manifest, source))?;
        run(&mut self.cargo_build(&manifest), None, say)?.compiled().and_then(|messages| {
            wasm_file(&messages, &manifest).ok_or_else(|| BuildError::NoArtifact { dir: folder.to_owned() })
        })
    }

    fn cargo_build(&self, manifest: &Path) -> Command {
        let mut command = Command::new(&self.cargo);
        command
            .args([
                "build",
                "--release",
                "--lib",
                "--color",
                "never",
                "--message-format",
                "json-render-diagnostics",
            ])
            .args(["--target", TARGET])
            .arg("--manifest-path")
            .arg(manifest)
            .env("RUSTC", &self.rustc)
            .env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER", &self.linker.component_ld)
            // Stands in for any RUSTFLAGS: other flags would compile the standard library again.
            .env("CARGO_ENCODED_RUSTFLAGS", self.rustflags());
        if !self.in_workspace(manifest) {
            command.arg("--target-dir").arg(&self.shared_target_dir);
        }
        if self.way == Way::DebianSource {
            command
                .args(["-Z", "build-std=std,panic_abort"])
                .env("RUSTC_BOOTSTRAP", "1")
                // Under `cargo run` this names the libraries of another compiler.
                .env_remove("LD_LIBRARY_PATH");
        }
        command
    }

    /// Flags as cargo's encoded variable wants them. Vectors, since searching texts is what policies do most, and every
    /// runtime has them.
    fn rustflags(&self) -> String {
        let vectors = "-Ctarget-feature=+simd128".to_owned();
        let linker =
            self.linker.wasm_ld.as_ref().map(|ld| format!("-Clink-arg=--wasm-ld-path={}", ld.display()));
        [vectors].into_iter().chain(linker).collect::<Vec<_>>().join("\x1f")
    }

    /// Whether the package belongs to a workspace of which it is not the root.
    fn in_workspace(&self, manifest: &Path) -> bool {
        let manifest = manifest.to_string_lossy();
        let args =
            ["locate-project", "--workspace", "--message-format", "plain", "--manifest-path", &manifest];
        ask(&self.cargo, &args).is_ok_and(|root| !same_file(Path::new(&root), Path::new(&*manifest)))
    }
}

/// One of cargo's JSON messages, as far as it is of use here.
#[derive(Deserialize)]
struct Message {
    reason: String,
    #[serde(default)]
    manifest_path: PathBuf,
    #[serde(default)]
    filenames: Vec<PathBuf>,
}

fn wasm_file(messages: &str, manifest: &Path) -> Option<PathBuf> {
    messages
        .lines()
        .filter_map(|line| serde_json::from_str::<Message>(line).ok())
        .filter(|message| {
            message.reason == "compiler-artifact" && same_file(&message.manifest_path, manifest)
        })
        .flat_map(|message| message.filenames)
        .find(|file| file.extension().is_some_and(|extension| extension == "wasm"))
}

fn same_file(a: &Path, b: &Path) -> bool {
    a == b || a.canonicalize().ok().zip(b.canonicalize().ok()).is_some_and(|(a, b)| a == b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wasm_file_of_the_package_itself_is_taken_not_a_dependency_of_it() {
        let messages = [
            r#"{"reason":"compiler-artifact","manifest_path":"/x/dep/Cargo.toml","filenames":["/t/dep.wasm"]}"#,
            r#"{"reason":"compiler-message","message":{"rendered":"warning"}}"#,
            r#"{"reason":"compiler-artifact","manifest_path":"/x/mine/Cargo.toml","filenames":["/t/libmine.rlib","/t/mine.wasm"]}"#,
            r#"{"reason":"build-finished","success":true}"#,
        ]
        .join("\n");
        assert_eq!(wasm_file(&messages, Path::new("/x/mine/Cargo.toml")), Some("/t/mine.wasm".into()));
        assert_eq!(wasm_file(&messages, Path::new("/x/other/Cargo.toml")), None);
    }
}
