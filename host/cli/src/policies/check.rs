//! `jackfield policy check`: everything for which a server would refuse a policy, at once.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use console::style;
use indicatif::BinaryBytes;
use jackfield_builder::{Builder, PolicyDir};
use jackfield_policy::{
    Case, Grant, Inspection, Kind, Manifest, Policy, Refusal, Runtime, Upload, config_problems, inspect,
};

use super::folder::read_cases;
use super::show::{count, indent};
use super::subject::Subject;
use crate::Failure;
use crate::dirs::Dirs;

pub(super) fn run(paths: &[PathBuf], dirs: &Dirs) -> Result<(), Failure> {
    let subjects = Subject::all(paths)?;
    let builder = super::builder(dirs);
    let mut refused = 0;
    for subject in &subjects {
        // Each has an engine of its own: nothing that one policy does is of weight for the next.
        let runtime = super::runtime()?;
        let findings = Findings::of(subject, &runtime, &builder);
        print!("{}", findings.shown(&subject.name()));
        refused += usize::from(!findings.problems.is_empty());
    }
    match refused {
        0 => Ok(()),
        refused => {
            Err(Failure::failed(format!("{refused} of {} would be refused", count_policies(&subjects))))
        }
    }
}

fn count_policies(subjects: &[Subject]) -> String {
    match subjects.len() {
        1 => "1 policy".into(),
        many => format!("{many} policies"),
    }
}

/// What was found of one policy.
#[derive(Default)]
struct Findings {
    /// For which a server refuses it.
    problems: Vec<String>,
    /// Of which the author should know.
    notes: Vec<String>,
    /// What it is, when all is well.
    summary: String,
}

impl Findings {
    fn of(subject: &Subject, runtime: &Arc<Runtime>, builder: &Builder) -> Findings {
        let mut findings = Findings::default();
        let data = findings.read(subject);
        let manifest = data.as_ref().and_then(|(_, manifest, _)| manifest.as_ref());
        let component = match subject.component(builder) {
            Ok(component) => component,
            Err(why) => return findings.with(why),
        };
        let inspection = match inspect(runtime, &component) {
            Ok(inspection) => inspection,
            Err(refusal) => return findings.with(refusal.to_string()),
        };
        findings.contract(&inspection, manifest.map(|manifest| manifest.kind));
        if let Some(manifest) = manifest {
            findings.grants(&inspection, manifest);
        }
        findings.configuration(&inspection, data.as_ref().map(|(data, ..)| data));
        if let (true, Some((data, Some(manifest), cases))) = (findings.problems.is_empty(), data) {
            let cases_found = cases.len();
            let upload = Upload { manifest, component, config: data.config, cases: Vec::new() };
            findings.start(runtime, upload, cases_found);
        }
        findings
    }

    fn with(mut self, problem: String) -> Findings {
        self.problems.push(problem);
        self
    }

    /// The data files; the manifest is none when it is wrong.
    fn read(&mut self, subject: &Subject) -> Option<(PolicyDir, Option<Manifest>, Vec<Case>)> {
        let Some(folder) = subject.folder() else {
            self.notes.push(
                "there is no policy.toml beside it: its kind, grants, limits and configuration are not checked"
                    .into(),
            );
            return None;
        };
        let mut data = folder.data().map_err(|error| self.problems.push(error.to_string())).ok()?;
        let manifest = folder.manifest(&data).map_err(|error| self.problems.push(error.to_string())).ok();
        let mut cases = Vec::new();
        for file in std::mem::take(&mut data.cases) {
            match read_cases(file) {
                Ok(read) => cases.extend(read),
                Err(error) => self.problems.push(error.to_string()),
            }
        }
        let mut names = BTreeSet::new();
        for case in cases.iter().filter(|case| !names.insert(case.name.as_str())) {
            self.notes.push(format!("two cases have the name {:?}: give each its own", case.name));
        }
        Some((data, manifest, cases))
    }

    fn contract(&mut self, inspection: &Inspection, kind: Option<Kind>) {
        let Some(kind) = kind.or(inspection.kind) else {
            self.problems.push("it is not a policy: it exports no interface of jackfield:policy".into());
            return;
        };
        for refusal in inspection.contract_problems(kind) {
            let remedy = match &refusal {
                Refusal::WrongWorld { found: Some(found), .. } => {
                    format!("; write kind = \"{found}\" in policy.toml, or build it for the world `{kind}`")
                }
                Refusal::WrongWorld { .. } => format!("; build it for the world `{kind}` of wit/policy.wit"),
                _ => String::new(),
            };
            self.problems.push(format!("{refusal}{remedy}"));
        }
    }

    /// A toolchain that keeps every import of the world says nothing about which are called; one that drops some does.
    fn grants(&mut self, inspection: &Inspection, manifest: &Manifest) {
        let imported = inspection.wanted_grants();
        let missing: Vec<Grant> = imported.iter().copied().filter(|grant| !manifest.grants(*grant)).collect();
        if !missing.is_empty() {
            let all = manifest.grants.iter().chain(&missing).copied();
            let line = format!("grants = [{}]", listed(all, "\""));
            let names = listed(missing.iter().copied(), "`");
            match inspection.imports_its_whole_world() {
                true => self.notes.push(format!(
                    "it imports {names}, not granted, as some toolchains do for every policy; if it calls one, write in \
                     policy.toml: {line}"
                )),
                false => self.problems.push(format!(
                    "it imports {names}, not granted: a call ends in a fault; write in policy.toml: {line}"
                )),
            }
        }
        let unused: Vec<Grant> =
            manifest.grants.iter().copied().filter(|grant| !imported.contains(grant)).collect();
        if !unused.is_empty() {
            let names = listed(unused.into_iter(), "`");
            self.notes.push(format!("policy.toml grants {names}, which it does not import: take it out"));
        }
    }

    fn configuration(&mut self, inspection: &Inspection, data: Option<&PolicyDir>) {
        let description = match &inspection.description {
            Ok(description) => description,
            // Why it does not run was said before, if it was for its imports and exports.
            Err(_) if !self.problems.is_empty() => return,
            Err(refusal) => return self.problems.push(refusal.to_string()),
        };
        let Some(data) = data else { return };
        match config_problems(&description.config_schema, &data.config) {
            Ok(problems) => self.problems.extend(problems.into_iter().map(|problem| {
                let place = if problem.at.is_empty() { "the whole" } else { &problem.at };
                format!("rules.toml, {place}: {}", problem.message)
            })),
            Err(refusal) => self.problems.push(refusal.to_string()),
        }
    }

    /// As an activation does it, without the cases.
    fn start(&mut self, runtime: &Arc<Runtime>, upload: Upload, cases: usize) {
        let bytes = upload.component.len() as u64;
        match Policy::prepare(runtime, upload) {
            Ok(policy) => {
                if cases == 0 {
                    self.notes.push("it has no recorded cases: put some in cases/".into());
                }
                self.summary = format!(
                    "{} {}, {}, {}",
                    policy.manifest().kind,
                    policy.version().version,
                    BinaryBytes(bytes),
                    count(cases, "case"),
                );
            }
            Err(refusal) => self.problems.push(refusal.to_string()),
        }
    }

    fn shown(&self, name: &str) -> String {
        let mut shown = match self.problems.len() {
            0 => format!("{name}: {}", style("in order").green()),
            problems => format!("{name}: {}", style(count(problems, "problem")).red()),
        };
        if !self.summary.is_empty() {
            shown += &format!(" ({})", self.summary);
        }
        shown += "\n";
        for problem in &self.problems {
            shown += &item("-", problem);
        }
        for note in &self.notes {
            shown += &item("note:", note);
        }
        shown
    }
}

/// An item whose further lines stand under its first.
fn item(mark: &str, text: &str) -> String {
    let indented = indent(text.trim_end(), 2 + mark.len() + 1);
    format!("  {mark} {}", indented.trim_start())
}

fn listed(grants: impl Iterator<Item = Grant>, quote: &str) -> String {
    grants.map(|grant| format!("{quote}{}{quote}", grant.name())).collect::<Vec<_>>().join(", ")
}
