//! Zeroed buffers that begin on a cache line; large ones on large pages where the system has them.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

use memmap2::MmapMut;

use crate::KernelError;

/// A cache line, and twice the widest vector in use.
const ALIGN: usize = 64;
/// From this many bytes on a buffer has pages of its own: several large ones of 2 MiB.
const LARGE: usize = 8 << 20;

/// Types for which every bit pattern, all zeros among them, is a value, and which own nothing.
///
/// # Safety
/// Implement it for nothing else: buffers of it are born as zeroed memory and freed without dropping.
pub(crate) unsafe trait Plain: Copy + Send + Sync + 'static {}
// SAFETY: integers and floats have no invalid patterns and no destructor.
unsafe impl Plain for u8 {}
// SAFETY: as above.
unsafe impl Plain for i8 {}
// SAFETY: as above.
unsafe impl Plain for u16 {}
// SAFETY: as above.
unsafe impl Plain for u32 {}
// SAFETY: as above.
unsafe impl Plain for f32 {}

/// A fixed-size, zero-initialised slice on a 64-byte boundary. The system hands zero pages out lazily, so memory
/// that is never written is not resident (but for the rest of a large page).
pub(crate) struct Aligned<T: Plain> {
    start: NonNull<T>,
    len: usize,
    /// What a large buffer lies in; a small one is the allocator's.
    pages: Option<MmapMut>,
}

// SAFETY: it owns its memory alone, like a boxed slice, and `Plain` types cross threads.
unsafe impl<T: Plain> Send for Aligned<T> {}
// SAFETY: shared access hands out `&[T]` only.
unsafe impl<T: Plain> Sync for Aligned<T> {}

impl<T: Plain> Aligned<T> {
    /// `len` zeros, or the error when the allocator refuses.
    pub(crate) fn try_zeroed(len: usize) -> Result<Self, KernelError> {
        let too_large = KernelError::OutOfMemory { bytes: len.saturating_mul(size_of::<T>()) };
        let layout = Self::layout(len).ok_or(too_large.clone())?;
        if layout.size() == 0 {
            return Ok(Self { start: NonNull::dangling(), len, pages: None });
        }
        if layout.size() >= LARGE {
            let mut pages = large(layout.size()).ok_or(too_large)?;
            let start = NonNull::from(&mut *pages).cast();
            return Ok(Self { start, len, pages: Some(pages) });
        }
        // SAFETY: the layout has a size other than zero.
        let start = NonNull::new(unsafe { alloc_zeroed(layout) }).ok_or(too_large)?;
        Ok(Self { start: start.cast(), len, pages: None })
    }

    /// `len` zeros. For working memory, where running out ends the process as it does for `Vec`.
    pub(crate) fn zeroed(len: usize) -> Self {
        Self::try_zeroed(len)
            .unwrap_or_else(|_| handle_alloc_error(Self::layout(len).unwrap_or(Layout::new::<T>())))
    }

    /// Makes it at least `len` long; what it held is lost when it has to grow.
    pub(crate) fn reserve(&mut self, len: usize) {
        if self.len < len {
            *self = Self::zeroed(len.next_power_of_two().min(len + len / 2 + 64));
        }
    }

    fn layout(len: usize) -> Option<Layout> {
        let bytes = len.checked_mul(size_of::<T>())?;
        Layout::from_size_align(bytes, ALIGN).ok()
    }
}

impl<T: Plain> Default for Aligned<T> {
    fn default() -> Self {
        Self { start: NonNull::dangling(), len: 0, pages: None }
    }
}

impl<T: Plain> Drop for Aligned<T> {
    fn drop(&mut self) {
        let layout = Self::layout(self.len).expect("it was allocated with this layout");
        if layout.size() > 0 && self.pages.is_none() {
            // SAFETY: allocated by `try_zeroed` with the same layout, and owned by this value alone.
            unsafe { dealloc(self.start.as_ptr().cast(), layout) }
        }
    }
}

impl<T: Plain> Deref for Aligned<T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        // SAFETY: `start` points to `len` initialised values (or is dangling and aligned when there are none).
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl<T: Plain> DerefMut for Aligned<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as in `deref`, and the borrow of `self` is unique.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

/// Zero pages, large ones where they can be had: with small ones, a walk through gigabytes misses the table of pages at
/// every step.
fn large(bytes: usize) -> Option<MmapMut> {
    let pages = MmapMut::map_anon(bytes).ok()?;
    #[cfg(all(target_os = "linux", not(miri)))]
    let _ = pages.advise(memmap2::Advice::HugePage); // a wish; without it everything works
    Some(pages)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn begins_on_a_line_and_is_zero() {
        for len in [0, 1, 63, 4097, LARGE / 4, LARGE] {
            let buffer = Aligned::<f32>::zeroed(len);
            assert_eq!(buffer.len(), len);
            assert!(len == 0 || buffer.as_ptr().addr().is_multiple_of(ALIGN));
            let every = if cfg!(miri) { 4099 } else { 1 };
            assert!(buffer.iter().step_by(every).all(|v| v.to_bits() == 0));
        }
    }

    #[test]
    fn impossible_sizes_are_an_error() {
        assert!(matches!(Aligned::<f32>::try_zeroed(usize::MAX), Err(KernelError::OutOfMemory { .. })));
        assert!(matches!(Aligned::<f32>::try_zeroed(usize::MAX / 8), Err(KernelError::OutOfMemory { .. })));
    }

    #[test]
    fn reserve_only_grows() {
        let mut buffer = Aligned::<u8>::zeroed(10);
        buffer.reserve(5);
        assert_eq!(buffer.len(), 10);
        buffer.reserve(1000);
        assert!(buffer.len() >= 1000);
    }
}
