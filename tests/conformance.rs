//! The template policies in each language: what `new_policy` writes builds at once, passes its first cases, and answers
//! what `sdk/conformance` says, through the host's own runtime.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use jackfield_builder::{Builder, Language, PolicyKind, new_policy, read_policy_dir};
use jackfield_policy::{Case, Manifest, NoServices, Policy, Refusal, Runtime, RuntimeConfig, Upload};
use serde::Deserialize;
use serde_json::Value;

/// Set where every language must be there, as in continuous integration.
const REQUIRED: &str = "JACKFIELD_REQUIRE_TOOLCHAINS";

/// One for all: what is compiled twice is compiled faster the second time.
static RUNTIME: LazyLock<Arc<Runtime>> =
    LazyLock::new(|| Runtime::new(RuntimeConfig::default(), Arc::new(NoServices)).expect("a runtime"));

/// Cases for one configuration, or why it is refused.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Group {
    name: String,
    config: Option<Value>,
    #[serde(default)]
    cases: Vec<Case>,
    refused: Option<String>,
}

fn groups(kind: PolicyKind) -> Vec<Group> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../sdk/conformance");
    let text = fs::read_to_string(path.join(kind.name()).with_extension("json")).expect("a file");
    serde_json::from_str(&text).expect("groups of cases")
}

/// Kept between runs, compilers among it.
fn kept() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).into()
}

/// The folder that `jackfield policy new` makes, in a place of its own outside a checkout. What was built there before stays.
fn new_folder(kind: PolicyKind, language: Language) -> PathBuf {
    let folder = kept().join("conformance").join(language.name()).join(kind.name());
    let (built, aside) = (folder.join("target"), folder.with_extension("target"));
    if built.is_dir() {
        fs::rename(&built, &aside).expect("set aside");
    }
    if folder.is_dir() {
        fs::remove_dir_all(&folder).expect("removed");
    }
    new_policy(kind, language, &format!("my-{}", kind.name()), &folder).expect("written");
    if aside.is_dir() {
        fs::rename(&aside, &built).expect("put back");
    }
    folder
}

/// What would be uploaded of a built folder.
fn upload(folder: &Path, component: Vec<u8>) -> Upload {
    let files = read_policy_dir(folder).expect("a folder in order");
    let mut manifest = Manifest::from_toml(&files.manifest_toml).expect("a manifest");
    // A machine that is busy with other things does not make a good call late.
    manifest.limits.deadline_ms = 2000;
    let cases = files
        .cases
        .into_iter()
        .flat_map(|file| serde_json::from_value::<Vec<Case>>(file.json).expect("cases"));
    Upload { manifest, component: component.into(), config: files.config, cases: cases.collect() }
}

/// What is wrong with the policy in this group.
fn hold(upload: &Upload, group: &Group) -> Result<(), String> {
    let mut upload = upload.clone();
    if let Some(config) = &group.config {
        // The folder's own cases are for its own rules.
        (upload.config, upload.cases) = (config.clone(), Vec::new());
    }
    upload.cases.extend(group.cases.iter().cloned());
    let outcome = Policy::prepare(&RUNTIME, upload);
    match (outcome, &group.refused) {
        (Ok(_), None) => Ok(()),
        (Ok(_), Some(part)) => Err(format!("not refused with {part:?}")),
        (Err(refusal @ (Refusal::Config { .. } | Refusal::Configure { .. })), Some(part))
            if refusal.to_string().contains(part) =>
        {
            Ok(())
        }
        (Err(refusal), _) => Err(refusal.to_string()),
    }
}

/// Builds the four kinds in a language and holds them to the files.
fn holds(language: Language) {
    let builder = Builder::new(kept().join("toolchain"));
    if let Err(error) = builder.prepare(language, &mut |line| eprintln!("{line}")) {
        assert!(std::env::var_os(REQUIRED).is_none(), "{error}");
        eprintln!("SKIPPED: policies in {language} are not tested here: {error}");
        return;
    }
    let mut wrong = Vec::new();
    for kind in PolicyKind::ALL {
        let folder = new_folder(kind, language);
        let built =
            builder.build(&folder).unwrap_or_else(|error| panic!("{language} {}: {error}", kind.name()));
        let upload = upload(&folder, built.component);
        for group in groups(kind) {
            if let Err(why) = hold(&upload, &group) {
                wrong.push(format!("{}, {}: {why}", kind.name(), group.name));
            }
        }
    }
    assert!(wrong.is_empty(), "in {language}:\n{}", wrong.join("\n"));
}

#[test]
fn policies_in_rust_answer_as_in_every_language() {
    holds(Language::Rust);
}

#[test]
fn policies_in_c_answer_as_in_every_language() {
    holds(Language::C);
}

#[test]
fn policies_in_python_answer_as_in_every_language() {
    holds(Language::Python);
}

#[test]
fn policies_in_javascript_answer_as_in_every_language() {
    holds(Language::JavaScript);
}
