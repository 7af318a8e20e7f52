//! A cursor that never reads past the end and never allocates.

use super::{Fault, GgufError};

/// Reads little-endian fields; the name of a field is made only when something is wrong with it.
#[derive(Clone)]
pub(super) struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8], at: usize) -> Self {
        Self { bytes, at: at.min(bytes.len()) }
    }

    pub(super) fn at(&self) -> usize {
        self.at
    }

    /// The next `len` bytes, borrowed from the file.
    pub(super) fn take(&mut self, len: u64, field: impl Fn() -> String) -> Result<&'a [u8], GgufError> {
        let available = (self.bytes.len() - self.at) as u64;
        if len > available {
            let fault = Fault::Truncated { needed: len, available };
            return Err(GgufError::bad(field(), self.at as u64, fault));
        }
        let start = self.at;
        self.at += len as usize;
        Ok(&self.bytes[start..self.at])
    }

    fn array<const N: usize>(&mut self, field: impl Fn() -> String) -> Result<[u8; N], GgufError> {
        let mut out = [0; N];
        out.copy_from_slice(self.take(N as u64, field)?);
        Ok(out)
    }

    pub(super) fn u8(&mut self, field: impl Fn() -> String) -> Result<u8, GgufError> {
        Ok(self.array::<1>(field)?[0])
    }

    pub(super) fn u16(&mut self, field: impl Fn() -> String) -> Result<u16, GgufError> {
        Ok(u16::from_le_bytes(self.array(field)?))
    }

    pub(super) fn u32(&mut self, field: impl Fn() -> String) -> Result<u32, GgufError> {
        Ok(u32::from_le_bytes(self.array(field)?))
    }

    pub(super) fn u64(&mut self, field: impl Fn() -> String) -> Result<u64, GgufError> {
        Ok(u64::from_le_bytes(self.array(field)?))
    }

    /// The bytes of a length-prefixed string of at most `limit` bytes; UTF-8 is checked by `utf8`.
    pub(super) fn string(&mut self, limit: u64, field: impl Fn() -> String) -> Result<&'a [u8], GgufError> {
        let start = self.at as u64;
        let len = self.u64(&field)?;
        if len > limit {
            return Err(GgufError::bad(field(), start, Fault::TooMany { found: len, limit }));
        }
        self.take(len, field)
    }
}

/// The text of bytes found at `offset`.
pub(super) fn utf8(bytes: &[u8], offset: usize, field: impl Fn() -> String) -> Result<&str, GgufError> {
    std::str::from_utf8(bytes)
        .map_err(|e| GgufError::bad(field(), (offset + e.valid_up_to()) as u64, Fault::NotUtf8))
}
