//! Freezing: the memory of a configured instance becomes part of the component.

use std::{
    future::{Future, ready},
    panic::{AssertUnwindSafe, catch_unwind},
    pin::pin,
    task::{Context, Poll, Waker},
};

use wasmtime::{
    Store,
    component::{ComponentNamedList, Instance, Lift, WasmList},
};
use wasmtime_wizer::{ComponentContext, ComponentInstanceState, Wizer};

use super::state::CallState;

/// A component that was made readable from outside.
pub(super) struct Readable<'a> {
    wizer: Wizer,
    context: ComponentContext<'a>,
    /// The component to run: the one given, with accessors for its state.
    pub(super) component: Vec<u8>,
}

/// Why a component is not frozen, for the operator.
pub(super) type Why = String;

/// Make a component readable, if it can be.
pub(super) fn readable(component: &[u8]) -> Result<Readable<'_>, Why> {
    let wizer = Wizer::new();
    // The rewriting of code we did not write has corners that are not implemented, and says so by a panic.
    let made = catch_unwind(AssertUnwindSafe(|| wizer.instrument_component(component)));
    let (context, component) = made
        .map_err(|_| "the component uses something that cannot be frozen yet".to_owned())?
        .map_err(|error| error.root_cause().to_string())?;
    Ok(Readable { wizer, context, component })
}

impl Readable<'_> {
    /// The component with the state of this instance of it.
    pub(super) fn freeze(&self, store: &mut Store<CallState>, instance: Instance) -> Result<Vec<u8>, Why> {
        // A memory is read whole, as one list.
        store.set_hostcall_fuel(usize::MAX);
        let mut reader = Reader { store, instance, failed: None };
        let frozen = catch_unwind(AssertUnwindSafe(|| {
            at_once(self.wizer.snapshot_component(&self.context, &mut reader))
        }));
        if let Some(error) = reader.failed {
            return Err(error.root_cause().to_string());
        }
        match frozen {
            Ok(Some(Ok(frozen))) => Ok(frozen),
            Ok(Some(Err(error))) => Err(error.root_cause().to_string()),
            Ok(None) => Err("reading its state did not end".into()),
            Err(_) => Err("the component uses something that cannot be frozen yet".into()),
        }
    }
}

/// Reads the state of an instance through its accessors.
struct Reader<'a> {
    store: &'a mut Store<CallState>,
    instance: Instance,
    /// The first failure. What is read after it is of no use, and not used.
    failed: Option<wasmtime::Error>,
}

impl Reader<'_> {
    fn call<R>(&mut self, instance: &str, func: &str) -> wasmtime::Result<R>
    where
        R: Lift + 'static,
        (R,): ComponentNamedList,
    {
        let missing = || wasmtime::Error::msg(format!("no accessor {instance}#{func}"));
        let store = &mut *self.store;
        let access = self.instance.get_export_index(&mut *store, None, instance).ok_or_else(missing)?;
        let func = self.instance.get_export_index(&mut *store, Some(&access), func).ok_or_else(missing)?;
        let func = self.instance.get_typed_func::<(), (R,)>(&mut *store, &func)?;
        Ok(func.call(store, ())?.0)
    }

    fn number<R>(&mut self, instance: &str, func: &str) -> R
    where
        R: Lift + Default + 'static,
        (R,): ComponentNamedList,
    {
        match self.call(instance, func) {
            Ok(number) => number,
            Err(error) => {
                self.failed.get_or_insert(error);
                R::default()
            }
        }
    }
}

impl ComponentInstanceState for Reader<'_> {
    fn call_func_ret_list_u8(
        &mut self,
        instance: &str,
        func: &str,
        contents: impl FnOnce(&[u8]) + Send,
    ) -> impl Future<Output = ()> + Send {
        match self.call::<WasmList<u8>>(instance, func) {
            Ok(list) => contents(list.as_le_slice(&*self.store)),
            Err(error) => {
                self.failed.get_or_insert(error);
                contents(&[]);
            }
        }
        ready(())
    }

    fn call_func_ret_s32(&mut self, instance: &str, func: &str) -> impl Future<Output = i32> + Send {
        ready(self.number(instance, func))
    }

    fn call_func_ret_s64(&mut self, instance: &str, func: &str) -> impl Future<Output = i64> + Send {
        ready(self.number(instance, func))
    }

    fn call_func_ret_f32(&mut self, instance: &str, func: &str) -> impl Future<Output = u32> + Send {
        ready(self.number::<f32>(instance, func).to_bits())
    }

    fn call_func_ret_f64(&mut self, instance: &str, func: &str) -> impl Future<Output = u64> + Send {
        ready(self.number::<f64>(instance, func).to_bits())
    }
}

/// The outcome of a future that never waits.
fn at_once<T>(future: impl Future<Output = T>) -> Option<T> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => Some(value),
        Poll::Pending => None,
    }
}
