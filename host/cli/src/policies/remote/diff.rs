//! `jackfield policy diff`: in what two versions differ, on this machine or on a server.

use std::path::Path;
use std::sync::Arc;

use console::style;
use jackfield_policy::inspect;
use serde_json::{Value, json};

use super::{Admin, policy_path, said};
use crate::Failure;
use crate::args::AdminArgs;
use crate::dirs::Dirs;
use crate::policies::changes::changes;
use crate::policies::inspect::description_value;
use crate::policies::show::{indent, short, two};
use crate::policies::subject::Subject;

/// What is compared, in this order.
const PARTS: [&str; 7] =
    ["manifest", "configuration", "schema", "description", "imports", "component size", "component digest"];

pub(in crate::policies) fn run(
    before: &str,
    after: &str,
    admin: &AdminArgs,
    dirs: &Dirs,
) -> Result<(), Failure> {
    let (before, after) = (Side::find(before, admin, dirs)?, Side::find(after, admin, dirs)?);
    println!("before  {}\nafter   {}", before.title, after.title);
    let mut same = Vec::new();
    for part in PARTS {
        let places = changes(&before.facts[part], &after.facts[part]);
        if places.is_empty() {
            same.push(part);
            continue;
        }
        println!("\n{}", style(part).bold().underlined());
        for place in places {
            let sides = [("before", place.before.as_ref()), ("after", place.after.as_ref())];
            print!("{}", indent(&two(&place.path, sides), 2));
        }
    }
    match same.len() {
        0 => {}
        7 => println!("\nno difference"),
        _ => println!("\nthe same: {}", same.join(", ")),
    }
    Ok(())
}

/// A version, wherever it is.
struct Side {
    title: String,
    /// By the names of `PARTS`; null where nothing is known.
    facts: Value,
}

impl Side {
    /// What is a path is meant as one.
    fn find(named: &str, admin: &AdminArgs, dirs: &Dirs) -> Result<Side, Failure> {
        let path = Path::new(named);
        if path.exists() {
            return Side::on_disk(path, dirs);
        }
        let looks_like_a_path = named.contains('/') || path.extension().is_some_and(|end| end == "wasm");
        if looks_like_a_path && !named.contains('@') {
            return Err(Failure::usage(format!("{named} is not there")));
        }
        Side::on_server(named, &Admin::new(admin)?)
    }

    fn on_disk(path: &Path, dirs: &Dirs) -> Result<Side, Failure> {
        let subject = Subject::at(path)?;
        let component = subject.component(&crate::policies::builder(dirs)).map_err(Failure::failed)?;
        let named = |error: &dyn std::fmt::Display| Failure::failed(format!("{}: {error}", path.display()));
        let runtime = crate::policies::runtime()?;
        let inspection = inspect(&runtime, &Arc::clone(&component)).map_err(|refusal| named(&refusal))?;
        let description =
            inspection.description.as_ref().map(description_value).map_err(|refusal| named(refusal))?;
        let (mut manifest, mut config) = (Value::Null, Value::Null);
        if let Some(folder) = subject.folder() {
            let data = folder.data().map_err(Failure::usage)?;
            manifest = json!(folder.manifest(&data).map_err(Failure::usage)?);
            config = data.config;
        }
        let title = format!(
            "{} (version {}, {})",
            path.display(),
            said(&description["version"]),
            short(&inspection.digest)
        );
        let mut version = json!({
            "manifest": manifest,
            "config": config,
            "imports": inspection.imports,
            "component_bytes": inspection.component_bytes,
            "digest": inspection.digest,
        });
        version["description"] = description;
        Ok(Side { title, facts: facts(&version) })
    }

    fn on_server(named: &str, admin: &Admin) -> Result<Side, Failure> {
        let (name, wanted) = named.split_once('@').unwrap_or((named, "active"));
        let answer = admin.get(&policy_path(name, "/versions")?)?;
        let versions = answer["versions"].as_array().map(Vec::as_slice).unwrap_or_default();
        let version = choose(name, wanted, versions)?;
        let title = format!(
            "{name}@{} ({}, {})",
            said(&version["version"]),
            said(&version["state"]),
            short(version["digest"].as_str().unwrap_or("-")),
        );
        Ok(Side { title, facts: facts(version) })
    }
}

/// By its state, its version, or the beginning of its digest.
fn choose<'a>(name: &str, wanted: &str, versions: &'a [Value]) -> Result<&'a Value, Failure> {
    let is = |field: &'static str, value: &str| {
        let value = value.to_owned();
        versions.iter().filter(move |version| version[field] == value.as_str()).collect::<Vec<_>>()
    };
    let states: &[&str] = if wanted == "candidate" { &["shadow", "canary"] } else { &[wanted] };
    let mut found: Vec<&Value> = states.iter().flat_map(|state| is("state", state)).collect();
    if found.is_empty() {
        found = is("version", wanted);
    }
    if found.is_empty() && wanted.len() >= 4 {
        let starts =
            |version: &&Value| version["digest"].as_str().is_some_and(|digest| digest.starts_with(wanted));
        found = versions.iter().filter(starts).collect();
    }
    let there = || {
        let each = versions.iter().map(|version| {
            let digest = short(version["digest"].as_str().unwrap_or("-"));
            format!("{} ({}, {digest})", said(&version["version"]), said(&version["state"]))
        });
        each.collect::<Vec<_>>().join(", ")
    };
    match found.as_slice() {
        [one] => Ok(one),
        [] => Err(Failure::failed(format!("{name} has no version {wanted}; there are: {}", there()))),
        _ => Err(Failure::failed(format!(
            "several versions of {name} are {wanted}; name one by the beginning of its digest: {}",
            there()
        ))),
    }
}

fn facts(version: &Value) -> Value {
    let mut description = version["description"].clone();
    let schema = description.as_object_mut().and_then(|fields| fields.remove("config-schema"));
    // The server gives the schema as the policy does: as text.
    let schema = match schema {
        Some(Value::String(text)) => serde_json::from_str(&text).unwrap_or(Value::String(text)),
        other => other.unwrap_or_default(),
    };
    json!({
        "manifest": version["manifest"],
        "configuration": version["config"],
        "schema": schema,
        "description": description,
        "imports": version["imports"],
        "component size": version["component_bytes"],
        "component digest": version["digest"],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_found_by_state_number_or_digest() {
        let versions = [
            json!({ "version": "1.1.0", "state": "active", "digest": "abcd1111" }),
            json!({ "version": "1.2.0", "state": "canary", "digest": "abcd2222" }),
            json!({ "version": "1.0.0", "state": "earlier", "digest": "ef003333" }),
            json!({ "version": "1.0.0", "state": "earlier", "digest": "ef004444" }),
        ];
        let digest = |wanted: &str| choose("p", wanted, &versions).map(|version| said(&version["digest"]));
        let message = |wanted: &str| digest(wanted).expect_err("none or several").into_message();
        assert_eq!(digest("active").ok().as_deref(), Some("abcd1111"));
        assert_eq!(digest("candidate").ok().as_deref(), Some("abcd2222"));
        assert_eq!(digest("1.2.0").ok().as_deref(), Some("abcd2222"));
        assert_eq!(digest("ef003").ok().as_deref(), Some("ef003333"));
        assert!(message("1.0.0").contains("several"));
        assert!(message("shadow").contains("1.1.0 (active, abcd1111)"));
        assert!(message("ab").contains("no version ab"), "too short to be a digest");
    }

    #[test]
    fn a_schema_given_as_text_is_compared_as_json() {
        let text =
            facts(&json!({ "description": { "name": "p", "config-schema": "{\"type\": \"object\"}" } }));
        let parsed = facts(&json!({ "description": { "name": "p", "config-schema": { "type": "object" } } }));
        assert_eq!(text, parsed);
        assert_eq!(text["description"], json!({ "name": "p" }));
    }
}
