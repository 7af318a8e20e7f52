//! Functions that a component exports, found by their interface: so that components built against each version of the
//! contract that is served are called in the same way.

use wasmtime::{
    Result, Store,
    component::{Component, ComponentExportIndex, ComponentNamedList, Instance, Lift, Lower},
};

use super::{contract, state::CallState};
use crate::{Refusal, bindings::shared::jackfield::policy::types::Description};

/// A function of a component.
pub(crate) struct Export(ComponentExportIndex);

impl Export {
    /// The function of an interface of the contract, whichever version of it the component has.
    pub(crate) fn find(component: &Component, interface: &str, function: &str) -> Result<Export, Refusal> {
        let missing = || Refusal::Types { message: format!("`{interface}` exports no `{function}`") };
        let exports = component.component_type();
        let of_interface =
            |name: &&str| contract::of_contract(name).is_some_and(|(found, _)| found == interface);
        let name = exports.exports(component.engine()).map(|(name, _)| name).find(of_interface);
        let instance = component.get_export_index(None, name.ok_or_else(missing)?).ok_or_else(missing)?;
        component.get_export_index(Some(&instance), function).map(Export).ok_or_else(missing)
    }

    /// Calls it in an instance of its component.
    pub(crate) fn call<P, R>(&self, store: &mut Store<CallState>, instance: &Instance, params: P) -> Result<R>
    where
        P: ComponentNamedList + Lower,
        R: Lift + wasmtime::component::ComponentType + 'static,
    {
        let function = instance.get_typed_func::<P, (R,)>(&mut *store, &self.0)?;
        function.call(store, params).map(|(answer,)| answer)
    }

    /// Whether it has these types.
    pub(crate) fn check<P, R>(&self, store: &mut Store<CallState>, instance: &Instance) -> Result<()>
    where
        P: ComponentNamedList + Lower,
        R: Lift + wasmtime::component::ComponentType + 'static,
    {
        instance.get_typed_func::<P, (R,)>(store, &self.0).map(drop)
    }
}

/// What every policy exports.
pub(crate) struct Lifecycle {
    describe: Export,
    configure: Export,
}

impl Lifecycle {
    pub(super) fn find(component: &Component) -> Result<Lifecycle, Refusal> {
        let find = |function| Export::find(component, "lifecycle", function);
        Ok(Lifecycle { describe: find("describe")?, configure: find("configure")? })
    }

    /// Whether both have the contract's types.
    pub(super) fn check(&self, store: &mut Store<CallState>, instance: &Instance) -> Result<()> {
        self.describe.check::<(), Description>(store, instance)?;
        self.configure.check::<(&str,), Result<(), String>>(store, instance)
    }

    pub(super) fn describe(&self, store: &mut Store<CallState>, instance: &Instance) -> Result<Description> {
        self.describe.call(store, instance, ())
    }

    pub(super) fn configure(
        &self,
        store: &mut Store<CallState>,
        instance: &Instance,
        config: &str,
    ) -> Result<Result<(), String>> {
        self.configure.call(store, instance, (config,))
    }
}
