//! The bytes of a file: mapped, or held in memory by tests and the fuzzer.

use std::fs::File;
use std::ops::Deref;
use std::path::Path;

use memmap2::Mmap;

/// The whole file as one slice.
pub(super) enum Bytes {
    Mapped(Mmap),
    Held(Vec<u8>),
}

impl Bytes {
    pub(super) fn map(path: &Path) -> std::io::Result<Self> {
        let file = File::open(path)?;
        if file.metadata()?.len() == 0 {
            return Ok(Self::Held(Vec::new())); // an empty file cannot be mapped everywhere
        }
        map_file(&file).map(Self::Mapped)
    }
}

/// SAFETY contract of the mapping: nobody may change or shorten the file while it is mapped. Another process
/// can break it, so the mapping lives only while a model is loading (`Model::load` copies or repacks every
/// tensor and drops it); a file that shrinks in that second ends the process with SIGBUS, one that shrinks
/// later touches nothing.
#[allow(unsafe_code)]
fn map_file(file: &File) -> std::io::Result<Mmap> {
    // SAFETY: the mapping is read-only and private, and short-lived as said above.
    unsafe { Mmap::map(file) }
}

impl Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Mapped(map) => map,
            Self::Held(bytes) => bytes,
        }
    }
}
