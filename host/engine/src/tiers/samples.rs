//! Blocks for the tests of the tiers below memory.

use bytes::Bytes;
use jackfield_kernels::{KvShape, KvStore, KvType};
use jackfield_scheduler::BlockHash;

use super::stored::{Identity, Kept};

/// Bytes of a block's keys and values.
pub(super) const PAYLOAD: usize = 100;

/// Of a model by number, with a cache of this type.
pub(super) fn identity(model: u8, kv_type: KvType) -> Identity {
    let shape = KvShape { layers: 1, blocks: 1, block_size: 16, kv_heads: 1, head_dim: 8 };
    let store = KvStore::Same;
    Identity::new([model; 32], &Kept { shape, kv_type, store, bytes: PAYLOAD })
}

pub(super) fn prefix(number: u8) -> BlockHash {
    BlockHash::from_bytes([number; 32])
}

pub(super) fn payload(number: u8) -> Bytes {
    vec![number; PAYLOAD].into()
}
