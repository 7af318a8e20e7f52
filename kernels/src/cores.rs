//! Threads tied to cores.

use core_affinity::CoreId;

use crate::error::KernelError;

/// One core for each thread, in their order; none where the system may move them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Cores(Vec<CoreId>);

impl Cores {
    /// By the system's numbers.
    ///
    /// # Errors
    /// [`KernelError::NoCore`] where the process may not have one of them.
    pub(crate) fn new(numbers: &[usize]) -> Result<Self, KernelError> {
        let there = core_affinity::get_core_ids().unwrap_or_default();
        let find = |&core: &usize| {
            let found = there.iter().find(|found| found.id == core).copied();
            found.ok_or_else(|| KernelError::NoCore {
                core,
                cores: there.iter().map(|core| core.id).collect(),
            })
        };
        numbers.iter().map(find).collect::<Result<_, _>>().map(Self)
    }

    /// Ties the calling thread, which is the pool's so-manieth. Where the system refuses, it may move the thread: slower at
    /// worst.
    pub(crate) fn tie(&self, thread: usize) {
        if let Some(core) = self.0.get(thread) {
            core_affinity::set_for_current(*core);
        }
    }
}

#[cfg(all(test, target_os = "linux", not(miri)))]
mod tests {
    use super::*;

    #[test]
    fn a_thread_stays_where_it_is_tied() {
        let there: Vec<usize> = core_affinity::get_core_ids().unwrap().iter().map(|core| core.id).collect();
        let last = there.len() - 1;
        let cores = Cores::new(&there).unwrap();
        let tied = std::thread::spawn(move || {
            cores.tie(last);
            core_affinity::get_core_ids().unwrap().iter().map(|core| core.id).collect::<Vec<_>>()
        });
        assert_eq!(tied.join().unwrap(), [there[last]]);
    }

    #[test]
    fn a_core_that_is_not_there_is_named() {
        let error = Cores::new(&[999_999]).unwrap_err().to_string();
        assert!(error.starts_with("there is no core 999999 for this process; there are ["), "{error}");
    }
}
