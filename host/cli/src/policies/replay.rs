//! `jackfield policy replay`: recorded calls, made again by another version.

use std::path::Path;

use jackfield_policy::{Changed, Group, Outcome, Policy, Replay, Replayed, Upload, read_log};
use serde_json::Value;

use super::show::{count, two};
use super::subject::Subject;
use crate::Failure;
use crate::args::{ReplayArgs, ReplayGate};
use crate::dirs::Dirs;

/// Examples of a group that are shown.
const SHOWN_EXAMPLES: usize = 2;

pub(super) fn run(args: &ReplayArgs, dirs: &Dirs) -> Result<(), Failure> {
    let subject = Subject::at(&args.path)?;
    let upload = subject.upload(&super::builder(dirs)).map_err(Failure::failed)?;
    let replayed = replay(upload, &args.against)?;
    print!("{}", report(&replayed));
    if let Some(file) = &args.json {
        let text = serde_json::to_string_pretty(&replayed).map_err(Failure::failed)? + "\n";
        std::fs::write(file, text)
            .map_err(|error| Failure::failed(format!("{}: {error}", file.display())))?;
    }
    hold(&replayed, args.max_changed.unwrap_or(0.0))
}

/// Holds an upload to the calls of a log before it goes to a server.
pub(super) fn gate(gate: &ReplayGate, upload: Upload) -> Result<(), Failure> {
    let Some(log) = &gate.replay else { return Ok(()) };
    let replayed = replay(upload, log)?;
    eprint!("{}", report(&replayed));
    hold(&replayed, gate.max_changed.unwrap_or(0.0))
}

fn replay(upload: Upload, log: &Path) -> Result<Replayed, Failure> {
    let name = upload.manifest.name.clone();
    // Its cases are the business of `policy test` and of the server.
    let upload = Upload { cases: Vec::new(), ..upload };
    let candidate = Policy::prepare(&super::runtime()?, upload).map_err(Failure::failed)?.patient();
    let mut replay = Replay::new(&candidate);
    read_log(log, |record| replay.again(&record)).map_err(Failure::usage)?;
    let replayed = replay.done();
    if replayed.calls == 0 {
        return Err(Failure::usage(format!(
            "{} holds no call of `{name}` ({} of others): record some with [record] in jackfield.toml; \
             the server's log says where one could not be",
            log.display(),
            replayed.others
        )));
    }
    Ok(replayed)
}

/// Fails when more calls changed than may.
fn hold(replayed: &Replayed, most: f64) -> Result<(), Failure> {
    let share = replayed.changed_share();
    if share <= most {
        return Ok(());
    }
    Err(Failure::failed(format!(
        "{} of {} changed, {:.2}%; at most {:.2}% may",
        replayed.changed,
        count(replayed.calls as usize, "call"),
        100.0 * share,
        100.0 * most
    )))
}

fn report(replayed: &Replayed) -> String {
    let share = 100.0 * replayed.changed_share();
    let calls = count(replayed.calls as usize, "call");
    let mut text = format!("{calls} made again, {} changed ({share:.2}%)\n", replayed.changed);
    if replayed.asked_anew > 0 {
        text += &format!(
            "{} of them asked an import for what is not recorded: what they came to is not exact\n",
            replayed.asked_anew
        );
    }
    replayed.groups.iter().for_each(|group| text += &self::group(group));
    text
}

fn group(group: &Group) -> String {
    let examples: String = group.examples.iter().take(SHOWN_EXAMPLES).map(example).collect();
    format!("\n{} × {}\n{examples}", group.count, group.what)
}

fn example(changed: &Changed) -> String {
    let shown = |outcome: &Outcome| match outcome {
        Outcome::Answer(answer) => answer.clone(),
        Outcome::Fault(fault) => Value::String(format!("fault: {fault}")),
    };
    let (before, after) = (shown(&changed.before), shown(&changed.after));
    let place = format!("turn {}", changed.turn);
    two(&place, [("recorded", Some(&before)), ("now", Some(&after))])
        .lines()
        .map(|line| format!("  {line}\n"))
        .collect()
}
