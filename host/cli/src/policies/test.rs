//! `jackfield policy test`: recorded cases, run in the runtime that serves.

mod junit;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use console::style;
use jackfield_builder::Builder;
use jackfield_policy::{Case, CaseFailure, Policy, Runtime, Upload};

use super::files;
use super::show::{count, indent, two};
use super::subject::Subject;
use crate::Failure;
use crate::args::TestArgs;
use crate::dirs::Dirs;
use crate::watch::{Change, Watch, Watched};

pub(super) fn run(args: &TestArgs, dirs: &Dirs) -> Result<(), Failure> {
    let subjects = Subject::all(&args.folders)?;
    if let Some(path) = &args.junit {
        files::try_output(path)?;
    }
    let mut tests = Tests {
        runtime: super::runtime()?,
        builder: super::builder(dirs),
        filter: args.filter.as_deref(),
        components: BTreeMap::new(),
    };
    if args.watch {
        return tests.watch(&subjects);
    }
    let tested: Vec<Tested> = subjects.iter().map(|subject| tests.test(subject, true)).collect();
    if let Some(path) = &args.junit {
        files::write_output(path, &junit::report(&tested)?)?;
    }
    sum_up(&tested, args.filter.as_deref())
}

/// A policy whose cases were run, or that has not come so far.
struct Tested {
    name: String,
    outcome: Result<Vec<CaseRun>, String>,
    took: Duration,
}

/// A case that was run.
struct CaseRun {
    name: String,
    failure: Option<CaseFailure>,
    took: Duration,
}

struct Tests<'a> {
    runtime: Arc<Runtime>,
    builder: Builder,
    filter: Option<&'a str>,
    /// What was built last of each folder: a saved case needs no new build.
    components: BTreeMap<String, Arc<[u8]>>,
}

impl Tests<'_> {
    /// Tests a policy and prints what came of it. What was built before is taken when the source is the same.
    fn test(&mut self, subject: &Subject, source_changed: bool) -> Tested {
        let begun = Instant::now();
        let outcome = self.run(subject, source_changed);
        let tested = Tested { name: subject.name(), outcome, took: begun.elapsed() };
        print!("{}", shown(&tested));
        tested
    }

    fn run(&mut self, subject: &Subject, source_changed: bool) -> Result<Vec<CaseRun>, String> {
        let upload = self.upload(subject, source_changed)?;
        let cases: Vec<Case> = upload.cases.iter().filter(|case| self.wants(case)).cloned().collect();
        let upload = Upload { cases: Vec::new(), ..upload };
        let policy = Policy::prepare(&self.runtime, upload).map_err(|refusal| refusal.to_string())?.patient();
        Ok(cases.iter().map(|case| run_case(&policy, case)).collect())
    }

    fn upload(&mut self, subject: &Subject, source_changed: bool) -> Result<Upload, String> {
        let Some(folder) = subject.folder() else { return subject.upload(&self.builder) };
        let component = match self.components.remove(&subject.name()) {
            Some(built) if !source_changed => built,
            _ => subject.component(&self.builder)?,
        };
        self.components.insert(subject.name(), Arc::clone(&component));
        folder.with_component(component).map_err(|error| error.to_string())
    }

    fn wants(&self, case: &Case) -> bool {
        self.filter.is_none_or(|text| case.name.contains(text))
    }

    /// Tests each folder, and again when something in it is saved, until Ctrl-C.
    fn watch(mut self, subjects: &[Subject]) -> Result<(), Failure> {
        let mut folders: BTreeMap<PathBuf, &Subject> = BTreeMap::new();
        for subject in subjects {
            let path = subject.folder().map(|folder| folder.path().canonicalize()).transpose();
            folders.extend(path.map_err(Failure::failed)?.map(|path| (path, subject)));
        }
        let failed = |error| Failure::failed(format!("watching failed: {error}"));
        // Before the first run, so that nothing that is saved during it is missed.
        let watch = Watch::start(Watched::Folders(folders.keys().cloned().collect())).map_err(failed)?;
        for subject in subjects {
            self.test(subject, true);
        }
        eprintln!("watching {}; Ctrl-C ends it", count(folders.len(), "folder"));
        let react = |changes: BTreeMap<PathBuf, Change>| {
            for (folder, change) in changes {
                if let Some(subject) = folders.get(&folder) {
                    eprintln!("\n{}: {change}", subject.name());
                    self.test(subject, change.source);
                }
            }
        };
        watch.each_change(react).map_err(failed)
    }
}

fn run_case(policy: &Policy, case: &Case) -> CaseRun {
    let begun = Instant::now();
    let failure = policy.run_case(case).err();
    CaseRun { name: case.name.clone(), failure, took: begun.elapsed() }
}

fn shown(tested: &Tested) -> String {
    let name = style(&tested.name).bold();
    let runs = match &tested.outcome {
        Ok(runs) => runs,
        Err(why) => return format!("{name}: {}\n{}", style("failed").red(), indent(why, 4)),
    };
    let mut shown = format!("{name}\n");
    for run in runs {
        let (mark, ms) =
            (if run.failure.is_none() { style("ok  ").green() } else { style("FAIL").red() }, time(run.took));
        shown += &format!("  {mark} {} {}\n", run.name, style(format!("({ms})")).dim());
        shown += &run.failure.as_ref().map(|failure| indent(&explained(failure), 7)).unwrap_or_default();
    }
    let failed = runs.iter().filter(|run| run.failure.is_some()).count();
    let passed = count(runs.len() - failed, "case");
    let failed = if failed == 0 { String::new() } else { format!(", {failed} failed") };
    shown + &format!("  {passed} passed{failed} in {}\n", time(tested.took))
}

/// Expected and found at each place, under each other.
fn explained(failure: &CaseFailure) -> String {
    match failure {
        CaseFailure::Differs { differences, .. } => {
            let each = differences.iter().map(|place| {
                two(&place.path, [("expected", Some(&place.expected)), ("found", Some(&place.found))])
            });
            each.collect()
        }
        CaseFailure::Unsteady { answers } => format!(
            "the same call answered differently the second time; a policy is a pure function of its arguments\n{}",
            two("", [("first", Some(&answers[0])), ("second", Some(&answers[1]))])
        ),
        CaseFailure::NoAnswer { why } => why.clone(),
    }
}

/// In the unit that suits it.
fn time(duration: Duration) -> String {
    match duration.as_micros() {
        micros @ 0..10_000 => format!("{micros} µs"),
        micros @ 10_000..10_000_000 => format!("{} ms", micros / 1000),
        micros => format!("{} s", micros / 1_000_000),
    }
}

fn sum_up(tested: &[Tested], filter: Option<&str>) -> Result<(), Failure> {
    let runs: Vec<&CaseRun> =
        tested.iter().filter_map(|tested| tested.outcome.as_ref().ok()).flatten().collect();
    let failed = runs.iter().filter(|run| run.failure.is_some()).count();
    let broken: BTreeSet<&str> =
        tested.iter().filter(|tested| tested.outcome.is_err()).map(|tested| tested.name.as_str()).collect();
    if failed > 0 || !broken.is_empty() {
        let broken = match broken.len() {
            0 => String::new(),
            _ => format!("; not run: {}", broken.into_iter().collect::<Vec<_>>().join(", ")),
        };
        return Err(Failure::failed(format!("{failed} of {} failed{broken}", count(runs.len(), "case"))));
    }
    match (runs.is_empty(), filter) {
        (true, Some(text)) => Err(Failure::failed(format!("no case's name holds {text:?}"))),
        (true, None) => Err(Failure::failed("there are no recorded cases: put some in the folder's cases/")),
        (false, _) => Ok(()),
    }
}
