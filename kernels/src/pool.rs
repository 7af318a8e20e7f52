//! Threads that share out the tasks of one operation.
//!
//! Each thread has a run of neighbouring tasks, which it claims one by one from the front, so that it reads memory in
//! order and shares no cache line with the others while it does; who has none left takes from the back of another's. The
//! caller takes part, and an operation is over when every task is done: nobody waits for a thread that has not begun one.
//! So a thread that the system has put aside costs at most the task in its hands. One that gets next to no processor time
//! is not called for a while (`presence.rs`): the others are faster without it.

use std::any::Any;
use std::cell::UnsafeCell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::*};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::presence::Presence;

/// How long a thread looks for work, or for the end of it, before it sleeps: longer than the gap between two operations
/// of a step, shorter than what anybody would notice on the electricity bill.
const LOOK_FOR: Duration = Duration::from_micros(50);
/// Looks before the clock is read.
const LOOKS: u32 = 100;

/// A task is called with (thread, task): threads are numbered from 0, the caller is 0.
type Task<'a> = dyn Fn(usize, usize) + Sync + 'a;

pub(crate) struct Pool {
    shared: Arc<Shared>,
    /// Held while an operation runs; who finds it taken works alone.
    busy: Mutex<Presence>,
    workers: Vec<JoinHandle<()>>,
}

struct Shared {
    /// Tasks nobody has claimed yet, a run for each thread.
    runs: Box<[Run]>,
    /// By thread.
    seats: Box<[Seat]>,
    done: AtomicUsize,
    job: UnsafeCell<Job>,
    panicked: AtomicBool,
    panic: Mutex<Option<Box<dyn Any + Send>>>,
    closing: AtomicBool,
    /// How much runs beside that is to have only what is left over.
    beside: Arc<AtomicUsize>,
    /// Threads asleep, or about to be. One that was sent to rest while it slept still counts, until it is called once.
    sleepers: AtomicUsize,
    caller_sleeps: AtomicBool,
    door: Mutex<()>,
    work: Condvar,
    rested: Condvar,
    finished: Condvar,
}

#[derive(Clone, Copy)]
struct Job {
    task: *const Task<'static>,
    total: usize,
}

/// Tasks `first..end` that nobody has claimed yet, in one number so that a claim is one exchange: `first` in the low half.
/// A line of its own, and the line beside it, which processors fetch together.
#[repr(align(128))]
#[derive(Default)]
struct Run(AtomicU64);

/// What is said of a thread, and to it.
#[repr(align(128))]
#[derive(Default)]
struct Seat {
    /// Tasks it has done since this was last looked at.
    did: AtomicU64,
    /// It is not to take tasks.
    rests: AtomicBool,
}

impl Run {
    fn store(&self, first: u32, end: u32) {
        self.0.store(u64::from(end) << 32 | u64::from(first), SeqCst);
    }

    fn is_empty(&self) -> bool {
        Self::none(self.0.load(SeqCst))
    }

    /// Claims the first task, for the thread whose run it is.
    fn claim_first(&self) -> Option<usize> {
        let claim = |run| (!Self::none(run)).then(|| run + 1);
        let run = self.0.fetch_update(AcqRel, Acquire, claim).ok()?;
        Some(Self::split(run).0 as usize)
    }

    /// Claims the last task, for the others.
    fn claim_last(&self) -> Option<usize> {
        let claim = |run| (!Self::none(run)).then(|| run - (1 << 32));
        let run = self.0.fetch_update(AcqRel, Acquire, claim).ok()?;
        Some(Self::split(run).1 as usize - 1)
    }

    fn none(run: u64) -> bool {
        let (first, end) = Self::split(run);
        first == end
    }

    fn split(run: u64) -> (u32, u32) {
        (run as u32, (run >> 32) as u32)
    }
}

// SAFETY: `job` is written only by the thread that holds `busy`, while no task is unclaimed and all claimed ones are
// done; it is read only by threads that have claimed a task of it, and the claim happens after the write (release on
// the run, acquire in the claim).
unsafe impl Sync for Shared {}
// SAFETY: the pointer in `job` is only followed under the rule above.
unsafe impl Send for Shared {}

impl Pool {
    /// A pool of `threads`, the caller among them; at least one. Each but the caller calls `begin` with its number first.
    pub(crate) fn new(threads: usize, begin: impl Fn(usize) + Clone + Send + 'static) -> Self {
        fn nothing(_: usize, _: usize) {}
        const NOTHING: &Task<'static> = &nothing;
        let shared = Arc::new(Shared {
            runs: (0..threads.max(1)).map(|_| Run::default()).collect(),
            seats: (0..threads.max(1)).map(|_| Seat::default()).collect(),
            done: AtomicUsize::new(0),
            job: UnsafeCell::new(Job { task: NOTHING, total: 0 }),
            panicked: AtomicBool::new(false),
            panic: Mutex::new(None),
            closing: AtomicBool::new(false),
            beside: Arc::default(),
            sleepers: AtomicUsize::new(0),
            caller_sleeps: AtomicBool::new(false),
            door: Mutex::new(()),
            work: Condvar::new(),
            rested: Condvar::new(),
            finished: Condvar::new(),
        });
        let worker = |index| {
            let shared = shared.clone();
            let (name, begin) = (format!("kernel-{index}"), begin.clone());
            let serve = move || {
                begin(index);
                shared.serve(index);
            };
            std::thread::Builder::new().name(name).spawn(serve).ok()
        };
        // Where the system refuses a thread, the others do its work.
        let workers = (1..threads.max(1)).filter_map(worker).collect();
        Self { shared, busy: Mutex::new(Presence::new(threads.max(1))), workers }
    }

    /// Threads, the caller among them.
    pub(crate) fn threads(&self) -> usize {
        self.workers.len() + 1
    }

    /// See [`Cpu::beside`](crate::Cpu::beside).
    pub(crate) fn beside(&self) -> Arc<AtomicUsize> {
        self.shared.beside.clone()
    }

    /// Runs `task` once for each number below `tasks` and returns when all are done. A panic in one goes on in the
    /// caller, after the others are done or skipped. Called from inside a task, or while another thread's operation
    /// runs, it does all the work in the calling thread.
    pub(crate) fn run(&self, tasks: usize, task: &Task<'_>) {
        if tasks <= 1 || self.workers.is_empty() || u32::try_from(tasks).is_err() {
            return (0..tasks).for_each(|index| task(0, index));
        }
        let Ok(mut presence) = self.busy.try_lock() else {
            return (0..tasks).for_each(|index| task(0, index));
        };
        let begun = Instant::now();
        self.shared.publish(tasks, task);
        self.shared.work_off(0);
        self.shared.await_done(tasks);
        if presence.note(tasks, begun, begun.elapsed()) {
            self.shared.look_around(&mut presence);
        }
        if self.shared.panicked.load(Acquire) {
            let payload = lock(&self.shared.panic).take();
            drop(presence);
            resume_unwind(payload.unwrap_or_else(|| Box::new("a kernel task panicked")));
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.shared.closing.store(true, SeqCst);
        drop(lock(&self.shared.door));
        self.shared.work.notify_all();
        self.shared.rested.notify_all();
        for worker in self.workers.drain(..) {
            // A worker catches the panics of its tasks, so there is no result to look at.
            let _ = worker.join();
        }
    }
}

impl Shared {
    fn publish(&self, total: usize, task: &Task<'_>) {
        // SAFETY: only the lifetime changes. `run` does not return, not by unwinding either, before `done` has
        // reached `total`, and the pointer is followed only by claimants of those tasks.
        let task = unsafe { std::mem::transmute::<*const Task<'_>, *const Task<'static>>(task) };
        self.done.store(0, Relaxed);
        self.panicked.store(false, Relaxed);
        // SAFETY: the caller holds `busy` and the last job is done, so nobody reads it (see `Sync` above).
        unsafe { *self.job.get() = Job { task, total } };
        let there = self.seats.iter().filter(|seat| !seat.rests.load(Relaxed)).count();
        let present = self.runs.iter().zip(&self.seats).filter(|(_, seat)| !seat.rests.load(Relaxed));
        for (nth, (run, _)) in present.enumerate() {
            run.store((total * nth / there) as u32, (total * (nth + 1) / there) as u32);
        }
        if self.sleepers.load(SeqCst) > 0 {
            // The lock orders this with a thread between its last look and its sleep.
            let _door = lock(&self.door);
            // The caller takes a task itself.
            let wanted = self.sleepers.load(SeqCst).min(total - 1);
            // Whoever is called no longer counts as asleep, though it may take its time to get a processor: calling it
            // again for each operation until then would cost more than it brings.
            self.sleepers.fetch_sub(wanted, SeqCst);
            (0..wanted).for_each(|_| self.work.notify_one());
        }
    }

    /// A task for `thread`: its own next one, else another's last.
    fn claim(&self, thread: usize) -> Option<usize> {
        let (before, from) = self.runs.split_at(thread);
        let others = || from[1..].iter().chain(before).find_map(Run::claim_last);
        from[0].claim_first().or_else(others)
    }

    /// Sends threads that hardly come to rest, and calls back those that have rested.
    fn look_around(&self, presence: &mut Presence) {
        presence.judge(self.seats.iter().map(|seat| seat.did.swap(0, Relaxed)));
        let mut back = false;
        for (seat, rests) in self.seats.iter().zip(presence.resting()) {
            back |= seat.rests.swap(rests, SeqCst) && !rests;
        }
        if back {
            drop(lock(&self.door));
            self.rested.notify_all();
        }
    }

    /// Claims and runs tasks until none is left.
    fn work_off(&self, thread: usize) {
        let seat = &self.seats[thread];
        while let Some(index) = (!seat.rests.load(Relaxed)).then(|| self.claim(thread)).flatten() {
            seat.did.fetch_add(1, Relaxed);
            // SAFETY: a task of this job was claimed and is not done, so the job stays as it is (see `Sync` above).
            let job = unsafe { *self.job.get() };
            if !self.panicked.load(Relaxed) {
                // SAFETY: the closure outlives the job.
                let task = unsafe { &*job.task };
                if let Err(payload) = catch_unwind(AssertUnwindSafe(|| task(thread, index))) {
                    lock(&self.panic).get_or_insert(payload);
                    self.panicked.store(true, Release);
                }
            }
            if self.done.fetch_add(1, SeqCst) + 1 == job.total && self.caller_sleeps.load(SeqCst) {
                drop(lock(&self.door));
                self.finished.notify_all();
            }
        }
    }

    /// Waits for the tasks that others hold.
    fn await_done(&self, total: usize) {
        let is_done = || self.done.load(SeqCst) == total;
        // Without offering the processor to others: where those are many, it would come back much later than a sleeper's.
        if look(is_done, std::hint::spin_loop) {
            return;
        }
        let mut door = lock(&self.door);
        self.caller_sleeps.store(true, SeqCst);
        while !is_done() {
            door = self.finished.wait(door).unwrap_or_else(PoisonError::into_inner);
        }
        self.caller_sleeps.store(false, SeqCst);
    }

    /// The life of a worker.
    fn serve(&self, thread: usize) {
        let wanted = || self.runs.iter().any(|run| !run.is_empty()) || self.closing.load(SeqCst);
        let rests = || self.seats[thread].rests.load(SeqCst) && !self.closing.load(SeqCst);
        while !self.closing.load(SeqCst) {
            if rests() {
                let mut door = lock(&self.door);
                while rests() {
                    door = self.rested.wait(door).unwrap_or_else(PoisonError::into_inner);
                }
            }
            // With an offer: the caller may be waiting for this very processor. But who has stepped back behind everybody
            // would take it, and keep it for milliseconds.
            let offer = || match self.beside.load(Relaxed) {
                0 => std::thread::yield_now(),
                _ => std::hint::spin_loop(),
            };
            if !look(wanted, offer) {
                let door = lock(&self.door);
                self.sleepers.fetch_add(1, SeqCst);
                if wanted() {
                    // Nobody who saw it asleep has got the door since.
                    self.sleepers.fetch_sub(1, SeqCst);
                } else {
                    drop(self.work.wait(door));
                }
            }
            self.work_off(thread);
        }
    }
}

/// Looks for a short while whether `ready` comes true, and calls `between` looks after the first moments.
fn look(ready: impl Fn() -> bool, between: impl Fn()) -> bool {
    for _ in 0..LOOKS {
        if ready() {
            return true;
        }
        std::hint::spin_loop();
    }
    let start = Instant::now();
    while start.elapsed() < LOOK_FOR {
        if ready() {
            return true;
        }
        between();
    }
    ready()
}

/// Nothing is left half-changed under these locks, so a poisoned one is as good as any.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU32;

    #[test]
    fn every_task_runs_once() {
        for threads in [1, 2, 3, 8] {
            let pool = Pool::new(threads, |_| ());
            for tasks in [0, 1, 2, 7, if cfg!(miri) { 30 } else { 500 }] {
                let counts: Vec<AtomicU32> = (0..tasks).map(|_| AtomicU32::new(0)).collect();
                pool.run(tasks, &|thread, task| {
                    assert!(thread < threads);
                    counts[task].fetch_add(1, Relaxed);
                });
                assert!(counts.iter().all(|c| c.load(Relaxed) == 1));
            }
        }
    }

    #[test]
    fn many_short_operations_with_sleep_between() {
        let pool = Pool::new(4, |_| ());
        let sum = AtomicUsize::new(0);
        let rounds = if cfg!(miri) { 40 } else { 3000 };
        for round in 0..rounds {
            if round % (rounds / 6) == 0 {
                std::thread::sleep(Duration::from_millis(2)); // everyone is asleep now
            }
            pool.run(5, &|_, task| {
                sum.fetch_add(task, Relaxed);
            });
        }
        assert_eq!(sum.into_inner(), rounds * 10);
    }

    #[test]
    fn a_panic_reaches_the_caller_and_the_pool_goes_on() {
        let pool = Pool::new(3, |_| ());
        for bad in [0, 50, 99] {
            let caught = catch_unwind(AssertUnwindSafe(|| {
                pool.run(100, &|_, task| assert!(task != bad, "task {task} is bad"));
            }));
            let message = caught.expect_err("the panic is passed on");
            assert_eq!(message.downcast_ref::<String>(), Some(&format!("task {bad} is bad")));
        }
        let count = AtomicUsize::new(0);
        pool.run(100, &|_, _| {
            count.fetch_add(1, Relaxed);
        });
        assert_eq!(count.into_inner(), 100);
    }

    #[test]
    fn inside_a_task_and_from_two_threads() {
        let pool = Pool::new(2, |_| ());
        let count = AtomicUsize::new(0);
        let nested = || {
            pool.run(10, &|_, _| {
                pool.run(10, &|_, _| {
                    count.fetch_add(1, Relaxed);
                });
            });
        };
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(nested);
            }
        });
        assert_eq!(count.into_inner(), 400);
    }
}
