//! Policies in C: what `new_policy` writes becomes a component, and what clang says reaches the author.

use std::path::Path;

use jackfield_builder::{BuildError, Builder, Language, PolicyKind, ToolchainError, new_policy};

/// A builder for C; none, said loudly, where there is no clang and none can be installed.
fn builder() -> Option<Builder> {
    let builder = Builder::new(Path::new(env!("CARGO_TARGET_TMPDIR")).join("toolchain"));
    match builder.prepare(Language::C, &mut |line| eprintln!("{line}")) {
        Ok(()) => Some(builder),
        Err(error @ ToolchainError::NoClang { .. }) => {
            eprintln!("SKIPPED: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn a_new_policy_of_each_kind_becomes_a_component_of_a_few_kilobytes() {
    let Some(builder) = builder() else { return };
    let root = tempfile::tempdir().expect("a folder");
    for kind in PolicyKind::ALL {
        let dir = root.path().join(kind.name());
        new_policy(kind, Language::C, "mine", &dir).expect("written");
        let mut said = Vec::new();
        let built = builder.build_saying(&dir, &mut |line| said.push(line.to_owned())).expect("it builds");
        assert_eq!(said, Vec::<String>::new(), "no warning in a template");
        assert!(built.component.len() < 30_000, "{} bytes", built.component.len());
        let text = String::from_utf8_lossy(&built.component);
        assert!(text.contains("jackfield:policy/lifecycle@0.2.0"));
        for unused in ["jackfield:policy/tokens", "jackfield:policy/log", "wasi"] {
            assert!(!text.contains(unused), "imports {unused}");
        }
    }
}

#[test]
fn a_policy_that_does_not_compile_or_link_gives_the_compilers_words() {
    let Some(builder) = builder() else { return };
    let root = tempfile::tempdir().expect("a folder");
    let dir = root.path().join("broken");
    new_policy(PolicyKind::Router, Language::C, "broken", &dir).expect("written");
    let source = dir.join("policy.c");
    let text = std::fs::read_to_string(&source).expect("source");
    let build = |text: &str| {
        std::fs::write(&source, text).expect("written");
        builder.build(&dir).expect_err("it does not build")
    };
    let error = build(&text.replace("jf_fold(request", "jf_flod(request"));
    assert!(matches!(error, BuildError::Compile { .. }), "{error}");
    assert!(error.stderr().contains("policy.c:") && error.stderr().contains("jf_flod"), "{error}");
    let error = build(&text.replace("bool jf_route(", "bool route("));
    assert!(matches!(error, BuildError::Compile { .. }), "{error}");
    assert!(error.stderr().contains("jf_route"), "{error}");
}
