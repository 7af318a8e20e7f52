//! JavaScript.

use std::path::{Path, PathBuf};

use crate::builder::{Compiler, Say};
use crate::error::{BuildError, ToolchainError};
use crate::language::Language;

/// A compiler for policies in JavaScript.
#[derive(Debug)]
pub(crate) struct JavaScript;

impl Compiler for JavaScript {
    fn find(_cache: &Path, _say: Say<'_>) -> Result<JavaScript, ToolchainError> {
        Err(ToolchainError::NotYet { language: Language::JavaScript })
    }

    fn compile(&self, folder: &Path, _say: Say<'_>) -> Result<PathBuf, BuildError> {
        Ok(folder.join("target/policy.wasm"))
    }
}
