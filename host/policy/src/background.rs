//! Work that must not be felt by those who are being served: compiling, and calls of candidates.

use thread_priority::{ThreadPriority, ThreadPriorityValue, set_current_thread_priority};

/// On Linux a nice value of 10: about a tenth of what a thread that serves gets, when both want the processor. Someone
/// waits for what is compiled.
const ASIDE: u8 = 23;

/// Puts the calling thread well behind those that serve.
pub fn step_aside() {
    let value = ThreadPriorityValue::try_from(ASIDE);
    value.map_or_else(|_| step_back(), |value| step(ThreadPriority::Crossplatform(value)));
}

/// Puts the calling thread behind all others. Nobody waits for what it does.
pub(crate) fn step_back() {
    step(ThreadPriority::Min);
}

fn step(priority: ThreadPriority) {
    if let Err(error) = set_current_thread_priority(priority) {
        tracing::debug!(?error, "this system does not let a thread step back");
    }
}
