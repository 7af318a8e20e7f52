//! Integer products on processors that have an instruction for them: four products of bytes added to a 32-bit sum.
//!
//! The loop is written once, over [`Dot`]; an instruction set brings the instruction and the few operations around it.
//! What it goes through, and in which order (`formats.rs`, `view.rs`), AVX2's own loop shares.
//! The tests also run it in plain Rust (`plain.rs`), so that it is held to the reference on any processor.

mod formats;
#[cfg(test)]
pub(super) mod plain;
mod product;
mod view;

use std::ops::Range;

pub(super) use formats::{Format, Visit, with_format};
#[cfg(target_arch = "aarch64")]
pub(super) use product::{chunk_codes, whole_products};
pub(super) use product::{matmul, tokens};
pub(super) use view::{AHEAD, Activations, CACHED, Column, View};

use crate::shared::OutMatrix;

/// An instruction set's vectors of eight lanes or more: a lane is a row of a tile, or of several tiles side by side.
///
/// Implementations are `#[inline(always)]` and without features of their own; `tokens` is where the features are, and
/// everything is compiled into it. (A function with fewer features would not be inlined into it, one with more could
/// not be generic over the set.)
///
/// # Safety
/// For all functions: the processor has the instructions, and what a pointer is said to point to is there.
pub(super) trait Dot: Sized {
    /// Four bytes, or a 32-bit sum, for each lane.
    type Ints: Copy;
    /// A number for each lane.
    type Floats: Copy;
    /// Tiles side by side: one, two or four.
    const TILES: usize;
    /// Tokens in a register tile: a power of two up to sixteen.
    const TOKENS: usize;
    /// Bytes of weights, and of activations, to be worked on at a time.
    const CACHED: usize = CACHED;
    /// How far before its use a byte of weights is asked for, where they are read once.
    const AHEAD: usize = AHEAD;
    /// Whether codes are taken as signed. Where they are not, signed ones are raised by 128 and 128 is their zero.
    const SIGNED: bool;

    /// [`tokens`] for this set, compiled with its features.
    ///
    /// # Safety
    /// As for [`tokens`].
    unsafe fn tokens<F: Format>(
        view: &View<'_>,
        tiles: Range<usize>,
        tokens: Range<usize>,
        out: &OutMatrix<'_>,
    );

    /// Asks for the line of memory around `at`, which need not be ours: nothing is read.
    fn prefetch(_at: *const u8) {}
    /// Zeros.
    unsafe fn zero() -> Self::Ints;
    /// 32 bytes from `from` and, for each further tile, 32 from `next` bytes on.
    unsafe fn codes(from: *const u8, next: usize) -> Self::Ints;
    /// The low four bits of each byte.
    unsafe fn low(both: Self::Ints) -> Self::Ints;
    /// The high four bits of each byte.
    unsafe fn high(both: Self::Ints) -> Self::Ints;
    /// Signed bytes raised by 128. Only called where codes are unsigned.
    unsafe fn raise(codes: Self::Ints) -> Self::Ints;
    /// Codes shifted left by `bits`, which they have room for. Only called where codes are unsigned.
    unsafe fn up(codes: Self::Ints, bits: u32) -> Self::Ints;
    /// Byte `i` of each lane, below 4, with its sign.
    unsafe fn byte(codes: Self::Ints, i: usize) -> Self::Ints;
    /// The same four bytes for every lane.
    unsafe fn four(x: *const i8) -> Self::Ints;
    /// sum + the four products of codes and activations, in each lane.
    unsafe fn dot(sum: Self::Ints, codes: Self::Ints, x: Self::Ints) -> Self::Ints;

    /// For `S` tokens, the sums of code × activation over one sub-group, for all lanes. A set with an instruction for
    /// several tokens at once brings its own.
    ///
    /// # Safety
    /// As for `product::whole_products`.
    #[inline(always)]
    unsafe fn whole_products<F: Format, const S: usize>(
        codes: *const u8,
        next: usize,
        x: Activations,
        sub: usize,
    ) -> [Self::Ints; S] {
        // SAFETY: the caller's promise.
        unsafe { product::whole_products::<Self, F, S>(codes, next, x, sub) }
    }

    /// A number in every lane.
    unsafe fn splat(value: f32) -> Self::Floats;
    /// Eight 16-bit floats from `from` and, for each further tile, eight from `next` numbers on.
    unsafe fn halves(from: *const u16, next: usize) -> Self::Floats;
    /// Sums as floats.
    unsafe fn float(sums: Self::Ints) -> Self::Floats;
    /// a · b
    unsafe fn mul(a: Self::Floats, b: Self::Floats) -> Self::Floats;
    /// a · b + c, rounded once
    unsafe fn mul_add(a: Self::Floats, b: Self::Floats, c: Self::Floats) -> Self::Floats;
    /// a + b
    unsafe fn add(a: Self::Floats, b: Self::Floats) -> Self::Floats;
    /// As many floats as there are lanes.
    unsafe fn load(from: *const f32) -> Self::Floats;
    /// The same way back.
    unsafe fn store(values: Self::Floats, to: *mut f32);
}
