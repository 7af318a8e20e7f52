//! C: clang makes objects, Rust's component linker a component. Bindings are generated here; no C library is needed.

mod bindings;

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::apt;
use crate::builder::{Compiler, Say};
use crate::error::{BuildError, ToolchainError};
use crate::folder::kind_of;
use crate::process::{ask, run};
use crate::rust::{Linker, component_linker};
use crate::sdk::{SdkFile, TARGET, place};
use crate::template::PolicyKind;

/// The SDK as it was when this program was built.
pub(crate) const SDK: [SdkFile; 8] = [
    ("README.md", include_str!("../../template/vendored.md")),
    ("c/jackfield.h", include_str!("../../c/jackfield.h")),
    ("c/jackfield.c", include_str!("../../c/jackfield.c")),
    ("c/json.c", include_str!("../../c/json.c")),
    ("c/lower.h", include_str!("../../c/lower.h")),
    ("c/include/stdlib.h", include_str!("../../c/include/stdlib.h")),
    ("c/include/string.h", include_str!("../../c/include/string.h")),
    ("wit/policy.wit", include_str!("../../../wit/policy.wit")),
];

/// For all that is compiled. Vectors and block copies, since searching texts is what policies do most.
const FLAGS: [&str; 8] =
    ["--target=wasm32", "-std=c11", "-O2", "-c", "-nostdlib", "-ffreestanding", "-msimd128", "-mbulk-memory"];

/// For the author's own files.
const WARNINGS: [&str; 4] = ["-Wall", "-Wextra", "-Wno-unused-parameter", "-Wno-missing-field-initializers"];

/// For the SDK's and the generated files.
const NO_WARNINGS: [&str; 2] = ["-w", "-fno-builtin"];

/// Versions of clang by which distributions name it, newest first.
const VERSIONS: std::ops::RangeInclusive<u32> = 14..=24;

/// A compiler for policies in C.
#[derive(Debug)]
pub(crate) struct C {
    clang: String,
    linker: Linker,
}

impl Compiler for C {
    /// A clang that compiles for WebAssembly: `clang`, `clang-N`, or Debian's package `clang`, installed by apt-get when
    /// run as root.
    fn find(_cache: &Path, say: Say<'_>) -> Result<C, ToolchainError> {
        let linker = component_linker()?;
        let clang = match find_clang() {
            Some(clang) => clang,
            None => apt::install(&["clang"], say)
                .and_then(|()| {
                    find_clang().ok_or_else(|| "apt-get is done, and there is still no clang".into())
                })
                .map_err(|tried| ToolchainError::NoClang { tried })?,
        };
        Ok(C { clang, linker })
    }

    fn compile(&self, folder: &Path, say: Say<'_>) -> Result<PathBuf, BuildError> {
        let folder = &std::path::absolute(folder).map_err(|source| BuildError::io(folder, source))?;
        let kind = kind_of(folder)?;
        let build = Build { folder, sdk: place(folder, &SDK)?, target: folder.join(TARGET).join("c"), kind };
        let mut objects = vec![bindings::generate(&build.sdk.join("wit/policy.wit"), kind, &build.target)?];
        bindings::config_schema(folder, &build.target)?;
        for source in build.carried() {
            objects.push(self.object(&build, &source, &build.target, &NO_WARNINGS, say)?);
        }
        // Apart, so that a file of the folder may have the name of one that is linked with it.
        let own = build.target.join("own");
        std::fs::create_dir_all(&own).map_err(|source| BuildError::io(&own, source))?;
        for source in build.own()? {
            objects.push(self.object(&build, &source, &own, &WARNINGS, say)?);
        }
        let component = folder.join(TARGET).join("policy.wasm");
        run(&mut self.link(&objects, &component), None, say)?.compiled()?;
        Ok(component)
    }
}

impl C {
    fn object(
        &self,
        build: &Build<'_>,
        source: &Path,
        into: &Path,
        flags: &[&str],
        say: Say<'_>,
    ) -> Result<PathBuf, BuildError> {
        let name = source.file_stem().unwrap_or_default();
        let object = into.join(name).with_extension("o");
        let mut command = Command::new(&self.clang);
        command
            .args(FLAGS)
            .args(flags)
            .arg(format!("-DJF_{}", build.kind.name().replace('-', "_").to_uppercase()))
            .arg("-isystem")
            .arg(build.sdk.join("c/include"))
            .arg("-I")
            .arg(build.sdk.join("c"))
            .arg("-I")
            .arg(&build.target)
            .arg("-o")
            .arg(&object)
            .arg(source)
            .current_dir(build.folder);
        run(&mut command, None, say)?.compiled()?;
        Ok(object)
    }

    fn link(&self, objects: &[PathBuf], component: &Path) -> Command {
        let mut command = Command::new(&self.linker.component_ld);
        if let Some(wasm_ld) = &self.linker.wasm_ld {
            command.arg("--wasm-ld-path").arg(wasm_ld);
        }
        command
            .args(["--no-entry", "--gc-sections", "--strip-all"])
            // Before the data, so that a stack that is too deep traps and overwrites nothing.
            .args(["--stack-first", "-z", "stack-size=262144"])
            .arg("-o")
            .arg(component)
            .args(objects);
        command
    }
}

/// What one folder is compiled from.
struct Build<'a> {
    folder: &'a Path,
    sdk: PathBuf,
    /// Where bindings and objects go.
    target: PathBuf,
    kind: PolicyKind,
}

impl Build<'_> {
    /// The SDK's sources, and the generated one.
    fn carried(&self) -> [PathBuf; 3] {
        [self.sdk.join("c/jackfield.c"), self.sdk.join("c/json.c"), self.target.join("jf.c")]
    }

    /// All sources of the folder itself, as paths inside of it: the compiler's messages name them so.
    fn own(&self) -> Result<Vec<PathBuf>, BuildError> {
        let entries = std::fs::read_dir(self.folder).map_err(|source| BuildError::io(self.folder, source))?;
        let mut sources: Vec<PathBuf> = entries
            .flatten()
            .map(|entry| PathBuf::from(entry.file_name()))
            .filter(|name| name.extension().is_some_and(|extension| extension == "c"))
            .collect();
        sources.sort();
        Ok(sources)
    }
}

fn find_clang() -> Option<String> {
    let numbered = VERSIONS.rev().map(|version| format!("clang-{version}"));
    std::iter::once("clang".to_owned()).chain(numbered).find(|clang| {
        // Apple's has no WebAssembly in it.
        ask(clang, &["--print-targets"]).is_ok_and(|targets| targets.contains("wasm32"))
    })
}

#[cfg(test)]
mod tests {
    use super::SDK;
    use crate::sdk::tests::carries_all;

    #[test]
    fn the_carried_sdk_has_every_file_of_the_sdk() {
        carries_all(&SDK, "c", &[".c", ".h"]);
        carries_all(&SDK, "c/include", &[".h"]);
    }
}
