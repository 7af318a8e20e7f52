//! Merging neighbours by rank: the core that byte-level BPE and SentencePiece share.
//!
//! Symbols are a linked list in one array, candidates a heap ordered by (rank, position). A candidate whose
//! symbols have changed since is recognised by its ends and skipped, so a word of n symbols costs O(n log n).

use std::cmp::Reverse;
use std::collections::BinaryHeap;

const NONE: u32 = u32::MAX;

/// One symbol: `len` bytes of the word from `start`, known as `token` where it has one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Symbol {
    pub(super) start: u32,
    pub(super) len: u32,
    pub(super) token: u32,
    prev: u32,
    next: u32,
}

/// What a pair of neighbours would become, and how soon: the lowest rank goes first, then the leftmost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Merge {
    pub(super) rank: u32,
    pub(super) token: u32,
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Candidate {
    rank: u32,
    left: u32,
    right: u32,
    /// Bytes of both symbols together: another sum says that one of them has changed.
    bytes: u32,
    token: u32,
}

/// Buffers that are reused from word to word.
#[derive(Default)]
pub(super) struct Merger {
    symbols: Vec<Symbol>,
    heap: BinaryHeap<Reverse<Candidate>>,
}

impl Merger {
    pub(super) fn clear(&mut self) {
        self.symbols.clear();
        self.heap.clear();
    }

    /// Appends a symbol to the word; `start` is the sum of the lengths before it.
    pub(super) fn push(&mut self, len: u32, token: u32) {
        let i = self.symbols.len() as u32;
        let (prev, start) = match self.symbols.last_mut() {
            Some(last) => {
                last.next = i;
                (i - 1, last.start + last.len)
            }
            None => (NONE, 0),
        };
        self.symbols.push(Symbol { start, len, token, prev, next: NONE });
    }

    /// Merges until no pair is left that `pair` knows.
    pub(super) fn run(&mut self, pair: &dyn Fn(&Symbol, &Symbol) -> Option<Merge>) {
        for left in 1..self.symbols.len() as u32 {
            self.consider(left - 1, left, pair);
        }
        while let Some(Reverse(candidate)) = self.heap.pop() {
            self.apply(&candidate, pair);
        }
    }

    fn apply(&mut self, candidate: &Candidate, pair: &dyn Fn(&Symbol, &Symbol) -> Option<Merge>) {
        let (left, right) = (self.symbols[candidate.left as usize], self.symbols[candidate.right as usize]);
        if left.len == 0 || right.len == 0 || left.len + right.len != candidate.bytes {
            return;
        }
        self.symbols[candidate.right as usize].len = 0;
        let merged = &mut self.symbols[candidate.left as usize];
        merged.len = candidate.bytes;
        merged.token = candidate.token;
        merged.next = right.next;
        if right.next != NONE {
            self.symbols[right.next as usize].prev = candidate.left;
        }
        self.consider(left.prev, candidate.left, pair);
        self.consider(candidate.left, right.next, pair);
    }

    fn consider(&mut self, left: u32, right: u32, pair: &dyn Fn(&Symbol, &Symbol) -> Option<Merge>) {
        if left == NONE || right == NONE {
            return;
        }
        let (a, b) = (&self.symbols[left as usize], &self.symbols[right as usize]);
        if let Some(Merge { rank, token }) = pair(a, b) {
            self.heap.push(Reverse(Candidate { rank, left, right, bytes: a.len + b.len, token }));
        }
    }

    /// The symbols that are left, in order.
    pub(super) fn symbols(&self) -> impl Iterator<Item = &Symbol> {
        self.symbols.iter().filter(|symbol| symbol.len > 0)
    }
}
