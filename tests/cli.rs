//! The command line: what it says and how it ends when something is wrong.

use std::fs;
use std::net::TcpListener;
use std::path::Path;

use jackfield_testkit::command::{fails, run};
use jackfield_testkit::host::tiny_model_file;
use jackfield_testkit::tiny_model::TinyModel;

/// `serve` with the tiny model, ports of its own, and these arguments, which are to stop it.
fn serve_fails(home: &Path, arguments: &[&str], code: i32, words: &[&str]) {
    let model = tiny_model_file();
    let common = ["serve", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0", "--model"];
    let mut all: Vec<&str> = common.to_vec();
    all.extend([model.to_str().expect("UTF-8"), "--state", "state"]);
    for pair in arguments.chunks(2) {
        match all.iter().position(|argument| *argument == pair[0]) {
            Some(at) => all[at + 1] = pair[1],
            None => all.extend(pair),
        }
    }
    fails(home, &all, code, words);
}

#[test]
fn wrong_use_ends_with_two_and_says_what_is_wrong() {
    let home = tempfile::tempdir().expect("a folder");
    let cases: [(&[&str], &[&str]); 14] = [
        (&[], &["Usage"]),
        (&["--nonsense"], &["--nonsense"]),
        (&["sevre"], &["sevre", "serve"]),
        (&["serve", "--listen", "nowhere"], &["nowhere", "--listen"]),
        (&["serve", "--threads", "many"], &["many"]),
        (&["policy", "new", "--kind", "filter", "x"], &["filter", "output-filter"]),
        (&["policy", "new", "--kind", "router", "--lang", "cobol", "x"], &["cobol", "rust"]),
        (&["policy", "build"], &["FOLDER"]),
        (&["policy", "check", "gone"], &["gone", "policy.toml"]),
        (&["policy", "inspect", "gone.wasm"], &["gone.wasm"]),
        (&["policy", "push", "x", ".", "--shadow", "10"], &["--shadow", "10m"]),
        (&["policy", "push", "x", ".", "--canary", "5"], &["--canary", "5%"]),
        (&["policy", "status", "--admin", "localhost:8081"], &["localhost:8081", "http://"]),
        (&["model", "inspect", "smolm"], &["smolm", "smollm2-135m"]),
    ];
    for (arguments, words) in cases {
        fails(home.path(), arguments, 2, words);
    }
    serve_fails(home.path(), &["--threads", "0"], 2, &["threads"]);
    serve_fails(
        home.path(),
        &["--listen", "127.0.0.1:8099", "--admin-listen", "127.0.0.1:8099"],
        2,
        &["8099", "never shares"],
    );
    for good in [["--version", ""], ["serve", "--help"]] {
        let arguments: Vec<&str> = good.into_iter().filter(|argument| !argument.is_empty()).collect();
        let ended = run(home.path(), &arguments);
        assert_eq!(ended.code, Some(0), "{}", ended.error);
        assert!(!ended.out.is_empty());
    }
}

#[test]
fn a_configuration_that_cannot_be_used_is_named_with_its_place() {
    let home = tempfile::tempdir().expect("a folder");
    let file = home.path().join("jackfield.toml");
    let path = file.to_str().expect("UTF-8");
    let cases: [(&str, &[&str]); 9] = [
        ("threads = 1\nlisten_on = 'x'\n", &["listen_on", "line 2", "column 1"]),
        ("threads = 1\n\nlisten = 'nowhere'\n", &["listen = 'nowhere'", "line 3", "column 10"]),
        ("[engine]\nkv_mib = \"much\"\n", &["kv_mib", "line 2", "column 10"]),
        ("[engine]\nkv_mb = 1\n", &["kv_mb", "line 2"]),
        ("[server\n", &["line 1"]),
        ("[[keys]]\nkey = 'sk-12345678'\n", &["tenant"]),
        ("[[keys]]\nkey = 'sk-1'\ntenant = 'a'\n[[keys]]\nkey = 'sk-1'\ntenant = 'b'\n", &["key number 2"]),
        ("[server]\nrequest_permits = 0\n", &["request_permits"]),
        ("[engine]\nmax_step_tokens = 1\n", &["max_step_tokens"]),
    ];
    for (toml, words) in cases {
        fs::write(&file, toml).expect("written");
        serve_fails(home.path(), &["--config", path], 2, words);
    }
    fs::write(&file, "[engine]\nkv_mib = 0\n").expect("written");
    serve_fails(home.path(), &["--config", path], 2, &["engine.kv_mib is 0"]);
    fs::write(&file, "threads = 1\nlisten_on = 'x'\n").expect("written");
    serve_fails(home.path(), &["--config", path], 2, &[path]);
    serve_fails(home.path(), &["--config", "gone.toml"], 2, &["gone.toml"]);
}

#[test]
fn nothing_is_served_to_everyone_without_a_key() {
    let home = tempfile::tempdir().expect("a folder");
    serve_fails(home.path(), &["--listen", "0.0.0.0:0"], 2, &["0.0.0.0", "no keys"]);
    serve_fails(home.path(), &["--listen", "[::]:0"], 2, &["[::]", "no keys"]);
    serve_fails(home.path(), &["--admin-listen", "0.0.0.0:0"], 2, &["0.0.0.0", "admin API has no key"]);
    serve_fails(
        home.path(),
        &["--admin-listen", "0.0.0.0:0", "--admin-key", ""],
        2,
        &["admin API has no key"],
    );
}

#[test]
fn what_is_not_there_ends_with_one() {
    let home = tempfile::tempdir().expect("a folder");
    let gone = home.path().join("gone.gguf");
    let gone = gone.to_str().expect("UTF-8");
    serve_fails(home.path(), &["--model", gone], 1, &[gone]);
    fails(home.path(), &["model", "inspect", gone], 1, &[gone]);
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("its address").to_string();
    serve_fails(home.path(), &["--listen", &address], 1, &[&address, "--listen"]);
}

#[test]
fn a_folder_of_policies_that_cannot_be_used_is_named() {
    let home = tempfile::tempdir().expect("a folder");
    let policies = home.path().join("policies");
    let path = policies.to_str().expect("UTF-8");
    serve_fails(home.path(), &["--policies", path], 2, &[path]);
    fs::create_dir_all(policies.join("mask")).expect("a folder");
    serve_fails(home.path(), &["--policies", path], 2, &[path, "policy build"]);
    fs::write(policies.join("mask/policy.toml"), "name = \"mask\"\nkind = \"filter\"\n").expect("written");
    fs::write(policies.join("mask/policy.wasm"), b"\0asm").expect("written");
    serve_fails(home.path(), &["--policies", path], 2, &["policy.toml", "filter", "output-filter"]);
    fs::write(policies.join("mask/policy.toml"), "name = \"mask\"\nkind = \"output-filter\"\n")
        .expect("written");
    serve_fails(home.path(), &["--policies", path], 1, &["mask", "not a component"]);
}

#[test]
fn a_model_file_says_what_it_is() {
    let home = tempfile::tempdir().expect("a folder");
    let model = TinyModel::default().write(home.path());
    let ended = run(home.path(), &["model", "inspect", model.to_str().expect("UTF-8")]);
    assert_eq!(ended.code, Some(0), "{}", ended.error);
    for line in [
        "general.architecture = \"llama\"",
        "llama.block_count = 2",
        "llama.context_length = 512",
        "llama.embedding_length = 64",
        "tokenizer.ggml.model = \"gpt2\"",
    ] {
        assert!(ended.out.lines().any(|found| found == line), "{line} is not in\n{}", ended.out);
    }
    assert!(ended.out.lines().any(|line| line.contains("tensors in Q4_1")), "{}", ended.out);
}

#[test]
fn a_model_file_that_is_cut_off_is_refused_with_the_place() {
    let home = tempfile::tempdir().expect("a folder");
    let whole = TinyModel::default().bytes();
    let path = home.path().join("cut.gguf");
    let name = path.to_str().expect("UTF-8");
    let cuts = [0, 3, 4, 10, 23, 24, 60, 500, whole.len() / 4, whole.len() / 2, whole.len() - 1];
    for cut in cuts {
        fs::write(&path, &whole[..cut]).expect("written");
        serve_fails(home.path(), &["--model", name], 1, &[name, "at byte"]);
        fails(home.path(), &["model", "inspect", name], 1, &[name, "at byte"]);
    }
    let mut wrong = whole.clone();
    wrong[..4].copy_from_slice(b"ZZZZ");
    fs::write(&path, &wrong).expect("written");
    serve_fails(home.path(), &["--model", name], 1, &[name, "magic"]);
}
