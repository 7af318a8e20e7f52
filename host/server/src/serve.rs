//! Serving until told to stop, then stopping without cutting anyone off.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinHandle;

use crate::app::{App, Host};
use crate::config::ConfigError;
use crate::http::listen::{Listening, accept};
use crate::{admin, api};

/// Time that connections have to write what is left when all turns are done.
const CLOSING_TIME: Duration = Duration::from_secs(5);
/// Time that KV blocks have to come to the disk, when all turns are done.
const FLUSHING_TIME: Duration = Duration::from_secs(10);
/// Connections that the admin address may have open; its own, so that a full API cannot lock the operator out.
const ADMIN_CONNECTIONS: usize = 64;

/// The server did not start or did not end well.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The settings do not suit the addresses.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A listener is unusable.
    #[error("cannot use the listening socket: {0}")]
    Listener(#[from] std::io::Error),
    /// The system gives no randomness for ids.
    #[error("the system gives no random numbers: {0}")]
    Random(getrandom::Error),
}

/// Serves the API on one listener and the admin API on the other, until `shutdown` is done.
///
/// Then: readiness turns false and new turns get 503 while running ones go on, for `drain_s` at most; what still runs
/// after that is cut off. Both listeners stay open as long as turns run, so that probes and scrapes are answered.
///
/// # Errors
/// Before anything is served: settings that must not be served, or a listener that cannot be used.
pub async fn serve(
    host: Host,
    api: TcpListener,
    admin: TcpListener,
    shutdown: impl Future<Output = ()>,
) -> Result<(), ServeError> {
    host.config.check(api.local_addr()?, admin.local_addr()?)?;
    let app = App::new(host).map_err(ServeError::Random)?;
    let doors = Doors::new(&app);
    let running = [
        doors.open(api, api::router(Arc::clone(&app)), app.config.max_connections),
        doors.open(admin, admin::router(Arc::clone(&app)), ADMIN_CONNECTIONS),
    ];
    shutdown.await;
    tracing::info!(drain_s = app.config.drain_s, "shutting down");
    if !app.drain(Duration::from_secs(app.config.drain_s)).await {
        tracing::warn!("turns were still running after the time to drain; they are cut off");
    }
    doors.close(running).await;
    let engine = app.engine.clone();
    let written = tokio::task::spawn_blocking(move || engine.flush(FLUSHING_TIME)).await;
    if !written.unwrap_or(false) {
        tracing::warn!("not all KV blocks that were to be kept are written; they will be computed again");
    }
    Ok(())
}

/// What both listeners have in common.
struct Doors {
    graceful: Arc<GracefulShutdown>,
    stop: watch::Sender<bool>,
    header_timeout: Duration,
}

impl Doors {
    fn new(app: &App) -> Self {
        let header_timeout = Duration::from_secs(app.config.header_timeout_s.max(1));
        Doors { graceful: Arc::default(), stop: watch::Sender::new(false), header_timeout }
    }

    fn open(&self, listener: TcpListener, router: Router, connections: usize) -> JoinHandle<()> {
        let listening = Listening {
            router,
            places: Arc::new(Semaphore::new(connections.min(Semaphore::MAX_PERMITS))),
            header_timeout: self.header_timeout,
            graceful: Arc::clone(&self.graceful),
            stop: self.stop.subscribe(),
        };
        tokio::spawn(accept(listener, listening))
    }

    async fn close(self, running: [JoinHandle<()>; 2]) {
        self.stop.send_replace(true);
        for task in running {
            // An accept loop that panicked has nothing left to stop.
            let _ = task.await;
        }
        // Both loops have ended and given their handles back.
        if let Some(graceful) = Arc::into_inner(self.graceful) {
            let _ = tokio::time::timeout(CLOSING_TIME, graceful.shutdown()).await;
        }
    }
}
