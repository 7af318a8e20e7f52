//! Connections: accepted within a bound, spoken to in HTTP/1.1 or HTTP/2, closed when the server stops.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::timeout;
use tower::ServiceExt;

use super::sniff::Sniffed;
use super::stall::Unstalled;

/// Streams that one HTTP/2 connection may have open.
const MOST_STREAMS: u32 = 256;
/// Bytes of one request head.
const MOST_HEAD_BYTES: usize = 64 << 10;
/// A client that takes nothing for so long is gone.
const LONGEST_STALL: Duration = Duration::from_secs(60);
/// After a failed accept (no file descriptors left), so that the loop does not spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// What all connections of one listener share.
pub(crate) struct Listening {
    pub(crate) router: Router,
    pub(crate) places: Arc<Semaphore>,
    pub(crate) header_timeout: Duration,
    pub(crate) graceful: Arc<GracefulShutdown>,
    /// Becomes true when no more connections are to be taken.
    pub(crate) stop: watch::Receiver<bool>,
}

/// Accepts until told to stop.
pub(crate) async fn accept(listener: TcpListener, mut listening: Listening) {
    loop {
        let accepted = tokio::select! {
            _ = listening.stop.wait_for(|stop| *stop) => return,
            accepted = next(&listener, &listening.places) => accepted,
        };
        match accepted {
            Ok((stream, place)) => listening.spawn(stream, place),
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

async fn next(
    listener: &TcpListener,
    places: &Arc<Semaphore>,
) -> std::io::Result<(TcpStream, OwnedSemaphorePermit)> {
    let place = Arc::clone(places).acquire_owned().await.map_err(std::io::Error::other)?;
    let (stream, _) = listener.accept().await?;
    Ok((stream, place))
}

impl Listening {
    fn spawn(&self, stream: TcpStream, place: OwnedSemaphorePermit) {
        let (router, watcher, header_timeout) =
            (self.router.clone(), self.graceful.watcher(), self.header_timeout);
        tokio::spawn(async move {
            speak(stream, router, watcher, header_timeout).await;
            drop(place);
        });
    }
}

async fn speak(stream: TcpStream, router: Router, watcher: Watcher, header_timeout: Duration) {
    // A delta is one small write; waiting to join it with the next would delay every token.
    let _ = stream.set_nodelay(true);
    // The version is told from the first bytes, which no timeout of the library covers.
    if !matches!(timeout(header_timeout, stream.readable()).await, Ok(Ok(()))) {
        return;
    }
    let (io, both) = Sniffed::new(Unstalled::new(stream, LONGEST_STALL));
    let service = router.map_request(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(both.clone());
        request
    });
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(header_timeout)
        .max_buf_size(MOST_HEAD_BYTES)
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(MOST_STREAMS)
        .max_header_list_size(MOST_HEAD_BYTES as u32)
        .keep_alive_interval(header_timeout)
        .keep_alive_timeout(header_timeout);
    let connection = builder.serve_connection(TokioIo::new(io), TowerToHyperService::new(service));
    if let Err(error) = watcher.watch(connection.into_owned()).await {
        tracing::debug!(error, "a connection ended early");
    }
}
