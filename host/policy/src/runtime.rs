//! Compiling, setting up and running components.

mod cache;
pub(crate) mod contract;
mod deadline;
mod engine;
mod export;
mod expose;
mod freeze;
mod gate;
mod imports;
mod link;
mod log_budget;
mod look;
mod setup;
mod spare;
mod state;
mod ticker;

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use cache::CodeCache;
pub use engine::Allocation;
pub(crate) use export::Export;
pub(crate) use gate::Gate;
use log_budget::LogBudget;
pub(crate) use look::Seen;
pub(crate) use setup::Upload as UploadParts;
use spare::{Shelf, Spares};
pub(crate) use state::{CallState, Imports, Phase};
use ticker::Ticker;
use wasmtime::{
    Engine, Store,
    component::{Instance, InstancePre},
};

use crate::{Fault, HostServices, Manifest, background};

/// Settings of a runtime.
#[derive(Clone, Debug)]
pub struct RuntimeConfig {
    /// Calls that may run at once; others wait, for at most their own deadline. 1 to 512.
    pub max_calls: u32,
    /// Deadline of `describe`, `configure` and `interests`, each, in milliseconds.
    pub setup_deadline_ms: u32,
    /// Largest component that is taken, in bytes.
    pub max_component_bytes: usize,
    /// A folder of its own where compiled code is kept over restarts; nothing is kept without.
    pub code_dir: Option<PathBuf>,
    /// For a host that serves: compiling gets only what everything else leaves of the processor, and this counts what is being
    /// compiled, for those who would offer it more.
    pub compiles_behind: Option<Arc<AtomicUsize>>,
}

impl Default for RuntimeConfig {
    fn default() -> RuntimeConfig {
        RuntimeConfig {
            max_calls: 64,
            setup_deadline_ms: 2000,
            max_component_bytes: 64 << 20,
            code_dir: None,
            compiles_behind: None,
        }
    }
}

/// Why there is no runtime.
#[derive(Debug, thiserror::Error)]
pub enum RuntimeError {
    /// The engine could not be made: the processor, or the system's limits on address space, do not allow it.
    #[error("the Wasm engine could not be made: {0}")]
    Engine(String),
    /// The system gives no threads to compile on.
    #[error("no threads to compile policies on: {0}")]
    Compilers(String),
    /// The system gives no thread for the ticker.
    #[error("no thread for the clock that ends policy calls: {0}")]
    Ticker(#[source] std::io::Error),
}

/// Compiles, sets up and runs policies. One for the process.
pub struct Runtime {
    engine: Engine,
    allocation: Allocation,
    ticker: Ticker,
    gate: Gate,
    places: usize,
    services: Arc<dyn HostServices>,
    config: RuntimeConfig,
    code: Option<CodeCache>,
    /// Threads that compile, behind those that serve.
    compilers: rayon::ThreadPool,
    spares: Spares,
}

/// How a fresh instance comes to its configuration.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Strategy {
    /// It starts from the memory of a configured one.
    Frozen,
    /// It is configured anew, in each call.
    PerCall {
        /// Why it cannot be frozen.
        why: String,
    },
}

/// A component that is ready to be called.
pub(crate) struct Ready {
    pub(crate) pre: InstancePre<CallState>,
    pub(crate) strategy: Strategy,
    pub(crate) name: Arc<str>,
    /// How instances are configured, where they have to be.
    shelf: Option<Arc<Shelf>>,
    log_budget: Arc<LogBudget>,
    /// Places for calls of this policy.
    gate: Gate,
    /// The most memory that a call's instance has had, in bytes.
    pub(crate) peak_memory: AtomicUsize,
}

impl Runtime {
    /// An engine, its clock, and room for instances.
    ///
    /// # Errors
    /// When the system allows none.
    pub fn new(config: RuntimeConfig, services: Arc<dyn HostServices>) -> Result<Arc<Runtime>, RuntimeError> {
        let max_calls = config.max_calls.clamp(1, 512);
        let (engine, allocation) =
            engine::engine(max_calls).map_err(|error| RuntimeError::Engine(format!("{error:#}")))?;
        let places = match allocation {
            Allocation::SmallPool => max_calls.min(8),
            Allocation::Pool | Allocation::OnDemand => max_calls,
        };
        let places = places as usize;
        let compiles_behind = config.compiles_behind.is_some();
        let compilers = rayon::ThreadPoolBuilder::new()
            .thread_name(|thread| format!("policy-compiler-{thread}"))
            .start_handler(move |_| {
                if compiles_behind {
                    background::step_back();
                }
            })
            .build()
            .map_err(|error| RuntimeError::Compilers(error.to_string()))?;
        let (spares, orders) = Spares::new();
        let runtime = Arc::new(Runtime {
            ticker: Ticker::start(&engine).map_err(RuntimeError::Ticker)?,
            gate: Gate::new(places),
            places,
            compilers,
            code: config.code_dir.as_deref().and_then(|dir| code_cache(dir, &engine)),
            engine,
            allocation,
            services,
            config,
            spares,
        });
        spare::start(Arc::downgrade(&runtime), orders);
        Ok(runtime)
    }

    /// How instances get their memory here.
    pub fn allocation(&self) -> Allocation {
        self.allocation
    }

    /// Whether calls end at their deadline: the clock runs. It restarts by itself with the next call.
    pub fn is_healthy(&self) -> bool {
        self.ticker.is_running()
    }

    /// How often the clock had to be started: 1, unless something ended it.
    pub fn ticker_starts(&self) -> u64 {
        self.ticker.starts()
    }

    /// Deadline of `describe`, `configure` and `interests`, each, in milliseconds.
    pub(crate) fn setup_deadline_ms(&self) -> u32 {
        self.config.setup_deadline_ms
    }

    /// Whether most places for calls are free: then there is room for what can wait.
    pub(crate) fn has_room(&self) -> bool {
        2 * self.gate.free() > self.places
    }

    /// What policies are served with unless a call brings its own.
    pub(crate) fn services(&self) -> &Arc<dyn HostServices> {
        &self.services
    }

    /// What a policy is set up with. Nobody asks what that took.
    pub(crate) fn imports(&self) -> Imports {
        Imports { services: self.services.clone(), meter: Arc::default() }
    }

    /// A store for one call, whose deadline begins now.
    fn store(
        &self,
        manifest: &Manifest,
        name: &Arc<str>,
        phase: Phase,
        deadline_ms: u32,
        imports: Imports,
    ) -> Store<CallState> {
        let state = CallState::new(imports, manifest, name.clone(), phase, deadline_ms);
        let mut store = Store::new(&self.engine, state);
        store.limiter(|state| state);
        store.epoch_deadline_callback(|mut store| Ok(store.data_mut().look()));
        store.set_epoch_deadline(deadline::FIRST_LOOK);
        store.set_hostcall_fuel(manifest.limits.output_bytes);
        store
    }

    /// Run a call in a fresh instance: make one, configure it where that is needed, call, drop.
    pub(crate) fn call<T>(
        &self,
        ready: &Ready,
        manifest: &Manifest,
        deadline_ms: u32,
        imports: Imports,
        call: impl FnOnce(&mut Store<CallState>, &Instance) -> wasmtime::Result<Result<T, String>>,
    ) -> Result<T, Fault> {
        self.tick()?;
        let patience = Duration::from_millis(deadline_ms.into());
        let limit_ms = deadline_ms;
        let _own_place = ready.gate.enter(patience).ok_or(Fault::Busy { limit_ms })?;
        let _place = self.gate.enter(patience).ok_or(Fault::Busy { limit_ms })?;
        let (mut store, instance) = match &ready.shelf {
            Some(shelf) => self.ahead(shelf, deadline_ms, imports)?,
            None => {
                let mut store = self.store(manifest, &ready.name, Phase::Work, deadline_ms, imports);
                store.data_mut().log_within(&ready.log_budget);
                let instance = make(&mut store, &ready.pre)?;
                (store, instance)
            }
        };
        let answer = call(&mut store, &instance);
        ready.peak_memory.fetch_max(store.data().memory_bytes(), Ordering::Relaxed);
        if let Some(shelf) = &ready.shelf {
            self.spares.order(shelf);
        }
        match answer {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(message)) => Err(Fault::Refused { message }),
            Err(error) => Err(store.data().fault(&error, false)),
        }
    }

    /// A configured instance for a call whose deadline begins now: the spare one, or one that is made here.
    fn ahead(
        &self,
        shelf: &Shelf,
        deadline_ms: u32,
        imports: Imports,
    ) -> Result<(Store<CallState>, Instance), Fault> {
        let spare = shelf.take();
        let started = Instant::now();
        let (mut store, instance) = match spare {
            Some(spare) => (spare.store, spare.instance),
            None => self.configured(shelf, deadline_ms)?,
        };
        store.data_mut().begin(imports, deadline_ms, started);
        store.set_epoch_deadline(deadline::FIRST_LOOK);
        store.set_hostcall_fuel(shelf.manifest.limits.output_bytes);
        Ok((store, instance))
    }

    /// A configured instance.
    fn configured(&self, shelf: &Shelf, deadline_ms: u32) -> Result<(Store<CallState>, Instance), Fault> {
        let mut store = self.store(&shelf.manifest, &shelf.name, Phase::Setup, deadline_ms, self.imports());
        store.data_mut().log_within(&shelf.log_budget);
        let instance = make(&mut store, &shelf.pre)?;
        match shelf.life.configure(&mut store, &instance, &shelf.config) {
            Ok(Ok(())) => Ok((store, instance)),
            Ok(Err(message)) => Err(Fault::Refused { message }),
            Err(error) => Err(store.data().fault(&error, false)),
        }
    }

    /// Nothing runs without the clock.
    fn tick(&self) -> Result<(), Fault> {
        self.ticker.ensure().map_err(|error| Fault::Instantiate {
            what: format!("no thread for the clock that ends policy calls: {error}"),
        })
    }
}

/// A host without it works as well, only slower.
fn code_cache(dir: &Path, engine: &Engine) -> Option<CodeCache> {
    CodeCache::open(dir, engine)
        .inspect_err(|error| tracing::warn!(dir = %dir.display(), %error, "compiled code cannot be kept"))
        .ok()
}

/// A fresh instance. Its start functions run under the store's limits.
fn make(store: &mut Store<CallState>, pre: &InstancePre<CallState>) -> Result<Instance, Fault> {
    let made = pre.instantiate(&mut *store);
    made.map_err(|error| store.data().fault(&error, true))
}

/// Microseconds since an instant, for the trace.
pub(crate) fn micros_since(start: Instant) -> u32 {
    u32::try_from(start.elapsed().as_micros()).unwrap_or(u32::MAX)
}
