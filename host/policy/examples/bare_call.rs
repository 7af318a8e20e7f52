//! What the host adds to a call that does nothing: `cargo run --release -p jackfield-policy --example bare_call`.
//!
//! The same component and the same arguments, in turns: through this crate, with its limits, checks and counts, and bare through
//! wasmtime, a fresh instance from its own pool included. Prints microseconds at P50 and P99, and their ratio.

use std::{error::Error, sync::Arc, time::Instant};

use jackfield_guests::{Guest, World};
use jackfield_policy::{
    Kind, Manifest, NoServices, Policy, RouteRequest, Runtime, RuntimeConfig, Target, Turn, Upload,
};
use wasmtime::{
    Config, Engine, InstanceAllocationStrategy, PoolingAllocationConfig, Store,
    component::{Component, Linker},
};

mod bindings {
    wasmtime::component::bindgen!({
        path: "../../wit",
        inline: "
            package jackfield:bare;
            world bare { export jackfield:policy/routing@0.2.0; }
        ",
    });
}

use bindings::{
    BarePre,
    exports::jackfield::policy::routing::{Request, Target as BareTarget},
    jackfield::policy::types::{Instant as BareInstant, Turn as BareTurn},
};

const ROUNDS: usize = 20;
const CALLS: usize = 2000;
const TEXT: &str = "Where is my order AB-123456? Please have a look for me, thank you!";

fn main() -> Result<(), Box<dyn Error>> {
    let component = Guest::new(World::Router).build();
    let (ours, bare) = (Ours::new(&component)?, Bare::new(&component)?);
    let (mut through_host, mut through_wasmtime) = (Vec::new(), Vec::new());
    for round in 0..=ROUNDS {
        let timed = (time(|| ours.call())?, time(|| bare.call())?);
        // The first round warms up.
        if round > 0 {
            through_host.extend(timed.0);
            through_wasmtime.extend(timed.1);
        }
    }
    println!("{:<26} {:>9} {:>9}", "a router that does nothing", "P50 µs", "P99 µs");
    let shown = [("through the host", &mut through_host), ("wasmtime alone", &mut through_wasmtime)];
    let [host, alone] = shown.map(|(name, micros)| {
        micros.sort_by(f64::total_cmp);
        let at = |share: f64| micros[((micros.len() - 1) as f64 * share) as usize];
        println!("{name:<26} {:>9.2} {:>9.2}", at(0.5), at(0.99));
        (at(0.5), at(0.99))
    });
    println!("{:<26} {:>9.2} {:>9.2}", "ratio", host.0 / alone.0, host.1 / alone.1);
    Ok(())
}

fn time(call: impl Fn() -> Result<(), Box<dyn Error>>) -> Result<Vec<f64>, Box<dyn Error>> {
    let timed = |_| {
        let start = Instant::now();
        call()?;
        Ok(start.elapsed().as_nanos() as f64 / 1000.0)
    };
    (0..CALLS).map(timed).collect()
}

/// The call as the host makes it.
struct Ours {
    policy: Policy,
    turn: Turn,
    request: RouteRequest,
    fleet: [Target; 1],
}

impl Ours {
    fn new(component: &[u8]) -> Result<Ours, Box<dyn Error>> {
        let runtime = Runtime::new(RuntimeConfig::default(), Arc::new(NoServices))?;
        let upload = Upload {
            manifest: Manifest::new("nothing", Kind::Router),
            component: component.into(),
            config: serde_json::json!({}),
            cases: Vec::new(),
        };
        Ok(Ours {
            policy: Policy::prepare(&runtime, upload)?,
            turn: Turn::default(),
            request: RouteRequest { last_user_text: TEXT.into(), ..RouteRequest::default() },
            fleet: [Target { model: "default".into(), ..Target::default() }],
        })
    }

    fn call(&self) -> Result<(), Box<dyn Error>> {
        self.policy.route(&self.turn, &self.request, &self.fleet)?;
        Ok(())
    }
}

/// The call without a host: no limits, no clock, no checks.
struct Bare {
    engine: Engine,
    pre: BarePre<()>,
}

impl Bare {
    fn new(component: &[u8]) -> Result<Bare, Box<dyn Error>> {
        let mut config = Config::new();
        let mut pool = PoolingAllocationConfig::default();
        pool.linear_memory_keep_resident(4 << 20);
        config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool));
        let engine = Engine::new(&config)?;
        let component = Component::new(&engine, component)?;
        let pre = BarePre::new(Linker::new(&engine).instantiate_pre(&component)?)?;
        Ok(Bare { engine, pre })
    }

    fn call(&self) -> Result<(), Box<dyn Error>> {
        let mut store = Store::new(&self.engine, ());
        let bare = self.pre.instantiate(&mut store)?;
        let routing = bare.jackfield_policy_routing();
        routing.call_route(&mut store, &turn(), &request(), &[target()])??;
        Ok(())
    }
}

fn turn() -> BareTurn {
    BareTurn {
        id: String::new(),
        tenant: String::new(),
        session: None,
        task: None,
        locale: String::new(),
        now: BareInstant { unix_ms: 0.0, utc_offset_minutes: 0 },
        seed: 0,
        headers: Vec::new(),
        attributes: Vec::new(),
    }
}

fn request() -> Request {
    Request {
        prompt_tokens: 0,
        messages: 0,
        last_user_text: TEXT.into(),
        slots: Vec::new(),
        wanted_model: String::new(),
        max_tokens: None,
        attributes: Vec::new(),
    }
}

fn target() -> BareTarget {
    BareTarget {
        model: "default".into(),
        modes: Vec::new(),
        queue_depth: 0,
        free_blocks: 0,
        cached_tokens: 0,
        ttft_p50_ms: 0.0,
        attributes: Vec::new(),
    }
}
