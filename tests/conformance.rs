//! Policies in each language, through the host's own runtime: what `new_policy` writes builds at once, passes its first cases, and
//! answers what `sdk/conformance` says; and a shipped policy that there is in another language too comes out there as recorded.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use jackfield_builder::{Builder, Language, PolicyKind, new_policy, read_policy_dir};
use jackfield_policy::{Case, Manifest, NoServices, Policy, Refusal, Runtime, RuntimeConfig, Upload};
use serde::Deserialize;
use serde_json::{Value, json};

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
    /// By the policy.
    refused: Option<String>,
    /// By the policy's schema.
    invalid: Option<String>,
}

fn groups(kind: PolicyKind) -> Vec<Group> {
    let path = checkout().join("sdk/conformance").join(kind.name());
    let text = fs::read_to_string(path.with_extension("json")).expect("a file");
    serde_json::from_str(&text).expect("groups of cases")
}

/// Kept between runs, compilers among it.
fn kept() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).into()
}

fn checkout() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// A policy's folder, written anew in a place of its own outside a checkout. What was built there before stays.
fn anew(folder: PathBuf, write: impl FnOnce(&Path)) -> PathBuf {
    let (built, aside) = (folder.join("target"), folder.with_extension("target"));
    if built.is_dir() {
        fs::rename(&built, &aside).expect("set aside");
    }
    if folder.is_dir() {
        fs::remove_dir_all(&folder).expect("removed");
    }
    write(&folder);
    if aside.is_dir() {
        fs::rename(&aside, &built).expect("put back");
    }
    folder
}

/// The folder that `jackfield policy new` makes.
fn new_folder(kind: PolicyKind, language: Language, name: &str) -> PathBuf {
    anew(kept().join("conformance").join(language.name()).join(name), |folder| {
        new_policy(kind, language, name, folder).expect("written");
    })
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
fn hold(upload: &Upload, group: &Group, schema: &Value) -> Result<(), String> {
    let mut upload = upload.clone();
    if let Some(config) = &group.config {
        // The folder's own cases are for its own rules.
        (upload.config, upload.cases) = (config.clone(), Vec::new());
    }
    upload.cases.extend(group.cases.iter().cloned());
    match (Policy::prepare(&RUNTIME, upload), &group.refused, &group.invalid) {
        (Ok(policy), None, None) if json(&policy.description().config_schema) == *schema => Ok(()),
        (Ok(policy), None, None) => Err(format!("its schema is {}", policy.description().config_schema)),
        (Ok(_), ..) => Err("not refused".into()),
        (Err(Refusal::Configure { message }), Some(part), _) if message.contains(part) => Ok(()),
        (Err(refusal @ Refusal::Config { .. }), _, Some(part)) if refusal.to_string().contains(part) => {
            Ok(())
        }
        (Err(refusal), ..) => Err(refusal.to_string()),
    }
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}

/// What builds policies in a language; none, said loudly, where it cannot be had and need not be.
fn builder(language: Language) -> Option<Builder> {
    let builder = Builder::new(kept().join("toolchain"));
    let Err(error) = builder.prepare(language, &mut |line| eprintln!("{line}")) else { return Some(builder) };
    assert!(std::env::var_os(REQUIRED).is_none(), "{error}");
    eprintln!("SKIPPED: policies in {language} are not tested here: {error}");
    None
}

/// Builds the four kinds in a language and holds them to the files.
fn holds(language: Language) {
    let Some(builder) = builder(language) else { return };
    let mut wrong = Vec::new();
    for kind in PolicyKind::ALL {
        let folder = new_folder(kind, language, kind.name());
        let built =
            builder.build(&folder).unwrap_or_else(|error| panic!("{language} {}: {error}", kind.name()));
        let upload = upload(&folder, built.component);
        let schema = json(&fs::read_to_string(folder.join("config.schema.json")).expect("a schema"));
        // What the schema refuses it refuses in each language, and a component may take seconds to be compiled.
        let is_tried = |group: &Group| group.invalid.is_none() || language == Language::Rust;
        for group in groups(kind).into_iter().filter(is_tried) {
            if let Err(why) = hold(&upload, &group, &schema) {
                wrong.push(format!("{}, {}: {why}", kind.name(), group.name));
            }
        }
    }
    assert!(wrong.is_empty(), "in {language}:\n{}", wrong.join("\n"));
}

/// Builds the shipped policies that there are in this language too. What they are held to, rules, schema and cases, is what the
/// shipped ones have: links, or a copy where a compiler follows none.
fn second_implementations(language: Language) {
    let Some(builder) = builder(language) else { return };
    let examples = checkout().join("sdk").join(language.name()).join("examples");
    let found = fs::read_dir(&examples).unwrap_or_else(|error| panic!("{}: {error}", examples.display()));
    for entry in found {
        second_implementation(&builder, &entry.expect("an entry").path());
    }
}

fn second_implementation(builder: &Builder, source: &Path) {
    let schema =
        |folder: &Path| json(&fs::read_to_string(folder.join("config.schema.json")).expect("a schema"));
    let shipped = checkout().join("plugins").join(source.file_name().expect("a name"));
    assert_eq!(schema(source), schema(&shipped), "{}", source.display());
    let place = kept().join("second").join(source.strip_prefix(checkout()).expect("in the checkout"));
    let folder = anew(place, |folder| copy(source, folder));
    let built = builder.build(&folder).unwrap_or_else(|error| panic!("{}: {error}", source.display()));
    let upload = upload(&folder, built.component);
    assert!(!upload.cases.is_empty(), "{}: no cases", source.display());
    Policy::prepare(&RUNTIME, upload).unwrap_or_else(|refusal| panic!("{}: {refusal}", source.display()));
}

/// A file or a folder with all that is in it, but for what was built there.
fn copy(from: &Path, to: &Path) {
    if !from.is_dir() {
        fs::copy(from, to).unwrap_or_else(|error| panic!("{}: {error}", from.display()));
        return;
    }
    fs::create_dir_all(to).expect("a folder");
    let entries = fs::read_dir(from).expect("a folder").map(|entry| entry.expect("an entry"));
    for entry in entries.filter(|entry| entry.file_name() != "target") {
        copy(&entry.path(), &to.join(entry.file_name()));
    }
}

#[test]
fn policies_in_rust_answer_as_in_every_language() {
    holds(Language::Rust);
}

#[test]
fn policies_in_c_answer_as_in_every_language() {
    holds(Language::C);
    second_implementations(Language::C);
}

#[test]
fn policies_in_python_answer_as_in_every_language() {
    holds(Language::Python);
    second_implementations(Language::Python);
}

#[test]
fn policies_in_javascript_answer_as_in_every_language() {
    holds(Language::JavaScript);
    second_implementations(Language::JavaScript);
}

/// A file of the policy's own, by the name of one of the SDK's.
const GREETING: &str = r#"
#include "jackfield.h"

jf_string_t greeting(jf_string_t name) {
  static const char *const words = "Good day, ";
  jf_writer_t out = {jf_text(words)};
  jf_put(&out, name);
  jf_put_literal(&out, ", and welcome");
  // A second time: the first text is as it was.
  jf_writer_t again = {jf_text(words)};
  jf_put(&again, out.text);
  return again.text;
}
"#;

#[test]
fn a_writer_in_c_may_begin_with_a_text_and_a_file_have_any_name() {
    let Some(builder) = builder(Language::C) else { return };
    let folder = new_folder(PolicyKind::Router, Language::C, "greeting");
    let policy = fs::read_to_string(folder.join("policy.c")).expect("its source");
    let policy = policy.replace("= rules.texts[n]}", "= greeting(request->last_user_text)}");
    let include = "#include \"jackfield.h\"\n";
    let declared = policy.replace(include, &format!("{include}\njf_string_t greeting(jf_string_t name);\n"));
    fs::write(folder.join("policy.c"), declared).expect("written");
    fs::write(folder.join("json.c"), GREETING).expect("written");
    let built = builder.build(&folder).expect("it builds");
    let said = "Good day, Good day, hello, and welcome";
    let case = json!([{ "name": "greets", "input": { "text": "hello" }, "expect": { "answer": said } }]);
    let config = json!({ "reply": [{ "word": "hello", "text": "unused" }] });
    let cases = serde_json::from_value(case).expect("cases");
    Policy::prepare(&RUNTIME, Upload { cases, config, ..upload(&folder, built.component) }).expect("greets");
}

/// A router that fails in the way that the text asks for.
const WRONG: &str = r#"
import sys

from jackfield import Description, Plan, PolicyError, Refusal


def deep(n):
    return deep(n + 1) + 1


class Policy:
    description = Description("wrong", "1.0.0")

    def __init__(self, config):
        self.at = config["at"]

    def route(self, turn, request, fleet):
        return {
            "key": lambda: {}["mask"],
            "policy": lambda: (_ for _ in ()).throw(PolicyError("not today 不")),
            "type": lambda: Plan(target=5),
            "range": lambda: Refusal(70000, "no"),
            "surrogate": lambda: "\ud800",
            "exit": lambda: sys.exit("gone"),
            "deep": lambda: deep(0),
            "none": lambda: None,
        }[request.last_user_text]()
"#;

#[test]
fn an_exception_in_python_is_an_error_with_its_message_and_line() {
    let Some(builder) = builder(Language::Python) else { return };
    let folder = new_folder(PolicyKind::Router, Language::Python, "wrong");
    fs::write(folder.join("app.py"), WRONG).expect("written");
    let built = builder.build(&folder).expect("it builds");
    let cases = [
        ("key", "KeyError: 'mask' (app.py, line 19)"),
        ("policy", "not today 不"),
        ("type", "the answer.target is 5, which is not a str"),
        ("range", "the answer.status is 70000, which is not a whole number from 0 to 65535"),
        ("surrogate", "surrogates not allowed"),
        ("exit", "SystemExit: gone"),
        ("deep", "RecursionError: maximum recursion depth exceeded"),
        ("unknown", "KeyError: 'unknown'"),
    ];
    let failing = cases.map(
        |(text, error)| json!({ "name": text, "input": { "text": text }, "expect": { "error": error } }),
    );
    let none =
        json!({ "name": "none", "input": { "text": "none" }, "expect": { "run": { "target": "default" } } });
    let cases: Vec<Value> = failing.into_iter().chain([none]).collect();
    let mut upload = Upload {
        cases: serde_json::from_value(cases.into()).expect("cases"),
        config: json!({ "at": 1 }),
        ..upload(&folder, built.component)
    };
    Policy::prepare(&RUNTIME, upload.clone()).expect("each fails as it should");
    upload.config = json!({});
    let refusal = Policy::prepare(&RUNTIME, upload).expect_err("no key `at`").to_string();
    assert!(refusal.contains("KeyError: 'at' (app.py, line 15)"), "{refusal}");
}
