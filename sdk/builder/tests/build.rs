//! Builds what `new_policy` writes, with whatever way to compile for WebAssembly this machine has.

use std::path::Path;

use jackfield_builder::{BuildError, Builder, FolderError, Language, PolicyKind, new_policy};

/// What it finds and compiles is kept between runs, so that the SDK and its dependencies are compiled once.
fn builder() -> Builder {
    let builder = Builder::new(Path::new(env!("CARGO_TARGET_TMPDIR")).join("toolchain"));
    builder.prepare(Language::Rust, &mut |line| eprintln!("{line}")).expect("a toolchain for policies");
    builder
}

#[test]
fn a_new_policy_of_each_kind_becomes_a_small_component() {
    let builder = builder();
    let root = tempfile::tempdir().expect("a folder");
    for kind in PolicyKind::ALL {
        let dir = root.path().join(kind.name());
        new_policy(kind, Language::Rust, &format!("my-{}", kind.name()), &dir).expect("written");
        let built = builder.build(&dir).expect("it builds");
        assert!(built.component.starts_with(b"\0asm\x0d\0\x01\0"));
        assert!(built.component.len() < 400_000, "{} bytes", built.component.len());
        let text = String::from_utf8_lossy(&built.component);
        assert!(text.contains("jackfield:policy/lifecycle@0.2.0#configure"));
        for unused in ["jackfield:policy/tokens", "jackfield:policy/log", "wasi"] {
            assert!(!text.contains(unused), "imports {unused}");
        }
    }
}

#[test]
fn a_policy_that_does_not_compile_gives_the_compilers_words_with_the_place() {
    let builder = builder();
    let root = tempfile::tempdir().expect("a folder");
    let dir = root.path().join("broken");
    new_policy(PolicyKind::Router, Language::Rust, "broken", &dir).expect("written");
    let source = dir.join("src/lib.rs");
    let text = std::fs::read_to_string(&source).expect("source").replace("fleet.first()", "fleet.frist()");
    std::fs::write(&source, text).expect("written");
    let error = builder.build(&dir).expect_err("it does not compile");
    assert!(matches!(error, BuildError::Compile { .. }));
    assert!(error.stderr().contains("no method named `frist`"), "{error}");
    assert!(error.stderr().contains("src/lib.rs:"), "{error}");
}

#[test]
fn a_crate_without_a_policy_is_refused_with_what_to_add() {
    let builder = builder();
    let root = tempfile::tempdir().expect("a folder");
    let dir = root.path().join("empty");
    std::fs::create_dir_all(dir.join("src")).expect("made");
    std::fs::write(dir.join("src/lib.rs"), "pub fn nothing() {}").expect("written");
    let write = |kind: &str| {
        let manifest =
            format!("[package]\nname = \"empty\"\nedition = \"2024\"\n[lib]\n{kind}\n[workspace]\n");
        std::fs::write(dir.join("Cargo.toml"), manifest).expect("written");
    };
    write("");
    let error = builder.build(&dir).expect_err("a plain library");
    assert!(matches!(error, BuildError::NoArtifact { .. }), "{error}");
    write("crate-type = [\"cdylib\"]");
    let error = builder.build(&dir).expect_err("no policy in it");
    assert!(matches!(error, BuildError::NotAPolicy { .. }), "{error}");
    let nothing = builder.build(root.path());
    assert!(matches!(nothing, Err(BuildError::Folder(FolderError::NoSource { .. }))));
}
