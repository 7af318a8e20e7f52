//! One buffer, written by many tasks at once, each its own part.

use std::marker::PhantomData;

/// A mutable slice whose parts are lent to parallel tasks.
pub(crate) struct Parts<'a, T> {
    start: *mut T,
    len: usize,
    owner: PhantomData<&'a mut [T]>,
}

// SAFETY: it only lends parts through `slice`, whose caller promises that parts in use at once do not overlap; the
// values themselves may cross threads.
unsafe impl<T: Send> Sync for Parts<'_, T> {}
// SAFETY: as for a `&mut [T]`.
unsafe impl<T: Send> Send for Parts<'_, T> {}

impl<'a, T> Parts<'a, T> {
    pub(crate) fn new(whole: &'a mut [T]) -> Self {
        Self { start: whole.as_mut_ptr(), len: whole.len(), owner: PhantomData }
    }

    /// Lends `len` values from `first`. Panics when they are not inside.
    ///
    /// # Safety
    /// No other part in use at the same time may overlap this one.
    #[inline]
    #[allow(clippy::mut_from_ref)] // parts are disjoint: that is the contract
    pub(crate) unsafe fn slice(&self, first: usize, len: usize) -> &mut [T] {
        assert!(first <= self.len && len <= self.len - first, "part {first}+{len} of {}", self.len);
        // SAFETY: inside the buffer by the assertion, unaliased by the caller's promise, alive for the borrow of
        // `self`, which the exclusive borrow `'a` outlives.
        unsafe { std::slice::from_raw_parts_mut(self.start.add(first), len) }
    }
}

/// The result of a matmul, `[tokens, rows]`, written by tasks that own different cells.
pub(crate) struct OutMatrix<'a> {
    cells: Parts<'a, f32>,
    rows: usize,
    add: bool,
}

impl<'a> OutMatrix<'a> {
    pub(crate) fn new(cells: &'a mut [f32], rows: usize, add: bool) -> Self {
        Self { cells: Parts::new(cells), rows, add }
    }

    /// Whether what comes is added to what is there.
    #[inline(always)]
    pub(crate) fn adds(&self) -> bool {
        self.add
    }

    /// The cells of `token` from row `first`, at most eight.
    ///
    /// # Safety
    /// No other task may use these cells at the same time.
    #[inline]
    #[allow(clippy::mut_from_ref)] // see `Parts::slice`
    pub(crate) unsafe fn eight(&self, token: usize, first: usize) -> &mut [f32] {
        // SAFETY: the caller's promise.
        unsafe { self.some(token, first, 8) }
    }

    /// The cells of `token` from row `first`, at most `most`.
    ///
    /// # Safety
    /// As for `eight`.
    #[inline(always)]
    #[allow(clippy::mut_from_ref)] // see `Parts::slice`
    pub(crate) unsafe fn some(&self, token: usize, first: usize, most: usize) -> &mut [f32] {
        let len = (self.rows - first).min(most);
        // SAFETY: the caller's promise.
        unsafe { self.cells.slice(token * self.rows + first, len) }
    }
}
