//! The real binary as a command: what it prints and how it ends.

use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::host::binary;

/// How a command ended, and what it printed.
#[derive(Debug)]
pub struct Ended {
    /// Its exit code; none when a signal ended it.
    pub code: Option<i32>,
    /// Its standard output.
    pub out: String,
    /// Its standard error.
    pub error: String,
}

/// The binary with these arguments, in a folder that becomes its home. Nothing of the caller's environment reaches for
/// another place.
pub fn command(home: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(binary());
    command.args(arguments).current_dir(home).env("HOME", home).stdin(Stdio::null());
    let foreign = ["XDG_CACHE_HOME", "XDG_STATE_HOME", "JACKFIELD_ADMIN_KEY", "CLICOLOR_FORCE"];
    let proxies = ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"];
    for name in foreign.into_iter().chain(proxies) {
        command.env_remove(name);
    }
    command
}

/// Runs the binary to its end; panics when it does not end.
pub fn run(home: &Path, arguments: &[&str]) -> Ended {
    let mut child = command(home, arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    let until = Instant::now() + Duration::from_secs(100);
    while child.try_wait().expect("a child").is_none() {
        if Instant::now() > until {
            child.kill().expect("a child");
            panic!("{arguments:?} goes on: {:?}", child.wait_with_output());
        }
        thread::sleep(Duration::from_millis(5));
    }
    let output = child.wait_with_output().expect("output");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    Ended { code: output.status.code(), out: text(output.stdout), error: text(output.stderr) }
}

/// Runs the binary, which is to end with this code and say these words on standard error.
#[track_caller]
pub fn fails(home: &Path, arguments: &[&str], code: i32, words: &[&str]) -> Ended {
    let ended = run(home, arguments);
    assert_eq!(ended.code, Some(code), "{arguments:?}: {ended:?}");
    for word in words {
        assert!(ended.error.contains(word), "{arguments:?}: {word:?} is not in {}", ended.error);
    }
    assert!(!ended.error.contains("panicked"), "{}", ended.error);
    ended
}

/// Runs the binary, which is to do its work; what it printed on standard output.
#[track_caller]
pub fn prints(home: &Path, arguments: &[&str]) -> String {
    let ended = run(home, arguments);
    assert_eq!(ended.code, Some(0), "{arguments:?}: {ended:?}");
    ended.out
}
