//! Reading ahead: from below to memory, while something else of a turn is on its way.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Instant;

use jackfield_scheduler::BlockHash;
use tokio::sync::oneshot;

use super::Inner;
use super::lower::Lower;
use super::shelf::{Rank, now};

/// Blocks that a thread reads before it looks for other work: a prompt's are shared out among several.
const AT_ONCE: usize = 8;
/// Fewer where they are large, so that a server on the network sends them well within its time.
const BYTES_AT_ONCE: usize = 1 << 20;

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
    /// Tokens from the front on that are on the device or in memory, now that everything is read.
    pub ready_tokens: usize,
}

/// Some blocks to read.
pub(super) struct Read {
    /// Each with its place in the prompt, in their order.
    blocks: Vec<(usize, BlockHash)>,
    progress: Arc<Progress>,
}

/// Tells the end when the last part of the work is dropped, done or not.
struct Progress {
    begun: Instant,
    /// When its first block counts as used, the others a little before.
    rank: Rank,
    held_tokens: usize,
    read: AtomicUsize,
    block_size: usize,
    /// The first place whose block nobody has: those after it are of no use.
    gap: AtomicUsize,
    /// A bit for each tier that lacked a block.
    missed: AtomicUsize,
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
        let ready_tokens = self.gap.load(Ordering::Relaxed) * self.block_size;
        let fetched = Fetched { held_tokens: self.held_tokens, read_tokens, ready_tokens };
        let _ = sender.map(|sender| sender.send(fetched));
    }
}

impl Progress {
    fn is_of_use(&self, (link, _): &(usize, BlockHash)) -> bool {
        *link < self.gap.load(Ordering::Relaxed)
    }

    fn ends_before(&self, link: usize) {
        self.gap.fetch_min(link, Ordering::Relaxed);
    }

    /// Counts that a tier lacked a block, once for each prompt.
    fn missed(&self, at: usize, lower: &Lower) {
        let bit = 1 << at;
        if self.missed.fetch_or(bit, Ordering::Relaxed) & bit == 0 {
            lower.misses.add(1);
        }
    }
}

/// Has threads read what `on_device` and memory lack of a chain, as far as there are no gaps.
pub(super) fn fetch(
    shared: &Arc<Inner>,
    chain: &[BlockHash],
    on_device: &[bool],
    block_size: usize,
) -> Fetch {
    let rank = now();
    let absent: Vec<usize> = {
        let mut memory = shared.memory();
        let mut held =
            |link: &usize| on_device[*link] || memory.touch(&chain[*link], rank.back(*link)).is_some();
        (0..chain.len()).filter(|link| !held(link)).collect()
    };
    let (sender, done) = oneshot::channel();
    let progress = Arc::new(Progress {
        begun: Instant::now(),
        rank,
        held_tokens: absent.first().map_or(chain.len(), |first| *first) * block_size,
        read: AtomicUsize::new(0),
        block_size,
        gap: AtomicUsize::new(absent.get(shared.fetch_blocks).copied().unwrap_or(chain.len())),
        missed: AtomicUsize::new(0),
        sender: Mutex::new(Some(sender)),
    });
    let at_once = (BYTES_AT_ONCE / shared.kept.bytes.max(1)).clamp(1, AT_ONCE);
    for links in absent[..absent.len().min(shared.fetch_blocks)].chunks(at_once) {
        let blocks = links.iter().map(|link| (*link, chain[*link])).collect();
        shared.pass_on(0, Read { blocks, progress: Arc::clone(&progress) });
    }
    Fetch { done }
}

impl Inner {
    /// Hands blocks to the first tier, from this one on, that may have some of them; what it lacks it hands on. What nobody
    /// may have is the end.
    fn pass_on(&self, from: usize, Read { mut blocks, progress }: Read) {
        blocks.retain(|block| progress.is_of_use(block));
        let lower = || self.lower().enumerate().skip(from);
        let is_nowhere = |prefix: &BlockHash| !lower().any(|(_, lower)| lower.tier.may_have(prefix));
        if let Some(end) = blocks.iter().position(|(_, prefix)| is_nowhere(prefix)) {
            progress.ends_before(blocks[end].0);
            lower().for_each(|(at, lower)| progress.missed(at, lower));
            blocks.truncate(end);
        }
        if blocks.is_empty() {
            return;
        }
        for (at, lower) in lower() {
            if blocks.iter().any(|(_, prefix)| lower.tier.may_have(prefix)) {
                // A closed queue drops it, and so ends it.
                let _ = lower.reads.push(Read { blocks, progress });
                return;
            }
            progress.missed(at, lower);
        }
    }

    /// A thread that reads from the tier at this place.
    pub(super) fn read_all(&self, at: usize) {
        let Some(lower) = self.lower().nth(at) else { return };
        while let Some(Read { mut blocks, progress }) = lower.reads.pop() {
            // Another prompt that begins alike may have been faster.
            blocks.retain(|block| progress.is_of_use(block) && self.memory().peek(&block.1).is_none());
            let prefixes: Vec<BlockHash> = blocks.iter().map(|(_, prefix)| *prefix).collect();
            let found = match blocks.first() {
                Some((link, _)) if progress.begun.elapsed() < lower.tier.patience() => {
                    lower.tier.get(&prefixes, progress.rank.back(*link))
                }
                _ => vec![None; prefixes.len()],
            };
            let mut lacking = Vec::new();
            for (block, payload) in blocks.into_iter().zip(found) {
                let Some(payload) = payload else {
                    lacking.push(block);
                    continue;
                };
                self.hold(block.1, payload, progress.rank.back(block.0));
                progress.read.fetch_add(1, Ordering::Relaxed);
            }
            if !lacking.is_empty() {
                progress.missed(at, lower);
                self.pass_on(at + 1, Read { blocks: lacking, progress });
            }
        }
    }
}
