//! Policies in JavaScript and TypeScript: what `new_policy` writes becomes a component, and what is wrong with a source
//! reaches the author with its place.

use std::path::Path;
use std::process::Command;

use jackfield_builder::{BuildError, Builder, Language, PolicyKind, ToolchainError, new_policy};

/// A builder for JavaScript; none, said loudly, where there is no Node.js and none can be installed.
fn builder() -> Option<Builder> {
    let builder = Builder::new(Path::new(env!("CARGO_TARGET_TMPDIR")).join("toolchain"));
    match builder.prepare(Language::JavaScript, &mut |line| eprintln!("{line}")) {
        Ok(()) => Some(builder),
        Err(error @ ToolchainError::NoNode { .. }) => {
            eprintln!("SKIPPED: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn a_new_policy_of_each_kind_becomes_a_component_and_the_same_one_again() {
    let Some(builder) = builder() else { return };
    let root = tempfile::tempdir().expect("a folder");
    for kind in PolicyKind::ALL {
        let dir = root.path().join(kind.name());
        new_policy(kind, Language::JavaScript, "mine", &dir).expect("written");
        let mut said = Vec::new();
        let built = builder.build_saying(&dir, &mut |line| said.push(line.to_owned())).expect("it builds");
        assert_eq!(said, Vec::<String>::new(), "no warning in a template");
        assert!(built.component.len() < 2_000_000, "{} bytes", built.component.len());
        let again = builder.build(&dir).expect("it builds");
        assert!(again.component == built.component, "{}: nothing changed", kind.name());
        let source = std::fs::read_to_string(dir.join("app.js")).expect("source");
        std::fs::write(dir.join("app.js"), source.replace("0.1.0", "0.1.1")).expect("written");
        let changed = builder.build(&dir).expect("it builds");
        assert!(changed.component != built.component, "{}: its version changed", kind.name());
    }
}

#[test]
fn a_policy_in_typescript_with_modules_and_packages_beside_it_builds() {
    let Some(builder) = builder() else { return };
    let root = tempfile::tempdir().expect("a folder");
    new_policy(PolicyKind::Router, Language::JavaScript, "typed", &root.path().join("p")).expect("written");
    let dir = root.path().join("p");
    let put = |name: &str, text: &str| {
        let path = dir.join(name);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("made");
        std::fs::write(path, text).expect("written");
    };
    std::fs::remove_file(dir.join("app.js")).expect("removed");
    put("node_modules/greetings/package.json", r#"{"name": "greetings", "main": "index.js"}"#);
    put("node_modules/greetings/index.js", "module.exports = { hello: () => 'hello' };");
    put("words.ts", "export const words: string[] = ['x'];");
    put(
        "app.ts",
        "import { router, answer, type Decision, type Request, type Turn } from 'jackfield';
         import * as log from 'jackfield:policy/log';
         import { hello } from 'greetings';
         import { words } from './words';
         class Typed {
           static description = { name: 'typed', version: '1.0.0' };
           route(turn: Turn, request: Request): Decision { log.write('info', words[0]); return answer(hello()); }
         }
         export const { lifecycle, routing } = router(Typed);",
    );
    let built = builder.build(&dir).expect("it builds");
    assert!(String::from_utf8_lossy(&built.component).contains("jackfield:policy/routing@0.2.0"));
}

#[test]
fn what_is_wrong_with_a_source_is_said_with_its_place() {
    let Some(builder) = builder() else { return };
    let root = tempfile::tempdir().expect("a folder");
    let dir = root.path().join("broken");
    new_policy(PolicyKind::Router, Language::JavaScript, "broken", &dir).expect("written");
    let source = dir.join("app.js");
    let text = std::fs::read_to_string(&source).expect("source");
    let wrong = |from: &str, to: &str| {
        assert!(text.contains(from), "{from}");
        std::fs::write(&source, text.replace(from, to)).expect("written");
        let error = builder.build(&dir).expect_err("it does not build");
        assert!(matches!(error, BuildError::Compile { .. }), "{error}");
        error.stderr()
    };
    let syntax = wrong("route(turn,", "route(turn,,");
    assert!(syntax.contains("    app.js:") && syntax.contains("Expected identifier"), "{syntax}");
    let missing = wrong("from \"./config.schema.json\"", "from \"./no.json\"");
    assert!(missing.contains("    app.js:") && missing.contains("./no.json"), "{missing}");
    let other_kind = wrong("route(turn, request, fleet) {", "review() {");
    assert!(other_kind.contains("a method `route`"), "{other_kind}");
    let unnamed = wrong("name: \"broken\", ", "");
    assert!(unnamed.contains("name: undefined is not a text"), "{unnamed}");
}

#[test]
fn the_sdk_itself_does_what_its_tests_say() {
    if builder().is_none() {
        return;
    }
    let sdk = Path::new(env!("CARGO_MANIFEST_DIR")).join("../javascript");
    let ran = Command::new("node").args(["--test", "test/"]).current_dir(sdk).output().expect("node runs");
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stdout));
}
