//! What happens to policies without being asked for: breakers trip, shadows come to their end.

use std::{
    sync::{
        Weak,
        mpsc::{Receiver, RecvTimeoutError},
    },
    thread,
    time::Duration,
};

use super::{Registry, deployed::Tripped, unix_ms};

/// How often it is looked whether a stage is over.
const LOOK: Duration = Duration::from_millis(500);

/// Starts the thread; it ends soon after the registry.
pub(super) fn start(registry: Weak<Registry>, news: Receiver<Tripped>) -> std::io::Result<()> {
    thread::Builder::new().name("policy-keeper".into()).spawn(move || keep(&registry, &news)).map(drop)
}

fn keep(registry: &Weak<Registry>, news: &Receiver<Tripped>) {
    loop {
        let heard = news.recv_timeout(LOOK);
        let Some(registry) = registry.upgrade() else { return };
        match heard {
            Ok(tripped) => registry.broke(&tripped),
            Err(RecvTimeoutError::Timeout) => registry.advance(unix_ms()),
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}
