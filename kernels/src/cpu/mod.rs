//! Threads and instruction set, behind one handle.

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod attend;
#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64", test))]
mod dot;
mod kernels;
#[cfg(target_arch = "aarch64")]
mod neon;
mod scalar;
#[cfg(target_arch = "x86_64")]
mod vnni;

use std::ops::Range;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex};

pub(crate) use kernels::{Attend, Kernels, Keys, Planes, Queries, QueryMeta};

use crate::attention::Workspace;
use crate::cores::Cores;
use crate::error::KernelError;
use crate::pool::Pool;

/// Rows are worth a second thread from this many values on; below, waking one costs more than it saves.
const WORTH_SHARING: usize = 1 << 15;

/// An instruction set that kernels are written for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Isa {
    /// Plain Rust: the reference that the others are held to, and the way out on any other processor.
    Scalar,
    /// AVX2 with FMA and F16C: x86 from 2013 on.
    Avx2,
    /// The same with integer products of AVX-VNNI, in 256 bits.
    AvxVnni,
    /// The same with integer products of AVX-512 VNNI, in 512 bits.
    Avx512Vnni,
    /// NEON: every 64-bit ARM.
    Neon,
    /// The same with integer dot products (`sdot`): ARM from 2018 on.
    NeonDot,
    /// The same with products of matrices (`smmla`): ARM from 2020 on.
    NeonI8mm,
}

impl Isa {
    /// Every one, best first.
    pub const ALL: [Isa; 7] =
        [Isa::Avx512Vnni, Isa::AvxVnni, Isa::Avx2, Isa::NeonI8mm, Isa::NeonDot, Isa::Neon, Isa::Scalar];

    /// The best that this processor has.
    pub fn best() -> Isa {
        Isa::ALL.into_iter().find(|isa| isa.is_here()).unwrap_or(Isa::Scalar)
    }

    /// Whether this processor has it.
    pub fn is_here(self) -> bool {
        kernels_for(self).is_some()
    }

    /// Its name for logs.
    pub fn name(self) -> &'static str {
        match self {
            Isa::Scalar => "scalar",
            Isa::Avx2 => "avx2",
            Isa::AvxVnni => "avx-vnni",
            Isa::Avx512Vnni => "avx512-vnni",
            Isa::Neon => "neon",
            Isa::NeonDot => "neon-dot",
            Isa::NeonI8mm => "neon-i8mm",
        }
    }
}

/// The processor as the kernels use it: a pool of threads and the best instruction set found at run time.
///
/// Operations of one `Cpu` called from several threads at once are correct but do not share the pool: the first has
/// it, the others run in their own thread.
pub struct Cpu {
    pool: Pool,
    cores: Cores,
    kernels: &'static dyn Kernels,
    /// Working memory, one for each thread of the pool.
    scratch: Box<[Mutex<Vec<f32>>]>,
    /// What attention keeps between calls.
    pub(crate) attention: Mutex<Workspace>,
}

impl Cpu {
    /// `threads` threads, the caller's among them (at least one), with the best instruction set here.
    pub fn new(threads: usize) -> Arc<Cpu> {
        Self::build(threads, kernels_for(Isa::best()).unwrap_or(&scalar::Scalar))
    }

    /// A thread for each of these cores, by the system's numbers; each stays on its own. The first is for the thread that
    /// calls the operations: see [`Cpu::tie_caller`].
    ///
    /// # Errors
    /// [`KernelError::NoCore`] where the process may not have one of them, [`KernelError::NoIsa`] where the processor lacks
    /// the instruction set.
    pub fn on_cores(cores: &[usize], isa: Isa) -> Result<Arc<Cpu>, KernelError> {
        let kernels = kernels_for(isa).ok_or_else(|| no(isa))?;
        Ok(Self::place(cores.len(), Cores::new(cores)?, kernels))
    }

    /// Ties the calling thread to the first of the cores that were given, if any were.
    pub fn tie_caller(&self) {
        self.cores.tie(0);
    }

    /// The same as [`new`](Self::new) with a given instruction set.
    ///
    /// # Errors
    /// [`KernelError::NoIsa`] where the processor lacks it.
    pub fn with_isa(threads: usize, isa: Isa) -> Result<Arc<Cpu>, KernelError> {
        Ok(Self::build(threads, kernels_for(isa).ok_or_else(|| no(isa))?))
    }

    fn build(threads: usize, kernels: &'static dyn Kernels) -> Arc<Cpu> {
        Self::place(threads, Cores::default(), kernels)
    }

    fn place(threads: usize, cores: Cores, kernels: &'static dyn Kernels) -> Arc<Cpu> {
        let begin = {
            let cores = cores.clone();
            move |thread| cores.tie(thread)
        };
        let pool = Pool::new(threads, begin);
        let scratch = (0..pool.threads()).map(|_| Mutex::default()).collect();
        Arc::new(Cpu { pool, cores, kernels, scratch, attention: Mutex::default() })
    }

    /// A count of what runs beside, on other threads, and is to have only what these here leave over. While it is not 0 a thread that
    /// waits for work keeps its processor for the short while that it looks for some, where else it would offer it.
    pub fn beside(&self) -> Arc<AtomicUsize> {
        self.pool.beside()
    }

    /// The instruction set in use.
    pub fn isa(&self) -> Isa {
        self.kernels.isa()
    }

    /// Threads, the caller's among them.
    pub fn threads(&self) -> usize {
        self.pool.threads()
    }

    /// Calls `f` once for each number below `tasks`, on all threads; returns when all are done. A panic in one goes on
    /// in the caller. From inside a task it runs in the calling thread.
    pub fn parallel(&self, tasks: usize, f: &(dyn Fn(usize /* task */) + Sync)) {
        self.pool.run(tasks, &|_, task| f(task));
    }

    /// The same with working memory of at least `room` numbers, which lives from call to call: its content is whatever
    /// was left there.
    pub(crate) fn parallel_scratch(&self, room: usize, tasks: usize, f: &(dyn Fn(usize, &mut [f32]) + Sync)) {
        let grow = |scratch: &mut Vec<f32>| {
            if scratch.len() < room {
                scratch.resize(room, 0.0);
            }
        };
        // For all threads now, so that it does not depend on chance when the last of them allocates.
        self.scratch.iter().filter_map(|s| s.try_lock().ok()).for_each(|mut scratch| grow(&mut scratch));
        self.pool.run(tasks, &|thread, task| match self.scratch[thread].try_lock() {
            Ok(mut scratch) => {
                grow(&mut scratch);
                f(task, &mut scratch);
            }
            // Another operation works in the same place (see `Pool::run`), or one panicked there.
            Err(_) => f(task, &mut vec![0.0; room]),
        });
    }

    /// Calls `f` with ranges that cover `rows` rows of `width` values: several where that is worth it.
    pub(crate) fn for_rows(&self, rows: usize, width: usize, f: &(dyn Fn(Range<usize>) + Sync)) {
        if rows * width < WORTH_SHARING || rows < 2 {
            return f(0..rows);
        }
        let chunk = rows.div_ceil(4 * self.threads()).max(WORTH_SHARING.div_ceil(4 * width.max(1)));
        self.parallel(rows.div_ceil(chunk), &|task| f(task * chunk..rows.min((task + 1) * chunk)));
    }

    pub(crate) fn kernels(&self) -> &'static dyn Kernels {
        self.kernels
    }
}

fn no(isa: Isa) -> KernelError {
    KernelError::NoIsa { isa, here: Isa::ALL.into_iter().filter(|isa| isa.is_here()).collect() }
}

/// The kernels for an instruction set, where this processor has it.
fn kernels_for(isa: Isa) -> Option<&'static dyn Kernels> {
    match isa {
        Isa::Scalar => Some(&scalar::Scalar),
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2 => avx2::Avx2::detect().map(|found| found as &dyn Kernels),
        #[cfg(target_arch = "x86_64")]
        Isa::AvxVnni => vnni::Vnni::detect_avx().map(|found| found as &dyn Kernels),
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512Vnni => vnni::Vnni::detect_avx512().map(|found| found as &dyn Kernels),
        #[cfg(target_arch = "aarch64")]
        Isa::Neon => Some(neon::ANY),
        #[cfg(target_arch = "aarch64")]
        Isa::NeonDot => neon::detect_dot(),
        #[cfg(target_arch = "aarch64")]
        Isa::NeonI8mm => neon::detect_i8mm(),
        _ => None,
    }
}
