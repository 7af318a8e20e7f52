//! The prefix cache: which block holds which prefix.

use std::collections::HashMap;
use std::fmt;

use crate::request::BlockId;

/// All tokens from the start to the end of one whole block, under a salt: a link of the hash chain, all 256 bits of it.
/// Equal hashes are taken for equal prefixes, so nothing shorter would do where an asker may look for collisions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlockHash([u8; 32]);

/// The hashes of all whole blocks of these tokens, in order: the names under which their keys and values may be kept
/// elsewhere. Takes time with the tokens.
pub fn block_hashes(tokens: &[u32], salt: &[u8; 32], block_size: usize) -> Vec<BlockHash> {
    let mut chain = Chain::new(salt, block_size);
    for block in tokens.chunks_exact(block_size) {
        chain.push(block.iter().copied());
    }
    chain.links
}

/// The names of what may be kept of a block that was never filled: of the one after `blocks` whole ones, its first tokens, as many
/// as `tokens` has of it and then fewer and fewer. `chain` names the whole ones, as [`block_hashes`] does.
pub fn tail_hashes(
    tokens: &[u32],
    salt: &[u8; 32],
    block_size: usize,
    chain: &[BlockHash],
    blocks: usize,
) -> Vec<BlockHash> {
    let root = Chain::new(salt, block_size).root;
    let Some(before) = blocks.checked_sub(1).map_or(Some(root), |last| chain.get(last).copied()) else {
        return Vec::new();
    };
    let begun = tokens.get(blocks * block_size..).unwrap_or_default();
    let begun = &begun[..begun.len().min(block_size - 1)];
    (1..=begun.len()).rev().map(|some| link(&before, begun[..some].iter().copied())).collect()
}

impl BlockHash {
    /// A hash that was written down.
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        BlockHash(bytes)
    }

    /// All of it.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

/// 64 hexadecimal digits.
impl fmt::Display for BlockHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// The hashes of a sequence's whole blocks, extended one block at a time.
#[derive(Debug, Clone)]
pub(crate) struct Chain {
    root: BlockHash,
    links: Vec<BlockHash>,
}

/// Finds published blocks. Owns none: the pool tells it what is evicted.
#[derive(Debug, Default)]
pub(crate) struct PrefixCache {
    /// Never iterated over.
    blocks: HashMap<BlockHash, BlockId>,
}

impl Chain {
    /// The empty prefix under a salt. The block size is part of it: the same tokens cut otherwise are another chain.
    pub(crate) fn new(salt: &[u8; 32], block_size: usize) -> Self {
        let mut hasher = blake3::Hasher::new_derive_key("jackfield 2025 prefix chain, root");
        hasher.update(salt).update(&(block_size as u64).to_le_bytes());
        Chain { root: BlockHash(*hasher.finalize().as_bytes()), links: Vec::new() }
    }

    /// Blocks hashed so far.
    pub(crate) fn len(&self) -> usize {
        self.links.len()
    }

    /// The link of a block hashed before.
    pub(crate) fn get(&self, block: usize) -> Option<BlockHash> {
        self.links.get(block).copied()
    }

    /// Adds the next block.
    pub(crate) fn push(&mut self, tokens: impl ExactSizeIterator<Item = u32>) -> BlockHash {
        let link = link(self.links.last().unwrap_or(&self.root), tokens);
        self.links.push(link);
        link
    }

    /// The name of some tokens after `blocks` blocks, which do not fill another one. None when these are not hashed yet.
    pub(crate) fn tail(
        &self,
        blocks: usize,
        tokens: impl ExactSizeIterator<Item = u32>,
    ) -> Option<BlockHash> {
        let before = match blocks {
            0 => Some(self.root),
            _ => self.get(blocks - 1),
        };
        Some(link(&before?, tokens))
    }
}

/// What is hashed is framed: the link before (32 bytes), the count, then 4 bytes a token. So the beginning of a block has another
/// name than the block.
fn link(before: &BlockHash, tokens: impl ExactSizeIterator<Item = u32>) -> BlockHash {
    let mut hasher = blake3::Hasher::new_derive_key("jackfield 2025 prefix chain, block");
    hasher.update(&before.0).update(&(tokens.len() as u64).to_le_bytes());
    // A hasher call per token costs more than the hash.
    let mut bytes = [0; 256];
    let mut filled = 0;
    for token in tokens {
        bytes[filled..filled + 4].copy_from_slice(&token.to_le_bytes());
        filled += 4;
        if filled == bytes.len() {
            hasher.update(&bytes);
            filled = 0;
        }
    }
    hasher.update(&bytes[..filled]);
    BlockHash(*hasher.finalize().as_bytes())
}

impl PrefixCache {
    /// The block that holds this prefix.
    pub(crate) fn find(&self, prefix: &BlockHash) -> Option<BlockId> {
        self.blocks.get(prefix).copied()
    }

    /// Says where a prefix is. One block per prefix: false, and nothing changed, when there is one already.
    pub(crate) fn publish(&mut self, prefix: BlockHash, block: BlockId) -> bool {
        match self.blocks.entry(prefix) {
            std::collections::hash_map::Entry::Occupied(_) => false,
            std::collections::hash_map::Entry::Vacant(place) => {
                place.insert(block);
                true
            }
        }
    }

    /// Its block was given to something else.
    pub(crate) fn forget(&mut self, prefix: &BlockHash) {
        self.blocks.remove(prefix);
    }

    /// Published prefixes.
    pub(crate) fn len(&self) -> usize {
        self.blocks.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chain(salt: u8, block_size: usize, tokens: &[u32]) -> Chain {
        let mut chain = Chain::new(&[salt; 32], block_size);
        for block in tokens.chunks_exact(block_size) {
            chain.push(block.iter().copied());
        }
        chain
    }

    #[test]
    fn a_link_stands_for_everything_before_it() {
        let one = chain(0, 2, &[1, 2, 3, 4]);
        assert_eq!(one.get(1), chain(0, 2, &[1, 2, 3, 4, 5, 6]).get(1));
        assert_ne!(one.get(1), chain(0, 2, &[1, 9, 3, 4]).get(1));
        assert_ne!(one.get(0), one.get(1));
        assert_eq!(one.get(2), None);
    }

    #[test]
    fn salt_and_block_size_part_equal_tokens() {
        let tokens = [7; 8];
        let links = [chain(0, 2, &tokens), chain(1, 2, &tokens), chain(0, 4, &tokens)].map(|c| c.get(0));
        assert!(links[0] != links[1] && links[0] != links[2] && links[1] != links[2]);
    }

    #[test]
    fn the_hashes_of_a_text_are_the_links_of_its_chain() {
        let tokens = [1, 2, 3, 4, 5];
        let hashes = block_hashes(&tokens, &[3; 32], 2);
        assert_eq!(hashes, chain(3, 2, &tokens).links);
        assert_eq!(hashes.len(), 2);
        assert_eq!(BlockHash::from_bytes(*hashes[1].as_bytes()), hashes[1]);
        assert_eq!(hashes[0].to_string().len(), 64);
        assert_eq!(BlockHash([0xa5; 32]).to_string(), "a5".repeat(32));
    }

    #[test]
    fn every_token_of_a_large_block_counts() {
        let mut tokens: Vec<u32> = (0..200).collect();
        let whole = chain(0, 200, &tokens).get(0);
        for at in [0, 63, 64, 127, 128, 199] {
            tokens[at] += 1000;
            assert_ne!(whole, chain(0, 200, &tokens).get(0), "token {at}");
            tokens[at] -= 1000;
        }
    }

    #[test]
    fn the_first_block_of_a_prefix_stays() {
        let mut cache = PrefixCache::default();
        let prefix = chain(0, 1, &[1]).get(0).unwrap();
        assert!(cache.publish(prefix, BlockId(3)));
        assert!(!cache.publish(prefix, BlockId(4)));
        assert_eq!(cache.find(&prefix), Some(BlockId(3)));
        cache.forget(&prefix);
        assert_eq!(cache.find(&prefix), None);
    }
}
