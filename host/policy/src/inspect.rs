//! What can be said of a component before it is deployed, and what stands in its way.

use std::{sync::Arc, time::Duration};

use serde_json::Value;

use crate::{
    Description, Grant, Kind, MAX_MEMORY_BYTES, Manifest, Policy, Refusal, Runtime, Strategy, Upload,
    policy::digest,
    runtime::{Seen, contract},
    schema,
};

/// What a component is, by its own words and by what it imports and exports.
#[derive(Clone, Debug, PartialEq)]
pub struct Inspection {
    /// BLAKE3 of the component, in hex.
    pub digest: String,
    /// Its size.
    pub component_bytes: usize,
    /// Its kind by its exports; none when it is no policy.
    pub kind: Option<Kind>,
    /// Versions of the contract that its imports and exports name, without repetition.
    pub contract_versions: Vec<String>,
    /// Full names of what it imports.
    pub imports: Vec<String>,
    /// Full names of what it exports.
    pub exports: Vec<String>,
    /// What it says of itself, or why it says nothing.
    pub description: Result<Description, Refusal>,
    /// Time of compiling it.
    pub compile: Duration,
}

/// A place of a configuration that does not fit the policy's schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigProblem {
    /// JSON pointer to the place; empty for the whole.
    pub at: String,
    /// What is wrong there.
    pub message: String,
}

/// Look into a component. Of its code only `describe` runs, with no import to call.
///
/// # Errors
/// When it is not a component, too large, or does not compile.
pub fn inspect(runtime: &Runtime, component: &[u8]) -> Result<Inspection, Refusal> {
    let Seen { imports, exports, description, compile_micros } = runtime.look(component)?;
    let mut versions: Vec<String> = imports
        .iter()
        .chain(&exports)
        .filter_map(|name| contract::of_contract(name))
        .map(|(_, version)| version.to_owned())
        .collect();
    versions.sort();
    versions.dedup();
    Ok(Inspection {
        digest: digest(component),
        component_bytes: component.len(),
        kind: kind_of(&exports),
        contract_versions: versions,
        imports,
        exports,
        description,
        compile: Duration::from_micros(compile_micros.into()),
    })
}

/// Everything in which a configuration does not fit a schema.
///
/// # Errors
/// When the schema itself is of no use.
pub fn config_problems(schema: &str, config: &Value) -> Result<Vec<ConfigProblem>, Refusal> {
    schema::problems(schema, config)
}

impl Inspection {
    /// Everything in which its imports and exports are not those of a policy of this kind.
    pub fn contract_problems(&self, kind: Kind) -> Vec<Refusal> {
        let imports = self.imports.iter().filter_map(|import| contract::check_import(import).err());
        let exports: Vec<&str> = self.exports.iter().map(String::as_str).collect();
        imports.chain(contract::check_exports(&exports, kind).err()).collect()
    }

    /// The imports that a manifest can grant, by their names there.
    pub fn wanted_grants(&self) -> Vec<Grant> {
        let imported = |grant: &Grant| {
            let of_contract = self.imports.iter().filter_map(|import| contract::of_contract(import));
            of_contract.map(|(interface, _)| interface).any(|interface| interface == grant.name())
        };
        Grant::ALL.into_iter().filter(imported).collect()
    }

    /// Whether it imports everything that the world of its kind offers: then its toolchain keeps every import, and what it
    /// imports does not tell what it calls.
    pub fn imports_its_whole_world(&self) -> bool {
        let imported = self.wanted_grants();
        self.kind.is_some_and(|kind| offered(kind).iter().all(|grant| imported.contains(grant)))
    }

    /// How an instance of it would come to this configuration: it is set up as for an activation, with every import granted
    /// and as much memory as a policy may have.
    ///
    /// # Errors
    /// Why it cannot be set up.
    pub fn strategy(
        &self,
        runtime: &Arc<Runtime>,
        component: &Arc<[u8]>,
        config: &Value,
    ) -> Result<Strategy, Refusal> {
        let mut manifest = Manifest::new("inspected", self.kind.unwrap_or(Kind::Router));
        manifest.grants = Grant::ALL.to_vec();
        manifest.limits.memory_bytes = MAX_MEMORY_BYTES;
        let upload =
            Upload { manifest, component: component.clone(), config: config.clone(), cases: Vec::new() };
        Policy::prepare(runtime, upload).map(|policy| policy.strategy().clone())
    }
}

/// The imports of a kind's world.
fn offered(kind: Kind) -> &'static [Grant] {
    match kind {
        Kind::SlotExtractor | Kind::Router => &[Grant::Log, Grant::Metrics, Grant::Tokens, Grant::Embeddings],
        Kind::Compressor => &[Grant::Log, Grant::Metrics, Grant::Tokens, Grant::Saliency],
        Kind::OutputFilter => &[Grant::Log, Grant::Metrics],
    }
}

fn kind_of(exports: &[String]) -> Option<Kind> {
    let exported = |kind: &Kind| {
        let of_contract = exports.iter().filter_map(|export| contract::of_contract(export));
        of_contract.map(|(interface, _)| interface).any(|interface| interface == kind.interface())
    };
    Kind::ALL.into_iter().find(exported)
}
