//! Looking into a component without a manifest: what it imports and exports, and what it says of itself.

use std::{sync::Arc, time::Instant};

use wasmtime::component::{Component, Linker};

use super::{Phase, Runtime, export::Lifecycle, make, setup::types};
use crate::{Description, Kind, MAX_MEMORY_BYTES, Manifest, Refusal, convert};

/// What is seen of a component.
pub(crate) struct Seen {
    /// Full names of its imports.
    pub(crate) imports: Vec<String>,
    /// Full names of its exports.
    pub(crate) exports: Vec<String>,
    /// What `describe` answers, with every import taken away.
    pub(crate) description: Result<Description, Refusal>,
    /// Time of compiling it, in microseconds.
    pub(crate) compile_micros: u32,
}

impl Runtime {
    /// Compile a component and ask it what it is. Nothing of the contract is demanded of it.
    pub(crate) fn look(&self, bytes: &[u8]) -> Result<Seen, Refusal> {
        self.sniff(bytes)?;
        let start = Instant::now();
        let component = self.compile(bytes)?;
        let compile_micros = super::micros_since(start);
        let ty = component.component_type();
        Ok(Seen {
            imports: ty.imports(&self.engine).map(|(name, _)| name.to_owned()).collect(),
            exports: ty.exports(&self.engine).map(|(name, _)| name.to_owned()).collect(),
            description: self.ask(&component),
            compile_micros,
        })
    }

    /// What `describe` answers: it needs no import, so that those which this host does not have do not stand in its way.
    fn ask(&self, component: &Component) -> Result<Description, Refusal> {
        let setup = |fault| Refusal::Setup { call: "describe", fault };
        self.tick().map_err(setup)?;
        let mut linker = Linker::new(&self.engine);
        linker.define_unknown_imports_as_traps(component).map_err(types)?;
        let pre = linker.instantiate_pre(component).map_err(types)?;
        let life = Lifecycle::find(component)?;
        // The kind bounds nothing here.
        let mut manifest = Manifest::new("inspected", Kind::Router);
        manifest.limits.memory_bytes = MAX_MEMORY_BYTES;
        let name: Arc<str> = manifest.name.as_str().into();
        let mut store =
            self.store(&manifest, &name, Phase::Setup, self.config.setup_deadline_ms, self.imports());
        let instance =
            make(&mut store, &pre).map_err(|fault| Refusal::Setup { call: "instantiate", fault })?;
        let described = life.describe(&mut store, &instance);
        let described = described.map_err(|error| setup(store.data().fault(&error, false)))?;
        Ok(convert::from_description(described))
    }
}
