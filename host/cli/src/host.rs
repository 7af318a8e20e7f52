//! A host, put together: model, engine, policies, server.

use std::sync::Arc;
use std::time::Instant;

use jackfield_dialog::MemoryStore;
use jackfield_engine::Engine;
use jackfield_kernels::Cpu;
use jackfield_model::{Model, Tokenizer};
use jackfield_policy::{HostServices, LogLevel, Registry, Runtime, RuntimeConfig};
use jackfield_server::{ApiKey, Host, ServerConfig};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

use crate::Failure;
use crate::config::{Settings, Status};
use crate::dirs::Dirs;
use crate::model;

/// Loads the model and opens the policies that were acknowledged before; nothing listens yet.
pub(crate) fn assemble(settings: &Settings, dirs: &Dirs, keep_state: bool) -> Result<Host, Failure> {
    let path = model::locate(&settings.model, dirs).map_err(Failure::failed)?;
    let begun = Instant::now();
    let cpu = Cpu::new(settings.threads);
    let model = Model::load(&path, Arc::clone(&cpu)).map_err(|error| Failure::failed(format!("{}: {error}", path.display())))?;
    let services = Arc::new(ModelServices { tokenizer: Arc::clone(&model.tokenizer) });
    let engine = Engine::start(model, &cpu, &settings.engine).map_err(Failure::usage)?;
    tracing::info!(file = %path.display(), ms = begun.elapsed().as_millis() as u64, "model loaded");
    let state = keep_state.then(|| settings.state.clone());
    let runtime = Runtime::new(runtime_config(state.as_deref()), services).map_err(Failure::failed)?;
    let registry = Registry::open(runtime, state.map(|dir| dir.join("policies"))).map_err(Failure::failed)?;
    Ok(Host {
        engine,
        registry: Arc::new(registry),
        sessions: Arc::new(MemoryStore::default()),
        config: server_config(settings),
    })
}
