//! Instances made ahead, for policies that are configured in each call: a turn does not wait for that. Each serves one call, as
//! one that was made in the call would, and is no other than that one.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicBool, AtomicUsize, Ordering},
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    thread,
};

use wasmtime::{
    Store,
    component::{Instance, InstancePre},
};

use super::{LogBudget, Runtime, export::Lifecycle, state::CallState};
use crate::{Manifest, Refusal, background};

/// Spare instances at a time, of all policies: each has a place in the pool, and what memory it was configured with.
pub(super) const MOST: u32 = 8;

/// Where spare instances are ordered.
pub(super) struct Spares {
    orders: SyncSender<Weak<Shelf>>,
    /// How many there are.
    held: Arc<AtomicUsize>,
}

/// Where a policy's spare instance lies, and what it is made from.
pub(super) struct Shelf {
    pub(super) pre: InstancePre<CallState>,
    pub(super) life: Lifecycle,
    pub(super) config: Arc<str>,
    pub(super) name: Arc<str>,
    pub(super) manifest: Manifest,
    pub(super) log_budget: Arc<LogBudget>,
    spare: Mutex<Option<Spare>>,
    is_ordered: AtomicBool,
}

/// A configured instance that nobody has called.
pub(super) struct Spare {
    pub(super) store: Store<CallState>,
    pub(super) instance: Instance,
    _held: Held,
}

/// Counts a spare for as long as there is one.
struct Held(Arc<AtomicUsize>);

impl Drop for Held {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Shelf {
    pub(super) fn new(
        pre: &InstancePre<CallState>,
        manifest: &Manifest,
        name: &Arc<str>,
        config: &Arc<str>,
        log_budget: &Arc<LogBudget>,
    ) -> Result<Arc<Shelf>, Refusal> {
        Ok(Arc::new(Shelf {
            pre: pre.clone(),
            life: Lifecycle::find(pre.component())?,
            config: config.clone(),
            name: name.clone(),
            manifest: manifest.clone(),
            log_budget: log_budget.clone(),
            spare: Mutex::default(),
            is_ordered: AtomicBool::new(false),
        }))
    }

    /// What lies there.
    pub(super) fn take(&self) -> Option<Spare> {
        self.spare().take()
    }

    fn spare(&self) -> MutexGuard<'_, Option<Spare>> {
        self.spare.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Spares {
    /// The thread that makes them is started by [`start`].
    pub(super) fn new() -> (Spares, Receiver<Weak<Shelf>>) {
        let (orders, ordered) = sync_channel(2 * MOST as usize);
        (Spares { orders, held: Arc::default() }, ordered)
    }

    /// Orders a spare; passed over where one is on its way, or there is too much to do.
    pub(super) fn order(&self, shelf: &Arc<Shelf>) {
        if !shelf.is_ordered.swap(true, Ordering::AcqRel)
            && self.orders.try_send(Arc::downgrade(shelf)).is_err()
        {
            shelf.is_ordered.store(false, Ordering::Release);
        }
    }

    fn place(&self) -> Option<Held> {
        let one_more = |held| (held < MOST as usize).then_some(held + 1);
        self.held.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more).ok()?;
        Some(Held(self.held.clone()))
    }
}

/// Starts the thread; it ends with the runtime. Without it each call makes its own instance.
pub(super) fn start(runtime: Weak<Runtime>, orders: Receiver<Weak<Shelf>>) {
    let work = move || {
        background::step_aside();
        for shelf in orders {
            let (Some(runtime), Some(shelf)) = (runtime.upgrade(), shelf.upgrade()) else { continue };
            shelf.is_ordered.store(false, Ordering::Release);
            fill(&runtime, &shelf);
        }
    };
    if let Err(error) = thread::Builder::new().name("policy-spares".into()).spawn(work) {
        tracing::warn!(%error, "no thread to make instances ahead: calls make their own");
    }
}

fn fill(runtime: &Runtime, shelf: &Shelf) {
    if shelf.spare().is_some() {
        return;
    }
    let Some(held) = runtime.spares.place() else { return };
    // What goes wrong here goes wrong in the next call too, and is told there.
    if let Ok((store, instance)) = runtime.configured(shelf, shelf.manifest.limits.deadline_ms) {
        *shelf.spare() = Some(Spare { store, instance, _held: held });
    }
}
