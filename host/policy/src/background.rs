//! Work that must not be felt by those who are being served: compiling, and calls of candidates.

#[cfg(target_os = "linux")]
use thread_priority::{
    NormalThreadSchedulePolicy, ThreadSchedulePolicy, set_thread_priority_and_policy, thread_native_id,
};
use thread_priority::{ThreadPriority, ThreadPriorityValue, set_current_thread_priority};

/// On Linux a nice value of 10: about a tenth of what a thread that serves gets, when both want the processor. Someone
/// waits for what is compiled.
const ASIDE: u8 = 23;

/// Puts the calling thread well behind those that serve.
pub fn step_aside() {
    let value = ThreadPriorityValue::try_from(ASIDE);
    value.map_or_else(|_| step_back(), |value| step(ThreadPriority::Crossplatform(value)));
}

/// Puts the calling thread behind all others: it gets what they leave. The lowest nice value would not do on Linux: the engine's
/// threads offer the processor while they wait for each other, and who takes it keeps it for milliseconds.
pub(crate) fn step_back() {
    #[cfg(target_os = "linux")]
    {
        let idle = ThreadSchedulePolicy::Normal(NormalThreadSchedulePolicy::Idle);
        match set_thread_priority_and_policy(thread_native_id(), ThreadPriority::Min, idle) {
            Ok(()) => return,
            Err(error) => tracing::debug!(?error, "this system does not let a thread be idle"),
        }
    }
    step(ThreadPriority::Min);
}

fn step(priority: ThreadPriority) {
    if let Err(error) = set_current_thread_priority(priority) {
        tracing::debug!(?error, "this system does not let a thread step back");
    }
}
