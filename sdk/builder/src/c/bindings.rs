//! What clang is given beside the SDK: bindings generated from the contract, and the configuration's schema.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use wit_bindgen_c::Opts;
use wit_bindgen_core::Files;
use wit_parser::Resolve;

use crate::error::BuildError;
use crate::sdk::write_if_changed;
use crate::template::PolicyKind;

/// What all names in the bindings begin with, and the generated files are called.
const PREFIX: &str = "jf";

/// Interfaces with functions that a policy may call: their names stay in their functions' names, `jf_tokens_count`.
const IMPORTS: [&str; 5] = ["log", "metrics", "tokens", "saliency", "embeddings"];

/// Writes `jf.h`, `jf.c` and an object that holds the contract's types; gives the object.
pub(super) fn generate(wit: &Path, kind: PolicyKind, target: &Path) -> Result<PathBuf, BuildError> {
    let contract = std::fs::read_to_string(wit).map_err(|source| BuildError::io(wit, source))?;
    let files =
        bindings(&contract, kind).map_err(|what| BuildError::Contract { path: wit.to_owned(), what })?;
    for (name, bytes) in files.iter() {
        write_if_changed(&target.join(name), &shorten(name, bytes))?;
    }
    Ok(target.join(format!("{PREFIX}_component_type.o")))
}

fn bindings(contract: &str, kind: PolicyKind) -> Result<Files, String> {
    let mut resolve = Resolve::default();
    let text = |error: anyhow::Error| format!("{error:#}");
    let package = resolve.push_str("policy.wit", contract).map_err(text)?;
    let world = resolve.select_world(&[package], Some(kind.name())).map_err(text)?;
    let names: Vec<String> = resolve.worlds[world]
        .imports
        .keys()
        .chain(resolve.worlds[world].exports.keys())
        .map(|key| resolve.name_world_key(key))
        .collect();
    let options = Opts {
        rename: names.into_iter().map(|name| (name.clone(), short(&name))).collect(),
        rename_world: Some(PREFIX.into()),
        // What frees: the SDK's memory is never freed.
        no_helpers: true,
        ..Opts::default()
    };
    let mut files = Files::default();
    options.build().generate(&mut resolve, world, &mut files).map_err(text)?;
    Ok(files)
}

/// The prefix of an interface's names: `jackfield:policy/log@0.2.0` becomes `jf_log`, `…/types@0.2.0` only `jf`.
fn short(interface: &str) -> String {
    let name = interface.split(['/', '@']).nth(1).unwrap_or_default();
    if IMPORTS.contains(&name) { format!("{PREFIX}_{name}") } else { PREFIX.to_owned() }
}

/// What a policy exports has a prefix that says so, and the names do not need it: what is then there twice is the same.
fn shorten(name: &str, bytes: &[u8]) -> Vec<u8> {
    match std::str::from_utf8(bytes) {
        Ok(text) if !name.ends_with(".o") => {
            without_repeats(&text.replace("exports_jf_", "jf_").replace("EXPORTS_JF_", "JF_")).into_bytes()
        }
        _ => bytes.to_owned(),
    }
}

/// Without each `typedef struct …` that was there before. A list of the same type is generated once for what a policy
/// imports, once for what it exports.
fn without_repeats(text: &str) -> String {
    let mut seen = HashSet::new();
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find("typedef struct ") {
        let end = rest[start..].find("\n} ").and_then(|close| {
            let close = start + close + 1;
            rest[close..].find('\n').map(|line| close + line + 1)
        });
        let Some(end) = end else { break };
        kept.push_str(&rest[..start]);
        let definition = &rest[start..end];
        if seen.insert(definition) {
            kept.push_str(definition);
        }
        rest = &rest[end..];
    }
    kept + rest
}

/// Writes `config_schema.h`: the text of the folder's `config.schema.json`, or of a schema that takes anything.
pub(super) fn config_schema(folder: &Path, target: &Path) -> Result<(), BuildError> {
    let path = folder.join("config.schema.json");
    let schema = match std::fs::read(&path) {
        Ok(schema) => schema,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => b"{}".to_vec(),
        Err(source) => return Err(BuildError::io(&path, source)),
    };
    // As numbers: a literal of text would be cut at 64 KiB by some compilers, and needs escapes.
    let bytes: String = schema.iter().map(|byte| format!("{byte},")).collect();
    let header = format!("static const char CONFIG_SCHEMA[] = {{{bytes}0}};\n");
    write_if_changed(&target.join("config_schema.h"), header.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_defined_twice_alike_is_left_once() {
        let list = "typedef struct jf_list_t {\n  int *ptr;\n} jf_list_t;\n";
        let other = "typedef struct jf_slot_t {\n  int at;\n} jf_slot_t;\n";
        let text = format!("a\n{list}b\n{other}{list}c\n");
        assert_eq!(without_repeats(&text), format!("a\n{list}b\n{other}c\n"));
    }
}
