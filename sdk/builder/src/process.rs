use std::io::{BufRead, BufReader, Read};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use crate::error::BuildError;

/// What a program left behind.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) success: bool,
    /// How it ended, in words, where that was not by its own exit.
    pub(crate) killed: Option<String>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ran {
    /// Standard output of a compiler that succeeded.
    pub(crate) fn compiled(self) -> Result<String, BuildError> {
        match self.killed {
            Some(how) => Err(BuildError::Killed { how }),
            None if self.success => Ok(self.stdout),
            None => Err(BuildError::Compile { stderr: self.stderr }),
        }
    }
}

/// Why a program gave no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RunError {
    #[error("{program} cannot be started: {source}")]
    Start { program: String, source: std::io::Error },
    #[error("{program} was stopped after {} s", limit.as_secs())]
    TimedOut { program: String, limit: Duration },
}

impl From<RunError> for BuildError {
    fn from(error: RunError) -> BuildError {
        match error {
            RunError::Start { program, source } => {
                BuildError::Io { what: format!("{program} cannot be started"), source }
            }
            RunError::TimedOut { program, .. } => {
                BuildError::Io { what: program, source: std::io::ErrorKind::TimedOut.into() }
            }
        }
    }
}

enum Line {
    Out(String),
    Err(String),
}

/// Runs a program to its end, at most `limit` long. Each line of its stderr goes to `say` as it comes.
pub(crate) fn run(
    command: &mut Command,
    limit: Option<Duration>,
    say: &mut dyn FnMut(&str),
) -> Result<Ran, RunError> {
    let program = command.get_program().to_string_lossy().into_owned();
    let start_error = |source| RunError::Start { program: program.clone(), source };
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(start_error)?;
    let (sender, lines) = channel();
    read_lines(child.stdout.take(), sender.clone(), Line::Out);
    read_lines(child.stderr.take(), sender, Line::Err);
    let until = limit.map(|limit| Instant::now() + limit);
    let (mut stdout, mut stderr) = (String::new(), String::new());
    loop {
        // The pipes close when the program and all that it started have ended.
        let line = match until {
            None => lines.recv().map_err(|_| RecvTimeoutError::Disconnected),
            Some(until) => lines.recv_timeout(until.saturating_duration_since(Instant::now())),
        };
        match line {
            Ok(Line::Out(line)) => push(&mut stdout, &line),
            Ok(Line::Err(line)) => {
                say(&line);
                push(&mut stderr, &line);
            }
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {
                // An error here means that it ended by itself in this instant.
                let _ = child.kill();
                let _ = child.wait();
                return Err(RunError::TimedOut { program, limit: limit.unwrap_or_default() });
            }
        }
    }
    let status: ExitStatus = child.wait().map_err(start_error)?;
    let killed = status.code().is_none().then(|| status.to_string());
    Ok(Ran { success: status.success(), killed, stdout, stderr })
}

/// Runs a program that answers at once, and gives its trimmed stdout if it succeeded.
pub(crate) fn ask(program: impl AsRef<std::ffi::OsStr>, args: &[&str]) -> Result<String, String> {
    let mut command = Command::new(program.as_ref());
    let ran = run(command.args(args), Some(Duration::from_secs(30)), &mut |_| {})
        .map_err(|error| error.to_string())?;
    if ran.success {
        Ok(ran.stdout.trim().to_owned())
    } else {
        let last = last_line(&ran.stderr);
        Err(format!("{} {}: {last}", program.as_ref().to_string_lossy(), args.join(" ")))
    }
}

/// The last line of a program's messages that says something.
pub(crate) fn last_line(stderr: &str) -> &str {
    stderr.lines().rev().map(str::trim).find(|line| !line.is_empty()).unwrap_or("no message")
}

fn read_lines(pipe: Option<impl Read + Send + 'static>, sender: Sender<Line>, kind: fn(String) -> Line) {
    let Some(pipe) = pipe else { return };
    std::thread::spawn(move || {
        for line in BufReader::new(pipe).split(b'\n') {
            let Ok(line) = line else { return };
            if sender.send(kind(String::from_utf8_lossy(&line).into_owned())).is_err() {
                return;
            }
        }
    });
}

fn push(text: &mut String, line: &str) {
    text.push_str(line.trim_end_matches('\r'));
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn both_pipes_are_kept_and_stderr_is_said_line_by_line() {
        let mut said = Vec::new();
        let ran = run(&mut shell("echo a; echo b >&2; echo c >&2; exit 3"), None, &mut |line| {
            said.push(line.to_owned());
        })
        .expect("sh runs");
        assert!(!ran.success);
        assert_eq!(ran.stdout, "a\n");
        assert_eq!(said, ["b", "c"]);
    }

    #[test]
    fn a_program_that_hangs_is_stopped() {
        let limit = Duration::from_millis(100);
        let error = run(&mut shell("exec sleep 600"), Some(limit), &mut |_| {}).expect_err("it hangs");
        assert!(matches!(error, RunError::TimedOut { .. }), "{error}");
    }

    #[cfg(unix)]
    #[test]
    fn a_program_that_was_killed_did_not_end_by_itself() {
        let ran = run(&mut shell("kill -9 $$"), None, &mut |_| {}).expect("sh runs");
        assert!(!ran.success && ran.killed.is_some_and(|how| how.contains('9')));
        let ran = run(&mut shell("exit 1"), None, &mut |_| {}).expect("sh runs");
        assert_eq!((ran.success, ran.killed), (false, None));
    }

    #[test]
    fn a_missing_program_is_named() {
        let error = ask("no-such-program-here", &[]).expect_err("not there");
        assert!(error.contains("no-such-program-here"), "{error}");
    }
}
