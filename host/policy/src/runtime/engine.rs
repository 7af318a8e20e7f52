//! The engine's settings.

use std::{
    borrow::Cow,
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use wasmtime::{
    CacheStore, Config, Enabled, Engine, InstanceAllocationStrategy, PoolingAllocationConfig, Result,
};

use super::spare;
use crate::MAX_MEMORY_BYTES;

/// How instances get their memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allocation {
    /// From a pool, copy on write, with address space to spare: the fast way.
    Pool,
    /// From a pool with little address space, for systems that limit it.
    SmallPool,
    /// Mapped for each instance, where no pool could be had.
    OnDemand,
}

impl Allocation {
    const BY_PREFERENCE: [Allocation; 3] = [Allocation::Pool, Allocation::SmallPool, Allocation::OnDemand];
}

/// Memory of an instance that stays mapped and is reset by copying rather than unmapped: fewer page faults.
const KEEP_RESIDENT_BYTES: usize = 4 << 20;
/// What compiled functions kept for the next compilation may take.
const CACHE_BYTES: usize = 96 << 20;
/// Core instances of one component: Python's has about forty.
const CORE_INSTANCES_PER_COMPONENT: u32 = 64;

/// The best engine that this system allows, for so many calls at once.
pub(super) fn engine(max_calls: u32) -> Result<(Engine, Allocation)> {
    let cache: Arc<Functions> = Arc::default();
    let mut last = None;
    for allocation in Allocation::BY_PREFERENCE {
        match Engine::new(&config(allocation, max_calls, cache.clone())?) {
            Ok(engine) => return Ok((engine, allocation)),
            Err(error) => {
                tracing::warn!(?allocation, %error, "no such memory for policies; trying a smaller way");
                last = Some(error);
            }
        }
    }
    Err(last.unwrap_or_else(|| wasmtime::Error::msg("no way to allocate was tried")))
}

fn config(allocation: Allocation, max_calls: u32, cache: Arc<Functions>) -> Result<Config> {
    let mut config = Config::new();
    config
        .wasm_component_model(true)
        .epoch_interruption(true)
        // A guest's stack lies on the caller's thread; twice this still fits the smallest thread we call from.
        .max_wasm_stack(512 << 10)
        .wasm_backtrace_max_frames(None)
        .enable_incremental_compilation(cache)?;
    match allocation {
        Allocation::Pool => {
            config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool(max_calls)));
        }
        Allocation::SmallPool => {
            config
                .memory_reservation(MAX_MEMORY_BYTES as u64)
                .memory_guard_size(64 << 10)
                .allocation_strategy(InstanceAllocationStrategy::Pooling(pool(max_calls.min(8))));
        }
        Allocation::OnDemand => {
            config.memory_reservation(0).memory_reservation_for_growth(16 << 20);
        }
    }
    Ok(config)
}

fn pool(max_calls: u32) -> PoolingAllocationConfig {
    // Beside the calls, those made ahead, and a few for setting policies up.
    let components = max_calls + spare::MOST + 8;
    let of_large_ones = CORE_INSTANCES_PER_COMPONENT * (spare::MOST + 8);
    let mut pool = PoolingAllocationConfig::default();
    pool.total_component_instances(components)
        .max_core_instances_per_component(CORE_INSTANCES_PER_COMPONENT)
        .max_memories_per_component(4)
        .max_tables_per_component(CORE_INSTANCES_PER_COMPONENT)
        .total_core_instances(components * 4 + of_large_ones)
        .total_memories(components * 2)
        .total_tables(components * 4 + of_large_ones)
        .max_memory_size(MAX_MEMORY_BYTES)
        .max_unused_warm_slots(max_calls.min(32))
        .linear_memory_keep_resident(KEEP_RESIDENT_BYTES)
        .table_keep_resident(64 << 10)
        .pagemap_scan(Enabled::Auto);
    pool
}

/// Compiled functions, by their content. The functions of a frozen component, or of another policy of the same language
/// runtime, are mostly ones that were compiled before. Lives and dies with the engine; nothing is read from elsewhere.
#[derive(Debug, Default)]
struct Functions(Mutex<Held>);

#[derive(Debug, Default)]
struct Held {
    by_key: HashMap<Vec<u8>, Arc<[u8]>>,
    bytes: usize,
}

impl Functions {
    fn held(&self) -> MutexGuard<'_, Held> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CacheStore for Functions {
    fn get(&self, key: &[u8]) -> Option<Cow<'_, [u8]>> {
        // Copied out while others may look too.
        let found = self.held().by_key.get(key).cloned();
        found.map(|code| Cow::Owned(code.to_vec()))
    }

    fn insert(&self, key: &[u8], code: Vec<u8>) -> bool {
        let added = key.len() + code.len();
        let (key, code) = (key.to_vec(), code.into());
        let mut held = self.held();
        if held.bytes + added > CACHE_BYTES {
            // Starting over is rare and costs one full compilation; keeping an order of use would cost more code.
            *held = Held::default();
        }
        held.bytes += added;
        held.by_key.insert(key, code);
        true
    }
}

#[cfg(test)]
mod tests {
    use wasmtime::component::Component;

    use super::*;
    use crate::runtime::{expose, freeze};

    #[test]
    fn the_function_cache_is_bounded() {
        let functions = Functions::default();
        for key in 0..200u32 {
            functions.insert(&key.to_le_bytes(), vec![0; 1 << 20]);
            let held = functions.0.lock().expect("not poisoned");
            assert!(held.bytes <= CACHE_BYTES);
            assert_eq!(held.bytes, held.by_key.iter().map(|(k, v)| k.len() + v.len()).sum::<usize>());
        }
        let last = 199u32.to_le_bytes();
        assert_eq!(functions.get(&last).map(|code| code.len()), Some(1 << 20));
    }

    /// A component whose functions use a global that no module exports, as compilers' stack pointers are.
    fn with_a_stack() -> Vec<u8> {
        let function = |i: u32| {
            format!(
                "(func (export \"f{i}\") (param i32) (result i32)
                    (global.set $sp (i32.sub (global.get $sp) (i32.const {i})))
                    (i32.store (global.get $sp) (local.get 0))
                    (i32.load offset={i} (global.get $sp)))"
            )
        };
        let functions: String = (1..=FUNCTIONS as u32).map(function).collect();
        let text = format!(
            "(component
                (core module $m
                    (memory (export \"memory\") 1)
                    (global $sp (mut i32) (i32.const 4096))
                    {functions})
                (core instance (instantiate $m)))"
        );
        wat::parse_str(text).expect("a component")
    }

    const FUNCTIONS: usize = 20;

    #[test]
    fn what_is_frozen_has_the_code_of_what_was_made_readable() {
        let compiled_anew = |component: &[u8]| {
            let cache: Arc<Functions> = Arc::default();
            let config = config(Allocation::OnDemand, 1, cache.clone()).expect("settings");
            let engine = Engine::new(&config).expect("an engine");
            let readable = freeze::readable(component).expect("can be read");
            Component::new(&engine, &readable.component).expect("compiles");
            let before = cache.held().by_key.len();
            // What freezing changes in it are its data, which are not code.
            Component::new(&engine, component).expect("compiles");
            cache.held().by_key.len() - before
        };
        let bare = with_a_stack();
        assert!(compiled_anew(&bare) >= FUNCTIONS);
        assert_eq!(compiled_anew(&expose::exposed(&bare).expect("is rewritten")), 0);
    }
}
