//! A stored block as bytes: whose it is, what it is, and a checksum of everything.
//!
//! | bytes | what |
//! |---|---|
//! | 0..8 | `JFKVBLK` and a zero |
//! | 8..12 | version, 2: of this format, and of how keys and values are computed |
//! | 12..16 | zero |
//! | 16..48 | fingerprint of the model: weights, tokenizer, template |
//! | 48..80 | the adapter; zeros: none |
//! | 80..112 | layout: one byte each for how the arena keeps numbers (0: 16-bit floats, 1: 8 bits) and how they are stored, two zeros; then layers, heads, dimensions of a head, positions, 4 bytes each; zeros |
//! | 112..144 | the hash of the prefix, salted |
//! | 144..152 | length of the keys and values that follow, in bytes |
//! | … | keys and values, see `jackfield_kernels::KvArena::export_block` |
//! | the last 32 | BLAKE3 of all before |
//!
//! Numbers are little-endian. The checksum finds what is torn, cut or decayed; it does not tell a forger from this host. Whoever
//! can write to the folder or to the server can make the model say anything, as who can write to the model's file can.

use bytes::Bytes;
use jackfield_kernels::{KvShape, KvStore, KvType};
use jackfield_scheduler::BlockHash;

use super::stats::Rejection;

pub(crate) const HEADER: usize = 152;
pub(crate) const CHECKSUM: usize = 32;
const MAGIC: &[u8; 8] = b"JFKVBLK\0";
const VERSION: u32 = 2;

/// What must agree for keys and values to be of use here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Identity {
    model: [u8; 32],
    adapter: [u8; 32],
    layout: [u8; 32],
    payload: u64,
}

/// What the numbers of a block depend on, beside the model and the tokens.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Kept {
    pub(crate) shape: KvShape,
    pub(crate) kv_type: KvType,
    pub(crate) store: KvStore,
    /// Bytes of a stored block.
    pub(crate) bytes: usize,
}

impl Identity {
    pub(crate) fn new(model: [u8; 32], kept: &Kept) -> Self {
        let number = |kv_type| match kv_type {
            KvType::F16 => 0,
            KvType::Int8 => 1,
        };
        let mut layout = [0; 32];
        layout[0] = number(kept.kv_type);
        layout[1] = number(kept.store.kv_type(kept.kv_type));
        let shape = kept.shape;
        let sizes = [shape.layers, shape.kv_heads, shape.head_dim, shape.block_size];
        for (to, size) in layout[4..].chunks_exact_mut(4).zip(sizes) {
            to.copy_from_slice(&(size as u32).to_le_bytes());
        }
        Identity { model, adapter: [0; 32], layout, payload: kept.bytes as u64 }
    }

    /// Bytes of keys and values.
    pub(crate) fn payload_bytes(&self) -> usize {
        self.payload as usize
    }

    /// Bytes of a whole stored block.
    pub(crate) fn image_bytes(&self) -> usize {
        HEADER + self.payload_bytes() + CHECKSUM
    }

    pub(crate) fn header(&self, prefix: &BlockHash) -> [u8; HEADER] {
        let mut header = [0; HEADER];
        header[..8].copy_from_slice(MAGIC);
        header[8..12].copy_from_slice(&VERSION.to_le_bytes());
        header[16..48].copy_from_slice(&self.model);
        header[48..80].copy_from_slice(&self.adapter);
        header[80..112].copy_from_slice(&self.layout);
        header[112..144].copy_from_slice(prefix.as_bytes());
        header[144..].copy_from_slice(&self.payload.to_le_bytes());
        header
    }

    /// A whole stored block.
    pub(crate) fn image(&self, prefix: &BlockHash, payload: &[u8]) -> Vec<u8> {
        let header = self.header(prefix);
        [&header[..], payload, &checksum(&header, payload)].concat()
    }

    /// The payload of a whole stored block that is what is looked for.
    pub(crate) fn open(&self, image: Vec<u8>, prefix: &BlockHash) -> Result<Bytes, Rejection> {
        self.check(&image, prefix)?;
        Ok(Bytes::from(image).slice(HEADER..HEADER + self.payload_bytes()))
    }

    /// Names everything that must agree but the prefix.
    pub(crate) fn name(&self) -> String {
        let header = self.header(&BlockHash::from_bytes([0; 32]));
        blake3::hash(&header).to_hex()[..32].to_owned()
    }

    /// Whether what follows may be what is looked for. One flipped bit in here makes it look like somebody else's.
    pub(crate) fn check_header(&self, header: &[u8; HEADER], prefix: &BlockHash) -> Result<(), Rejection> {
        let wanted = self.header(prefix);
        let parts = [
            (0..16, Rejection::Format),
            (16..48, Rejection::Model),
            (48..80, Rejection::Model),
            (80..112, Rejection::Layout),
            (112..144, Rejection::Name),
            (144..HEADER, Rejection::Length),
        ];
        let wrong = parts.into_iter().find(|(part, _)| header[part.clone()] != wanted[part.clone()]);
        wrong.map_or(Ok(()), |(_, rejection)| Err(rejection))
    }

    /// Whether a whole stored block is what is looked for.
    pub(crate) fn check(&self, image: &[u8], prefix: &BlockHash) -> Result<(), Rejection> {
        let header = image.first_chunk().ok_or(Rejection::Length)?;
        self.check_header(header, prefix)?;
        if image.len() != self.image_bytes() {
            return Err(Rejection::Length);
        }
        let (signed, checksum) = image.split_at(image.len() - CHECKSUM);
        if blake3::hash(signed).as_bytes() == checksum { Ok(()) } else { Err(Rejection::Checksum) }
    }
}

/// Of everything before it.
pub(crate) fn checksum(header: &[u8; HEADER], payload: &[u8]) -> [u8; CHECKSUM] {
    *blake3::Hasher::new().update(header).update(payload).finalize().as_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPE: KvShape = KvShape { layers: 2, blocks: 9, block_size: 16, kv_heads: 2, head_dim: 16 };
    const KEPT: Kept = Kept { shape: SHAPE, kv_type: KvType::F16, store: KvStore::Int8, bytes: 40 };

    fn prefix(number: u8) -> BlockHash {
        BlockHash::from_bytes([number; 32])
    }

    fn image(identity: &Identity) -> Vec<u8> {
        identity.image(&prefix(1), &[7; 40])
    }

    #[test]
    fn no_bit_may_differ_and_no_byte_may_be_missing() {
        let identity = Identity::new([5; 32], &KEPT);
        let sound = image(&identity);
        assert_eq!(identity.check(&sound, &prefix(1)), Ok(()));
        for bit in 0..sound.len() * 8 {
            let mut flipped = sound.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(identity.check(&flipped, &prefix(1)).is_err(), "bit {bit}");
        }
        for len in 0..sound.len() {
            assert_eq!(identity.check(&sound[..len], &prefix(1)), Err(Rejection::Length), "{len} bytes");
        }
        assert_eq!(identity.check(&[&sound[..], &[0]].concat(), &prefix(1)), Err(Rejection::Length));
    }

    #[test]
    fn it_is_told_what_does_not_agree() {
        let identity = Identity::new([5; 32], &KEPT);
        let sound = image(&identity);
        assert_eq!(identity.check(&sound, &prefix(2)), Err(Rejection::Name));
        assert_eq!(Identity::new([6; 32], &KEPT).check(&sound, &prefix(1)), Err(Rejection::Model));
        let others = [
            Kept { kv_type: KvType::Int8, ..KEPT },
            Kept { store: KvStore::Same, ..KEPT },
            Kept { shape: KvShape { block_size: 8, ..SHAPE }, ..KEPT },
            Kept { shape: KvShape { layers: 3, ..SHAPE }, ..KEPT },
            Kept { shape: KvShape { kv_heads: 1, head_dim: 32, ..SHAPE }, ..KEPT },
        ];
        for other in others {
            assert_eq!(
                Identity::new([5; 32], &other).check(&sound, &prefix(1)),
                Err(Rejection::Layout),
                "{other:?}"
            );
        }
        let more = Kept { shape: KvShape { blocks: 10, ..SHAPE }, ..KEPT };
        assert_eq!(Identity::new([5; 32], &more).check(&sound, &prefix(1)), Ok(()), "the pool may grow");
    }
}
