//! `jackfield policy inspect`: what a component is, without a manifest.

use std::path::Path;

use indicatif::BinaryBytes;
use jackfield_policy::{Description, Inspection, Kind, Refusal, Strategy, inspect};
use serde_json::{Value, json};

use super::files;
use super::subject::Subject;
use crate::Failure;
use crate::dirs::Dirs;

pub(super) fn run(path: &Path, config: Option<&Path>, as_json: bool, dirs: &Dirs) -> Result<(), Failure> {
    let subject = Subject::at(path)?;
    let config = match (config, subject.folder()) {
        (Some(file), _) => files::config(file)?,
        (None, Some(folder)) => folder.data().map_err(Failure::usage)?.config,
        (None, None) => json!({}),
    };
    let runtime = super::runtime()?;
    let component = subject.component(&super::builder(dirs)).map_err(Failure::failed)?;
    let named = |refusal: Refusal| Failure::failed(format!("{}: {refusal}", path.display()));
    let inspection = inspect(&runtime, &component).map_err(named)?;
    let strategy = inspection.strategy(&runtime, &component, &config);
    if as_json {
        println!("{:#}", as_value(&inspection, &strategy));
    } else {
        print!("{}", shown(&inspection, &strategy));
    }
    Ok(())
}

fn shown(inspection: &Inspection, strategy: &Result<Strategy, Refusal>) -> String {
    let mut lines = vec![
        ("kind", inspection.kind.map_or_else(|| "none: it is not a policy".into(), |kind| kind.to_string())),
        ("contract", versions(inspection)),
        (
            "size",
            format!(
                "{} ({} bytes)",
                BinaryBytes(inspection.component_bytes as u64),
                inspection.component_bytes
            ),
        ),
        ("digest", inspection.digest.clone()),
    ];
    match &inspection.description {
        Ok(description) => lines.extend(described(description)),
        Err(refusal) => lines.push(("describes itself", format!("no: {refusal}"))),
    }
    lines.push(("instances", instances(strategy)));
    lines.push(("imports", listed(&inspection.imports)));
    lines.push(("exports", listed(&inspection.exports)));
    let mut shown: String = lines.iter().map(|(name, value)| format!("{name:<18}{value}\n")).collect();
    if let Ok(description) = &inspection.description {
        shown += &format!("configuration schema\n{}\n", pretty(&description.config_schema));
    }
    shown
}

fn described(description: &Description) -> Vec<(&'static str, String)> {
    let schemas = match description.dialog_schema {
        0 => "none".into(),
        written => {
            let read = description.reads_dialog_schemas.iter().map(u32::to_string).collect::<Vec<_>>();
            let also =
                if read.is_empty() { String::new() } else { format!(", reads {} too", read.join(", ")) };
            format!("writes {written}{also}")
        }
    };
    let mut lines = vec![
        ("name", description.name.clone()),
        ("version", description.version.clone()),
        ("dialog schema", schemas),
    ];
    let attributes = description.attributes.iter();
    lines.extend(attributes.map(|field| ("attribute", format!("{} = {}", field.name, field.value))));
    lines
}

fn versions(inspection: &Inspection) -> String {
    match inspection.contract_versions.as_slice() {
        [] => "none".into(),
        versions => format!("jackfield:policy {}", versions.join(", ")),
    }
}

fn instances(strategy: &Result<Strategy, Refusal>) -> String {
    match strategy {
        Ok(Strategy::Frozen) => "start from a frozen image of the configured policy".into(),
        Ok(Strategy::PerCall { why }) => format!("are configured in each call: it cannot be frozen: {why}"),
        Err(Refusal::Config { .. } | Refusal::Configure { .. }) => {
            "not known without a configuration that it takes; name one with --config FILE".into()
        }
        Err(refusal) => format!("none: {refusal}"),
    }
}

fn listed(names: &[String]) -> String {
    if names.is_empty() { "none".into() } else { names.join("\n                  ") }
}

fn pretty(schema: &str) -> String {
    match serde_json::from_str::<Value>(schema) {
        Ok(schema) => format!("{schema:#}"),
        Err(error) => format!("(not JSON: {error}) {schema}"),
    }
}

/// The same for programs. The schema is JSON where it is that, and text otherwise.
pub(super) fn as_value(inspection: &Inspection, strategy: &Result<Strategy, Refusal>) -> Value {
    let description = inspection.description.as_ref().map(description_value);
    json!({
        "kind": inspection.kind.map(Kind::world),
        "contract_versions": inspection.contract_versions,
        "component_bytes": inspection.component_bytes,
        "digest": inspection.digest,
        "imports": inspection.imports,
        "exports": inspection.exports,
        "description": description.as_ref().ok(),
        "description_error": description.as_ref().err().map(ToString::to_string),
        "strategy": strategy.as_ref().ok(),
        "strategy_error": strategy.as_ref().err().map(ToString::to_string),
    })
}

/// A description with its schema as JSON, where it is that.
pub(super) fn description_value(description: &Description) -> Value {
    let schema = serde_json::from_str::<Value>(&description.config_schema);
    json!({
        "name": description.name,
        "version": description.version,
        "config-schema": schema.unwrap_or_else(|_| json!(description.config_schema)),
        "dialog-schema": description.dialog_schema,
        "reads-dialog-schemas": description.reads_dialog_schemas,
        "attributes": description.attributes,
    })
}
