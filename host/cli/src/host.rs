//! A host, put together: model, engine, policies, server.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Instant;

use jackfield_dialog::{DiskStore, MemoryLimits, MemoryStore, RedisStore, SessionStore};
use jackfield_engine::{Engine, EngineConfig};
use jackfield_kernels::{Cpu, Isa, KernelError};
use jackfield_model::Model;
use jackfield_policy::{Registry, RegistryOptions, Runtime, RuntimeConfig};
use jackfield_server::{Host, RecallBy, Swaps};
use tokio::net::TcpListener;
use tokio::runtime::Runtime as Tokio;
use tokio::signal::unix::{SignalKind, signal};

use crate::Failure;
use crate::config::{SessionSettings, Settings, engine_refusal};
use crate::dirs::Dirs;
use crate::model;
use crate::services::{Embeddings, ModelServices};

/// The threads that serve connections.
pub(crate) fn threads() -> Result<Tokio, Failure> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(Failure::failed)
}

/// Loads the model and opens the policies and sessions that were acknowledged before; nothing listens yet. Without
/// `keep_state` nothing is kept on disk.
pub(crate) fn assemble(
    settings: &Settings,
    dirs: &Dirs,
    keep_state: bool,
    threads: &Tokio,
) -> Result<Host, Failure> {
    let path = model::locate(&settings.model, dirs).map_err(Failure::failed)?;
    let (engine, beside) = start_engine(settings, &path, keep_state)?;
    let embeddings = Embeddings::new(&settings.embeddings, dirs)?;
    let services = Arc::new(ModelServices::new(engine.clone(), embeddings));
    let recalls = settings.server.sessions.recall != RecallBy::Nobody;
    let embed = recalls.then(|| services.embed_for_recall());
    let state = keep_state.then_some(settings.state.as_path());
    let code_dir = state.map(|dir| dir.join("compiled"));
    let config = RuntimeConfig { code_dir, compiles_behind: Some(beside), ..RuntimeConfig::default() };
    let runtime = Runtime::new(config, services).map_err(Failure::failed)?;
    let options = RegistryOptions {
        state_dir: state.map(Path::to_owned),
        record: settings.record.clone().filter(|_| keep_state),
    };
    settings.server.trust.set(settings.keys.clone());
    let registry = Registry::open_with(runtime, options).map_err(Failure::failed)?;
    Ok(Host {
        engine,
        registry,
        sessions: sessions(&settings.sessions, state, threads)?,
        embed,
        config: settings.server.clone(),
        swaps: Swaps::default(),
    })
}

/// Opens the sessions. `state` is none where nothing is kept on disk.
fn sessions(
    settings: &SessionSettings,
    state: Option<&Path>,
    threads: &Tokio,
) -> Result<Arc<dyn SessionStore>, Failure> {
    Ok(match (settings, state) {
        (SessionSettings::Disk(limits), Some(state)) => {
            let store = DiskStore::open(state.join("sessions"), *limits).map_err(Failure::failed)?;
            if store.moved_aside() > 0 {
                tracing::warn!(sessions = store.moved_aside(), "sessions that cannot be read were put aside");
            }
            Arc::new(store)
        }
        (SessionSettings::Disk(limits), None) => Arc::new(MemoryStore::new(MemoryLimits {
            max_sessions: limits.max_sessions,
            max_session_bytes: limits.max_session_bytes,
            ttl: limits.ttl,
        })),
        (SessionSettings::Memory(limits), _) => Arc::new(MemoryStore::new(*limits)),
        (SessionSettings::Redis(config), _) => {
            let connected = threads.block_on(RedisStore::connect(config.clone()));
            Arc::new(connected.map_err(Failure::failed)?)
        }
    })
}

/// The engine, and what counts the work beside it.
fn start_engine(
    settings: &Settings,
    path: &Path,
    keep_state: bool,
) -> Result<(Engine, Arc<AtomicUsize>), Failure> {
    let begun = Instant::now();
    let isa = settings.isa.unwrap_or_else(Isa::best);
    let cpu = match &settings.cores {
        Some(cores) => Cpu::on_cores(cores, isa),
        None => Cpu::with_isa(settings.threads, isa),
    };
    let cpu = cpu.map_err(|error| match error {
        KernelError::NoIsa { .. } => Failure::usage(format!("isa: {error}")),
        _ => Failure::usage(format!("cores: {error}")),
    })?;
    let model = Model::load(path, Arc::clone(&cpu))
        .map_err(|error| Failure::failed(format!("{}: {error}", path.display())))?;
    let kv_disk = settings.engine.kv_disk.clone().filter(|_| keep_state);
    let config = EngineConfig { kv_disk, ..settings.engine.clone() };
    let engine =
        Engine::start(model, &cpu, &config).map_err(|error| Failure::usage(engine_refusal(error)))?;
    tracing::info!(file = %path.display(), ms = begun.elapsed().as_millis() as u64, "model loaded");
    Ok((engine, cpu.beside()))
}

/// Listens, tells `ready` the API's address on a thread of its own, and serves until SIGTERM or Ctrl-C.
pub(crate) fn serve(
    host: Host,
    settings: &Settings,
    threads: Tokio,
    ready: impl FnOnce(SocketAddr) + Send + 'static,
) -> Result<(), Failure> {
    let outcome = threads.block_on(async {
        let api = bind(settings.listen).await?;
        let admin = bind(settings.admin_listen).await?;
        let address = api.local_addr().map_err(Failure::failed)?;
        let admin_address = admin.local_addr().map_err(Failure::failed)?;
        tracing::info!(api = %address, admin = %admin_address, "listening");
        let stop = stop_signal()?;
        std::thread::spawn(move || ready(address));
        jackfield_server::serve(host, api, admin, stop).await.map_err(Failure::failed)
    });
    threads.shutdown_background();
    outcome
}

async fn bind(address: SocketAddr) -> Result<TcpListener, Failure> {
    TcpListener::bind(address).await.map_err(|error| {
        Failure::failed(format!("cannot listen on {address}: {error}; is something else there? choose another with --listen or --admin-listen"))
    })
}

/// Completes on SIGTERM or Ctrl-C; a second one ends the process at once.
fn stop_signal() -> Result<impl Future<Output = ()> + Send + 'static, Failure> {
    let mut terminate = signal(SignalKind::terminate()).map_err(Failure::failed)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(Failure::failed)?;
    Ok(async move {
        tokio::select! { _ = terminate.recv() => (), _ = interrupt.recv() => () }
        tracing::info!("draining; the same signal again ends at once");
        tokio::spawn(async move {
            tokio::select! { _ = terminate.recv() => (), _ = interrupt.recv() => () }
            std::process::exit(1);
        });
    })
}
