use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Instant;

use crate::c::C;
use crate::error::{BuildError, ToolchainError};
use crate::javascript::JavaScript;
use crate::language::Language;
use crate::python::Python;
use crate::rust::Rust;

/// The first bytes of a component: the magic number, version 13, layer 1. A core module has version 1, layer 0.
const COMPONENT_HEADER: [u8; 8] = *b"\0asm\x0d\0\x01\0";

/// The interface that every policy exports.
const LIFECYCLE: &[u8] = b"jackfield:policy/lifecycle@";

/// Where lines for people go as they come: what is being looked for or installed, what a compiler says.
pub(crate) type Say<'a> = &'a mut dyn FnMut(&str);

/// What turns the folders of one language into components.
pub(crate) trait Compiler: Sized {
    /// Finds what compiles the language, installing by package name what is missing where that is possible; says what it
    /// does. `cache` is made when needed, and kept between runs.
    fn find(cache: &Path, say: Say<'_>) -> Result<Self, ToolchainError>;

    /// Compiles a folder and gives the file that came out.
    fn compile(&self, folder: &Path, say: Say<'_>) -> Result<PathBuf, BuildError>;
}

/// A component, fresh from the compiler.
#[derive(Debug, Clone)]
pub struct Built {
    /// The file's bytes.
    pub component: Vec<u8>,
    /// Where the compiler put the file. The next build of the folder overwrites it.
    pub path: PathBuf,
    /// How long the build took, in milliseconds; finding the compiler does not count.
    pub millis: u64,
}

/// Builds policy folders, each in its language.
///
/// A language's compiler is looked for when the first folder in it comes, once. Any number of builds may run at a time.
#[derive(Debug)]
pub struct Builder {
    cache: PathBuf,
    rust: OnceLock<Rust>,
    python: OnceLock<Python>,
    javascript: OnceLock<JavaScript>,
    c: OnceLock<C>,
}

impl Builder {
    /// A builder that keeps what it installs, and what it learned of the machine, in `cache`. Looks for nothing yet.
    pub fn new(cache: impl Into<PathBuf>) -> Builder {
        Builder {
            cache: cache.into(),
            rust: OnceLock::new(),
            python: OnceLock::new(),
            javascript: OnceLock::new(),
            c: OnceLock::new(),
        }
    }

    /// Finds or installs what a language is compiled with, and says what it does; nothing where that was done before.
    ///
    /// # Errors
    /// Each names the commands that would help. After an interruption the next call starts over.
    pub fn prepare(&self, language: Language, say: &mut dyn FnMut(&str)) -> Result<(), ToolchainError> {
        match language {
            Language::Rust => self.found(&self.rust, say).map(drop),
            Language::Python => self.found(&self.python, say).map(drop),
            Language::JavaScript => self.found(&self.javascript, say).map(drop),
            Language::C => self.found(&self.c, say).map(drop),
        }
    }

    /// [`Builder::build_saying`], saying nothing.
    ///
    /// # Errors
    /// As [`Builder::build_saying`].
    pub fn build(&self, folder: &Path) -> Result<Built, BuildError> {
        self.build_saying(folder, &mut |_| {})
    }

    /// Compiles the policy in `folder` to a component, with each line of the compiler's progress and messages given to
    /// `say` as it comes.
    ///
    /// # Errors
    /// [`BuildError::Folder`] for a folder without source or with two, [`BuildError::Toolchain`] where the language has
    /// no compiler here, [`BuildError::Compile`] with the compiler's messages.
    pub fn build_saying(&self, folder: &Path, say: &mut dyn FnMut(&str)) -> Result<Built, BuildError> {
        let language = Language::of(folder)?;
        match language {
            Language::Rust => build(self.found(&self.rust, say)?, language, folder, say),
            Language::Python => build(self.found(&self.python, say)?, language, folder, say),
            Language::JavaScript => build(self.found(&self.javascript, say)?, language, folder, say),
            Language::C => build(self.found(&self.c, say)?, language, folder, say),
        }
    }

    fn found<'a, T: Compiler>(&self, known: &'a OnceLock<T>, say: Say<'_>) -> Result<&'a T, ToolchainError> {
        match known.get() {
            Some(compiler) => Ok(compiler),
            None => {
                let compiler = T::find(&self.cache, say)?;
                Ok(known.get_or_init(|| compiler))
            }
        }
    }
}

fn build(
    compiler: &impl Compiler,
    language: Language,
    folder: &Path,
    say: Say<'_>,
) -> Result<Built, BuildError> {
    let started = Instant::now();
    let path = compiler.compile(folder, say)?;
    let component = std::fs::read(&path).map_err(|source| BuildError::io(&path, source))?;
    if !is_policy(&component) {
        return Err(BuildError::NotAPolicy { path, language });
    }
    let millis = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    Ok(Built { component, path, millis })
}

/// Whether the file is a component that names what every policy exports. Only the host can say whether it is sound.
fn is_policy(file: &[u8]) -> bool {
    file.starts_with(&COMPONENT_HEADER) && file.windows(LIFECYCLE.len()).any(|bytes| bytes == LIFECYCLE)
}
