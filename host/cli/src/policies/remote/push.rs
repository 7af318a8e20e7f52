//! `jackfield policy push`: a version goes to a running server.

use jackfield_builder::PolicyDir;
use jackfield_policy::{Case, Manifest, Upload};
use serde_json::Value;

use super::form::{self, Part};
use super::{Admin, policy_path, said};
use crate::Failure;
use crate::args::PushArgs;
use crate::dirs::Dirs;
use crate::policies::files;
use crate::policies::folder::{PolicyFolder, read_cases};
use crate::policies::replay;
use crate::policies::show::{count, short};
use crate::policies::subject::Subject;

pub(in crate::policies) fn run(args: &PushArgs, dirs: &Dirs) -> Result<(), Failure> {
    let path = policy_path(&args.name, &query(args))?;
    let admin = Admin::new(&args.admin)?;
    let subject = Subject::at(&args.path)?;
    if args.gate.replay.is_some() {
        replay::gate(&args.gate, candidate(args, &subject, dirs)?)?;
    }
    let (parts, summary) = parts(args, &subject, dirs)?;
    eprintln!("{}: sending {summary}", args.name);
    let answer = admin.send("PUT", &path, Some(form::body(&parts)))?;
    println!("{}", outcome(&args.name, &answer));
    let stage = answer["stage"].as_str().unwrap_or("active");
    if (args.shadow.is_some() || args.canary.is_some()) && stage == "active" && answer["changed"] == true {
        return Err(Failure::failed(format!(
            "a candidate was asked for, and the server put it in force; `jackfield policy rollback {}` undoes it",
            args.name
        )));
    }
    Ok(())
}

/// What came of a change, in a sentence.
pub(super) fn outcome(name: &str, answer: &Value) -> String {
    let version = &answer["version"];
    let of = match version["version"].as_str() {
        Some(number) => {
            let digest = version["digest"].as_str().map(|digest| format!(" ({})", short(digest)));
            format!("{name}@{number}{}", digest.unwrap_or_default())
        }
        None => name.to_owned(),
    };
    let generation = said(&answer["generation"]);
    let took = answer["millis"].as_u64().map(|millis| format!(" after {millis} ms")).unwrap_or_default();
    let stage = answer["stage"].as_str().unwrap_or("active");
    match (answer["changed"].as_bool(), stage) {
        (Some(false), _) => format!("{of}: nothing changed, generation {generation} stays"),
        (_, "shadow") => format!(
            "{of} is a candidate in shadow{took}: it runs beside the active version and its answers are not used; see \
             `jackfield policy status {name}`"
        ),
        (_, "canary") => format!(
            "{of} is a candidate serving a share of the sessions{took}; see `jackfield policy status {name}`"
        ),
        _ => format!("{of} is in force as generation {generation}{took}"),
    }
}

fn query(args: &PushArgs) -> String {
    let shadow = args.shadow.map(|time| format!("shadow_s={}", time.as_secs()));
    let canary = args.canary.map(|share| format!("canary={share}"));
    let asked: Vec<String> = shadow.into_iter().chain(canary).collect();
    if asked.is_empty() { String::new() } else { format!("?{}", asked.join("&")) }
}

/// What would be in force, for calls that are made here first.
fn candidate(args: &PushArgs, subject: &Subject, dirs: &Dirs) -> Result<Upload, Failure> {
    let mut upload = subject.upload(&crate::policies::builder(dirs)).map_err(Failure::failed)?;
    if let Some(file) = &args.manifest {
        upload.manifest = Manifest::from_toml(&files::text(file)?).map_err(Failure::usage)?;
    }
    if let Some(file) = &args.config {
        upload.config = files::config(file)?;
    }
    Ok(upload)
}

/// What is sent, and what that is in words.
fn parts(args: &PushArgs, subject: &Subject, dirs: &Dirs) -> Result<(Vec<Part>, String), Failure> {
    let own = subject.folder().map(Own::read).transpose()?;
    let manifest = match &args.manifest {
        Some(file) => Some(files::text(file)?),
        None => own.as_ref().map(|own| own.data.manifest_toml.clone()),
    };
    if let Some(toml) = &manifest {
        check_name(&args.name, toml)?;
    }
    let config = match &args.config {
        Some(file) => Some(files::config(file)?),
        None => own.as_ref().map(|own| own.data.config.clone()),
    };
    let cases = match &args.cases {
        Some(dir) => Some(files::cases(dir)?),
        None => own.map(|own| own.cases),
    };
    let component = subject.component(&crate::policies::builder(dirs)).map_err(Failure::failed)?;
    let mut said = vec![format!("a component of {}", indicatif::BinaryBytes(component.len() as u64))];
    let mut parts = vec![Part { name: "component", kind: "application/wasm", content: component.to_vec() }];
    if let Some(file) = args.signature.clone().or_else(|| subject.signature()) {
        said.push("its signature".into());
        let content = files::text(&file)?.into_bytes();
        parts.push(Part { name: "signature", kind: "text/plain", content });
    }
    if let Some(toml) = manifest {
        said.push("its manifest".into());
        parts.push(Part { name: "manifest", kind: "application/toml", content: toml.into_bytes() });
    }
    if let Some(config) = config {
        said.push("its configuration".into());
        let content = config.to_string().into_bytes();
        parts.push(Part { name: "config", kind: "application/json", content });
    }
    if let Some(cases) = cases {
        said.push(count(cases.len(), "case"));
        let content = serde_json::to_vec(&cases).map_err(Failure::failed)?;
        parts.push(Part { name: "cases", kind: "application/json", content });
    }
    Ok((parts, said.join(", ")))
}

/// The data files of a policy's folder.
struct Own {
    data: PolicyDir,
    cases: Vec<Case>,
}

impl Own {
    fn read(folder: &PolicyFolder) -> Result<Own, Failure> {
        let mut data = folder.data().map_err(Failure::usage)?;
        folder.manifest(&data).map_err(Failure::usage)?;
        let files = std::mem::take(&mut data.cases).into_iter().map(read_cases);
        let cases = files.collect::<Result<Vec<_>, _>>().map_err(Failure::usage)?;
        Ok(Own { data, cases: cases.into_iter().flatten().collect() })
    }
}

/// The server would refuse it, after a build and an upload.
fn check_name(name: &str, toml: &str) -> Result<(), Failure> {
    let manifest = Manifest::from_toml(toml).map_err(Failure::usage)?;
    if manifest.name == name {
        return Ok(());
    }
    Err(Failure::usage(format!(
        "the manifest names the policy `{}`, the command line `{name}`: they must be the same",
        manifest.name
    )))
}
