//! Reading ahead: from disk to memory, while something else of a turn is on its way.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use jackfield_scheduler::BlockHash;
use tokio::sync::oneshot;

use super::Inner;
use super::disk::now;

/// Blocks that a thread reads before it looks for other work: a prompt's are shared out among several.
const AT_ONCE: usize = 8;

/// Blocks of one prompt on their way to memory. The reading has begun and goes on whether or not this is waited for; as a
/// future it is ready when it is done, however that went.
#[derive(Debug)]
pub struct Fetch {
    done: oneshot::Receiver<Fetched>,
}

/// What was there of a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Fetched {
    /// Tokens from the front on that were on the device or in memory.
    pub held_tokens: usize,
    /// Tokens that were read from below, and are in memory now.
    pub read_tokens: usize,
}

/// Some blocks to read.
pub(super) struct Read {
    prefixes: Vec<BlockHash>,
    /// How far from the front of the prompt the first of them is.
    link: usize,
    progress: Arc<Progress>,
}

/// Tells the end when the last part of the work is dropped, done or not.
struct Progress {
    held_tokens: usize,
    read: AtomicUsize,
    block_size: usize,
    sender: Mutex<Option<oneshot::Sender<Fetched>>>,
}

impl Fetch {
    /// Of an engine without tiers.
    pub(crate) fn nothing() -> Fetch {
        let (sender, done) = oneshot::channel();
        let _ = sender.send(Fetched::default()); // the receiver is here
        Fetch { done }
    }

    /// Waits for it on a thread that may block. Panics inside of an asynchronous runtime, where it is to be awaited.
    pub fn wait(self) -> Fetched {
        self.done.blocking_recv().unwrap_or_default()
    }
}

impl Future for Fetch {
    type Output = Fetched;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Fetched> {
        Pin::new(&mut self.done).poll(context).map(Result::unwrap_or_default)
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        let read_tokens = self.read.load(Ordering::Relaxed) * self.block_size;
        let sender = self.sender.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        // Who does not wait does not hear it.
        let _ = sender.map(|sender| sender.send(Fetched { held_tokens: self.held_tokens, read_tokens }));
    }
}

/// Has threads read what `on_device` and memory lack of a chain, as far as there are no gaps.
pub(super) fn fetch(
    shared: &Arc<Inner>,
    chain: &[BlockHash],
    on_device: &[bool],
    block_size: usize,
) -> Fetch {
    let now = now();
    let absent: Vec<usize> = {
        let mut memory = shared.memory();
        let mut held =
            |link: &usize| on_device[*link] || memory.touch(&chain[*link], now.back(*link)).is_some();
        (0..chain.len()).filter(|link| !held(link)).collect()
    };
    let (sender, done) = oneshot::channel();
    let held_tokens = absent.first().map_or(chain.len(), |first| *first) * block_size;
    let sender = Mutex::new(Some(sender));
    let progress = Arc::new(Progress { held_tokens, read: AtomicUsize::new(0), block_size, sender });
    let Some(lower) = shared.lower.as_ref().filter(|_| !absent.is_empty()) else { return Fetch { done } };
    let prefixes: Vec<BlockHash> = absent.iter().take(shared.fetch_blocks).map(|link| chain[*link]).collect();
    let there = lower.tier.leading(&prefixes);
    shared.counters.lower_misses.add(usize::from(there < prefixes.len()));
    for (prefixes, links) in prefixes[..there].chunks(AT_ONCE).zip(absent.chunks(AT_ONCE)) {
        let read = Read { prefixes: prefixes.to_vec(), link: links[0], progress: Arc::clone(&progress) };
        // A closed queue drops it, and so ends it.
        let _ = lower.reads.push(read);
    }
    Fetch { done }
}

impl Inner {
    /// A thread that reads.
    pub(super) fn read_all(&self) {
        let Some(lower) = &self.lower else { return };
        while let Some(Read { mut prefixes, link, progress }) = lower.reads.pop() {
            // Another prompt that begins alike may have been faster.
            prefixes.retain(|prefix| self.memory().peek(prefix).is_none());
            let rank = now();
            for (nth, (prefix, payload)) in prefixes.iter().zip(lower.tier.get(&prefixes)).enumerate() {
                let Some(payload) = payload else { continue };
                self.hold(*prefix, payload, rank.back(link + nth));
                progress.read.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}
