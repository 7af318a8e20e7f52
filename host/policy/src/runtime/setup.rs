//! From bytes to a component that is ready to be called: compile, check, describe, configure, freeze.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    time::Duration,
};

use cpu_time::ThreadTime;
use serde_json::Value;
use wasmtime::{
    Store,
    component::{Component, Instance, InstancePre},
};

use super::{
    Gate, LogBudget, Phase, Ready, Runtime, Shelf, Strategy,
    cache::{Head, Sources},
    contract,
    deadline::FIRST_LOOK,
    export::Lifecycle,
    expose,
    freeze::{self, Readable, Why},
    link, make,
    state::CallState,
};
use crate::{Description, Fault, Manifest, Refusal, convert, schema};

/// Freezing compiles a component twice: of a larger one, that takes seconds. It is frozen only when configuring it takes long.
const QUICKLY_FROZEN_BYTES: usize = 8 << 20;
/// Long enough to be worth those seconds, since it would be spent in each call.
const SLOW_CONFIGURE: Duration = Duration::from_millis(5);

/// For so long what is compiled has only what those who serve leave over, which may be next to nothing. Then it is no longer
/// [counted](super::RuntimeConfig::compiles_behind), or it would never end on a host that is always busy.
const COMPILES_ASIDE: Duration = Duration::from_secs(20);

/// What is set up.
#[derive(Clone, Copy)]
pub(crate) struct Upload<'a> {
    pub(crate) manifest: &'a Manifest,
    pub(crate) component: &'a [u8],
    pub(crate) config: &'a Value,
}

impl Runtime {
    /// Make a component ready, or say why not.
    pub(crate) fn set_up(&self, upload: Upload<'_>) -> Result<(Ready, Description), Refusal> {
        self.sniff(upload.component)?;
        let name: Arc<str> = upload.manifest.name.as_str().into();
        let setup =
            Setup { runtime: self, upload, name: name.clone(), config: upload.config.to_string().into() };
        self.tick().map_err(refuse("configure"))?;
        let (pre, strategy, description) = match setup.kept()? {
            Some(kept) => kept,
            None => setup.anew()?,
        };
        let limits = upload.manifest.limits;
        let log_budget = Arc::new(LogBudget::new(limits.log_lines_per_s));
        let shelf = match strategy {
            Strategy::Frozen => None,
            Strategy::PerCall { .. } => {
                Some(Shelf::new(&pre, upload.manifest, &name, &setup.config, &log_budget)?)
            }
        };
        let ready = Ready {
            pre,
            strategy,
            name,
            shelf,
            log_budget,
            gate: Gate::new(limits.instances as usize),
            peak_memory: Default::default(),
        };
        Ok((ready, description))
    }

    /// Tell what is plainly not a component before the compiler sees it.
    pub(super) fn sniff(&self, bytes: &[u8]) -> Result<(), Refusal> {
        let max = self.config.max_component_bytes;
        if bytes.len() > max {
            let bytes = bytes.len();
            return Err(Refusal::TooLarge { bytes, max });
        }
        let what = match (bytes.get(..4), bytes.get(4..8)) {
            (None, _) => format!("{} bytes", bytes.len()),
            (Some(b"\0asm"), Some([0x0d, 0, 1, 0])) => return Ok(()),
            (Some(b"\0asm"), Some([1, 0, 0, 0])) => {
                "a core module; make a component of it (`wasm-tools component new`, or the target's component linker)"
                    .into()
            }
            (Some(b"\0asm"), _) => "WebAssembly of a version this host does not know".into(),
            (Some(_), _) => "something that is not WebAssembly".into(),
        };
        Err(Refusal::NotAComponent { what })
    }

    pub(super) fn compile(&self, bytes: &[u8]) -> Result<Component, Refusal> {
        let counted = self.config.compiles_behind.as_deref().map(Counted::new);
        let (sender, compiled) = mpsc::sync_channel(1);
        // On threads of their own: what a thread begins here, wasmtime shares among the others of the same pool.
        let component = self.compilers.in_place_scope(|scope| {
            // Who waits does so until there is an answer.
            scope.spawn(|_| drop(sender.send(Component::new(&self.engine, bytes))));
            compiled.recv_timeout(COMPILES_ASIDE).or_else(|_| {
                drop(counted);
                compiled.recv()
            })
        });
        let failed = |message| Refusal::Compile { message };
        let component = component.map_err(|_| failed("the compiler gave up".into()))?;
        component.map_err(|error| failed(format!("{error:#}")))
    }
}

/// One more, until it is dropped.
struct Counted<'a>(&'a AtomicUsize);

impl<'a> Counted<'a> {
    fn new(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Counted(count)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

struct Setup<'a> {
    runtime: &'a Runtime,
    upload: Upload<'a>,
    name: Arc<str>,
    config: Arc<str>,
}

/// An instance with its configuration, and the processor's time for that.
struct Configured {
    store: Store<CallState>,
    instance: Instance,
    took: Duration,
}

type Outcome = (InstancePre<CallState>, Strategy, Description);

impl Setup<'_> {
    /// The frozen way, unless it takes longer than it is worth.
    fn run(&self) -> Result<Outcome, Refusal> {
        let exposed = match expose::exposed(self.upload.component) {
            Ok(exposed) => exposed,
            Err(error) => return self.run_unfrozen(self.upload.component, format!("{error:#}"), None),
        };
        if exposed.len() <= QUICKLY_FROZEN_BYTES {
            return self.run_frozen_if_possible(&exposed);
        }
        let (pre, description, took) = match self.set_up_bare(&exposed, None) {
            Err(Refusal::Compile { message }) => {
                return self.run_unfrozen(self.upload.component, message, None);
            }
            bare => bare?,
        };
        if took > SLOW_CONFIGURE {
            return self.run_frozen_if_possible(&exposed);
        }
        let mib = self.upload.component.len() >> 20;
        let why =
            format!("it is configured in {} µs, and has {mib} MiB to be compiled again", took.as_micros());
        Ok((pre, Strategy::PerCall { why }, description))
    }

    /// The frozen way; the other where that fails for reasons of the component's build, not of its behaviour.
    fn run_frozen_if_possible(&self, exposed: &[u8]) -> Result<Outcome, Refusal> {
        let readable = match freeze::readable(exposed) {
            Ok(readable) => readable,
            Err(why) => return self.run_unfrozen(exposed, why, None),
        };
        match self.runtime.compile(&readable.component) {
            Ok(component) => self.run_frozen(exposed, &readable, &component),
            Err(refusal) => self.run_unfrozen(self.upload.component, refusal.to_string(), None),
        }
    }

    /// What was made of the same bytes and configuration before.
    fn kept(&self) -> Result<Option<Outcome>, Refusal> {
        let found =
            self.runtime.code.as_ref().and_then(|code| code.read(&self.runtime.engine, self.sources()));
        let Some((Head { strategy, description }, component)) = found else { return Ok(None) };
        Ok(Some((self.link(&component)?, strategy, description)))
    }

    /// Makes it, and keeps it.
    fn anew(&self) -> Result<Outcome, Refusal> {
        let (pre, strategy, description) = self.run()?;
        if let Some(code) = &self.runtime.code {
            let head = Head { strategy: strategy.clone(), description: description.clone() };
            code.write(self.sources(), &head, pre.component());
        }
        Ok((pre, strategy, description))
    }

    fn sources(&self) -> Sources<'_> {
        let Upload { manifest, component, .. } = self.upload;
        Sources { component, config: &self.config, kind: manifest.kind }
    }

    fn run_frozen(
        &self,
        exposed: &[u8],
        readable: &Readable<'_>,
        component: &Component,
    ) -> Result<Outcome, Refusal> {
        let pre = self.link(component)?;
        let description = self.describe(&pre)?;
        let Configured { mut store, instance, .. } = self.configured(&pre)?;
        store.data_mut().restart(self.runtime.config.setup_deadline_ms);
        store.set_epoch_deadline(FIRST_LOOK);
        let frozen = readable.freeze(&mut store, instance);
        drop(store);
        match frozen.and_then(|frozen| self.runtime.compile(&frozen).map_err(|r| r.to_string())) {
            Ok(frozen) => Ok((self.link(&frozen)?, Strategy::Frozen, description)),
            Err(why) => self.run_unfrozen(exposed, why, Some(description)),
        }
    }

    /// Of bytes that are the component's own where the component itself may be at fault: so that the refusal is in its own terms.
    fn run_unfrozen(&self, bytes: &[u8], why: Why, known: Option<Description>) -> Result<Outcome, Refusal> {
        let (pre, description, _) = self.set_up_bare(bytes, known)?;
        Ok((pre, Strategy::PerCall { why }, description))
    }

    /// The component as it is, and what it took to configure it, if that was not tried before.
    fn set_up_bare(
        &self,
        bytes: &[u8],
        known: Option<Description>,
    ) -> Result<(InstancePre<CallState>, Description, Duration), Refusal> {
        let component = self.runtime.compile(bytes)?;
        let pre = self.link(&component)?;
        if let Some(description) = known {
            return Ok((pre, description, Duration::ZERO));
        }
        let description = self.describe(&pre)?;
        let took = self.configured(&pre)?.took;
        Ok((pre, description, took))
    }

    fn link(&self, component: &Component) -> Result<InstancePre<CallState>, Refusal> {
        let engine = &self.runtime.engine;
        contract::check(engine, component, self.upload.manifest.kind)?;
        link::linker(component, self.upload.manifest)
            .and_then(|linker| linker.instantiate_pre(component))
            .map_err(types)
    }

    fn store(&self) -> Store<CallState> {
        let deadline_ms = self.runtime.config.setup_deadline_ms;
        self.runtime.store(
            self.upload.manifest,
            &self.name,
            Phase::Setup,
            deadline_ms,
            self.runtime.imports(),
        )
    }

    /// Ask a bare instance what it is, and hold the configuration to what it says.
    fn describe(&self, pre: &InstancePre<CallState>) -> Result<Description, Refusal> {
        let mut store = self.store();
        let instance = make(&mut store, pre).map_err(refuse("instantiate"))?;
        let life = Lifecycle::find(pre.component())?;
        life.check(&mut store, &instance).map_err(types)?;
        let described = life
            .describe(&mut store, &instance)
            .map_err(|error| refuse("describe")(store.data().fault(&error, false)))?;
        let description = convert::from_description(described);
        check_description(&description)?;
        schema::check(&description.config_schema, self.upload.config)?;
        Ok(description)
    }

    /// A configured instance.
    fn configured(&self, pre: &InstancePre<CallState>) -> Result<Configured, Refusal> {
        let mut store = self.store();
        let instance = make(&mut store, pre).map_err(refuse("instantiate"))?;
        let processor = ThreadTime::now();
        let configured = Lifecycle::find(pre.component())?.configure(&mut store, &instance, &self.config);
        let took = processor.elapsed();
        match configured {
            Ok(Ok(())) => Ok(Configured { store, instance, took }),
            Ok(Err(message)) => Err(Refusal::Configure { message }),
            Err(error) => Err(refuse("configure")(store.data().fault(&error, false))),
        }
    }
}

fn check_description(description: &Description) -> Result<(), Refusal> {
    let version = &description.version;
    if version.is_empty() || version.len() > 64 || version.chars().any(char::is_control) {
        return Err(Refusal::Description {
            what: format!("the version {version:?}, which is not 1 to 64 printable bytes"),
        });
    }
    Ok(())
}

fn refuse(call: &'static str) -> impl Fn(Fault) -> Refusal {
    move |fault| Refusal::Setup { call, fault }
}

pub(super) fn types(error: wasmtime::Error) -> Refusal {
    Refusal::Types { message: format!("{error:#}") }
}
