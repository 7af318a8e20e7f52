use std::path::PathBuf;

/// Why no compiler for policies was found, and what to do about it.
#[derive(Debug, thiserror::Error)]
pub enum ToolchainError {
    /// `rustc` or `cargo` could not be started.
    #[error("no Rust compiler found ({detail}): install Rust 1.95 or newer with rustup, then run this again")]
    NoRust {
        /// What was tried and how it failed.
        detail: String,
    },
    /// Neither way to compile for WebAssembly is there, and none could be installed from here.
    #[error(
        "no Rust target for policies: {tried}\n\
         either way will do; then run this again:\n  \
         rustup target add wasm32-unknown-unknown\n  \
         sudo apt-get update && sudo apt-get install -y --no-install-recommends rustc-web rust-web-src   (Debian 12 or newer)"
    )]
    NoTarget {
        /// What was tried and how it failed.
        tried: String,
    },
    /// The compiler is there, but not the linker that makes components.
    #[error(
        "no wasm-component-ld in {folder} nor on PATH: it comes with Rust from rustup; \
         for another Rust run `cargo install wasm-component-ld`"
    )]
    NoLinker {
        /// Where rustup's toolchains keep it.
        folder: PathBuf,
    },
    /// The cache folder cannot be written.
    #[error("cannot write {path}: {source}")]
    Cache {
        /// The file or folder.
        path: PathBuf,
        /// The operating system's answer.
        source: std::io::Error,
    },
}

/// Why a folder did not become a component.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// The folder has no `Cargo.toml`.
    #[error("{dir} has no Cargo.toml: it cannot be built from source")]
    NoPackage {
        /// The folder.
        dir: PathBuf,
    },
    /// The compiler said no.
    #[error("the policy does not compile\n{stderr}")]
    Compile {
        /// The compiler's messages as it rendered them, without colours.
        stderr: String,
    },
    /// Cargo was stopped from outside, so nothing is known of the source.
    #[error("the build was stopped ({how}): build again")]
    Killed {
        /// By what, in the operating system's words.
        how: String,
    },
    /// It compiled, and no WebAssembly file came out.
    #[error(
        "{dir} compiled, but not to WebAssembly: its Cargo.toml needs `[lib] crate-type = [\"cdylib\", \"rlib\"]`"
    )]
    NoArtifact {
        /// The folder.
        dir: PathBuf,
    },
    /// The file that came out is not a component with a policy in it.
    #[error(
        "{path} exports no policy: its source must call one of jackfield_sdk's export macros, \
         for example `jackfield_sdk::export_router!(MyPolicy);`"
    )]
    NotAPolicy {
        /// The file.
        path: PathBuf,
    },
    /// A program could not be started, or a file could not be read.
    #[error("{what}: {source}")]
    Io {
        /// What was being done.
        what: String,
        /// The operating system's answer.
        source: std::io::Error,
    },
}

impl BuildError {
    /// The compiler's messages, or this error in words where the compiler was not the one to complain.
    pub fn stderr(&self) -> String {
        match self {
            BuildError::Compile { stderr } => stderr.clone(),
            other => other.to_string(),
        }
    }
}

/// What is wrong with a policy folder's data files, or with a folder to be made.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// A file that every policy has is not there.
    #[error("{path} is missing: every policy folder has one")]
    Missing {
        /// The file.
        path: PathBuf,
    },
    /// A file or folder cannot be read or written.
    #[error("{path}: {source}")]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The operating system's answer.
        source: std::io::Error,
    },
    /// A file does not parse. Line and column count from 1, columns in characters.
    #[error("{path}:{line}:{column}: {message}")]
    Parse {
        /// The file.
        path: PathBuf,
        /// Line of the fault.
        line: usize,
        /// Column of the fault.
        column: usize,
        /// What the parser wanted.
        message: String,
    },
    /// A number that JSON cannot hold.
    #[error(
        "{path}: `{key}` is {value}, which a configuration cannot hold: use an ordinary number or a string"
    )]
    Number {
        /// The file.
        path: PathBuf,
        /// Where in the file, as a dotted path.
        key: String,
        /// The value as written.
        value: String,
    },
    /// The name of a new policy is not usable as a package name.
    #[error("`{name}` is not a policy name: use 1 to 64 of a-z, 0-9 and -, starting with a letter")]
    Name {
        /// The name as given.
        name: String,
    },
    /// No such kind of policy.
    #[error("`{kind}` is not a kind of policy: slot-extractor, router, compressor or output-filter")]
    Kind {
        /// The kind as given.
        kind: String,
    },
    /// The folder for a new policy holds something already.
    #[error("{path} exists and is not empty: choose another folder")]
    Occupied {
        /// The folder.
        path: PathBuf,
    },
}
