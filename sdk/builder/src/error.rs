use std::path::{Path, PathBuf};

use crate::language::Language;

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
    /// No clang that knows WebAssembly, and none could be installed from here.
    #[error(
        "no clang for policies in C: {tried}\n\
         install one, then run this again:\n  \
         sudo apt-get update && sudo apt-get install -y --no-install-recommends clang   (Debian, Ubuntu)\n  \
         sudo dnf install clang   (Fedora)\n  \
         brew install llvm, and its bin folder on PATH   (macOS)"
    )]
    NoClang {
        /// What was tried and how it failed.
        tried: String,
    },
    /// componentize-py could not be installed.
    #[error(
        "no compiler for policies in Python: {tried}\n\
         it needs Python 3.10 or newer with venv and pip, and PyPI; then run this again:\n  \
         sudo apt-get update && sudo apt-get install -y --no-install-recommends python3-venv   (Debian, Ubuntu)"
    )]
    NoPython {
        /// What was tried and how it failed.
        tried: String,
    },
    /// No Node.js, an old one, or what is needed from npm could not be installed.
    #[error(
        "no compiler for policies in JavaScript: {tried}\n\
         it needs Node.js 18 or newer with npm, and npm's registry; then run this again:\n  \
         sudo apt-get update && sudo apt-get install -y --no-install-recommends nodejs npm   (Debian 12, Ubuntu 24.04 or newer)\n  \
         brew install node   (macOS), or https://nodejs.org for any system"
    )]
    NoNode {
        /// What was tried and how it failed.
        tried: String,
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
    /// The folder holds no source, or source in two languages.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// Nothing here compiles the folder's language.
    #[error(transparent)]
    Toolchain(#[from] ToolchainError),
    /// The compiler said no.
    #[error("the policy does not compile\n{stderr}")]
    Compile {
        /// The compiler's messages as it rendered them, without colours.
        stderr: String,
    },
    /// The compiler was stopped from outside, so nothing is known of the source.
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
    #[error("{path} exports no policy: {}", what_exports(*language))]
    NotAPolicy {
        /// The file.
        path: PathBuf,
        /// What it was compiled from.
        language: Language,
    },
    /// The contract that lies with the SDK cannot be used.
    #[error("{path}: {what}")]
    Contract {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
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

/// What makes a source export a policy.
fn what_exports(language: Language) -> &'static str {
    match language {
        Language::Rust => {
            "its source must call one of jackfield_sdk's export macros, \
             for example `jackfield_sdk::export_router!(MyPolicy);`"
        }
        Language::Python => "app.py must define a class named Policy",
        Language::JavaScript => {
            "app.js must export what the SDK's function of its kind gives, \
             for example `export const { lifecycle, routing } = router(MyPolicy);`"
        }
        Language::C => "policy.c must define jf_describe, jf_configure and the function of its kind",
    }
}

impl BuildError {
    /// A file that cannot be read or written.
    pub(crate) fn io(path: &Path, source: std::io::Error) -> BuildError {
        BuildError::Io { what: path.display().to_string(), source }
    }

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
    /// The manifest names no kind.
    #[error(
        "{path} needs a line like `kind = \"router\"`: slot-extractor, router, compressor or output-filter"
    )]
    NoKind {
        /// The manifest.
        path: PathBuf,
    },
    /// No such language.
    #[error("`{language}` is not a language for policies: rust, python, javascript or c")]
    Language {
        /// The language as given.
        language: String,
    },
    /// The folder has no source in any of the languages.
    #[error(
        "{path} cannot be built from source: it has none of Cargo.toml, app.py, app.js (or app.ts) or policy.c"
    )]
    NoSource {
        /// The folder.
        path: PathBuf,
    },
    /// The folder has source in two languages.
    #[error(
        "{path} has both {} ({first}) and {} ({second}), and a policy is built from one language: \
         rename or move the one that is not the policy's",
        first.main_file(),
        second.main_file()
    )]
    TwoLanguages {
        /// The folder.
        path: PathBuf,
        /// One of the two.
        first: Language,
        /// The other.
        second: Language,
    },
    /// The folder for a new policy holds something already.
    #[error("{path} exists and is not empty: choose another folder")]
    Occupied {
        /// The folder.
        path: PathBuf,
    },
}
