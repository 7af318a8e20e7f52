//! Work that must not be felt: compiling, and calls of candidates.

use thread_priority::{ThreadPriority, set_current_thread_priority};

/// Puts the calling thread behind all others that want the processor. For threads that do nothing else.
pub(crate) fn step_back() {
    if let Err(error) = set_current_thread_priority(ThreadPriority::Min) {
        tracing::debug!(?error, "this system does not let a thread step back");
    }
}
