use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use serde::Deserialize;

use crate::error::BuildError;
use crate::process::{RunError, ask, run};
use crate::rust::TARGET;
use crate::toolchain::{Toolchain, Way};

/// The first bytes of a component: the magic number, version 13, layer 1. A core module has version 1, layer 0.
const COMPONENT_HEADER: [u8; 8] = *b"\0asm\x0d\0\x01\0";

/// The interface that every policy exports.
const LIFECYCLE: &[u8] = b"jackfield:policy/lifecycle@";

/// A component, fresh from the compiler.
#[derive(Debug, Clone)]
pub struct Built {
    /// The file's bytes.
    pub component: Vec<u8>,
    /// Where cargo put the file. The next build of the folder overwrites it.
    pub path: PathBuf,
    /// How long the build took, in milliseconds.
    pub millis: u64,
}

impl Toolchain {
    /// Compiles the policy in `policy_dir` to a component.
    ///
    /// A folder of a cargo workspace is built in that workspace's target folder, any other in a shared one. Builds at
    /// the same time wait for each other there.
    ///
    /// # Errors
    /// [`BuildError::Compile`] carries the compiler's messages.
    pub fn build(&self, policy_dir: &Path) -> Result<Built, BuildError> {
        self.build_saying(policy_dir, &mut |_| {})
    }

    /// [`Toolchain::build`], with each line of cargo's progress and messages given to `say` as it comes.
    ///
    /// # Errors
    /// As [`Toolchain::build`].
    pub fn build_saying(&self, policy_dir: &Path, say: &mut dyn FnMut(&str)) -> Result<Built, BuildError> {
        let started = Instant::now();
        let manifest = policy_dir.join("Cargo.toml");
        if !manifest.is_file() {
            return Err(BuildError::NoPackage { dir: policy_dir.to_owned() });
        }
        let manifest = std::path::absolute(&manifest).map_err(|source| io(&manifest, source))?;
        let ran = run(&mut self.cargo_build(&manifest), None, say).map_err(start_error)?;
        if let Some(how) = ran.killed {
            return Err(BuildError::Killed { how });
        }
        if !ran.success {
            return Err(BuildError::Compile { stderr: ran.stderr });
        }
        let path = wasm_file(&ran.stdout, &manifest)
            .ok_or_else(|| BuildError::NoArtifact { dir: policy_dir.to_owned() })?;
        let component = std::fs::read(&path).map_err(|source| io(&path, source))?;
        if !is_policy(&component) {
            return Err(BuildError::NotAPolicy { path });
        }
        let millis = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        Ok(Built { component, path, millis })
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

/// Whether the file is a component that names what every policy exports. Only the host can say whether it is sound.
fn is_policy(file: &[u8]) -> bool {
    file.starts_with(&COMPONENT_HEADER) && file.windows(LIFECYCLE.len()).any(|bytes| bytes == LIFECYCLE)
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

fn io(path: &Path, source: std::io::Error) -> BuildError {
    BuildError::Io { what: path.display().to_string(), source }
}

fn start_error(error: RunError) -> BuildError {
    match error {
        RunError::Start { program, source } => {
            BuildError::Io { what: format!("{program} cannot be started"), source }
        }
        RunError::TimedOut { program, .. } => {
            BuildError::Io { what: program, source: std::io::ErrorKind::TimedOut.into() }
        }
    }
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
