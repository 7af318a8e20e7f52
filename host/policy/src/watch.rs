//! Watching streams natively.
//!
//! The patterns of an output filter are compiled once into [`Watches`]. Each stream has a [`Watcher`], which takes the
//! text as it comes, finds the matches that the regex would have over the whole answer, and knows which trailing bytes
//! could still become (part of) one. The guest is asked only about text that has a hit.
//!
//! Semantics, for each watch by itself: the matches of `find_iter` (leftmost-first, not overlapping), with ASCII word
//! boundaries. How the text was cut into deltas changes nothing, since the automaton goes byte by byte and remembers only
//! its own state; that is also why nothing of an eventual match is released early.
//!
//! The bound: a match that stays open for [`Watches::bound_bytes`] is reported as a hit that is `cut`, piece by piece
//! while it stays open, so that a stream can be neither stalled nor slipped past with a long enough text.

mod automaton;
mod build;
mod watcher;

use std::sync::Arc;

use automaton::Automaton;
pub use watcher::{Found, Watcher};

use crate::types::Watch;

/// Why a pattern cannot be watched.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WatchError {
    /// More patterns than one policy may have.
    #[error("{found} watches; at most {max}")]
    TooMany {
        /// How many there are.
        found: usize,
        /// How many there may be.
        max: usize,
    },
    /// The pattern is not a regex.
    #[error("watch `{name}`: {message}")]
    Syntax {
        /// The watch.
        name: String,
        /// What the parser says.
        message: String,
    },
    /// The pattern matches the empty text, or nothing at all.
    #[error("watch `{name}` {what}")]
    Pointless {
        /// The watch.
        name: String,
        /// Which of the two.
        what: &'static str,
    },
    /// The automaton would be too large.
    #[error(
        "watch `{name}` needs an automaton larger than {max_bytes} bytes; use ASCII classes such as (?-u:\\w) in the \
         place of \\w, and smaller counts"
    )]
    TooLarge {
        /// The watch.
        name: String,
        /// The limit.
        max_bytes: usize,
    },
}

/// The compiled patterns of one policy, shared by all its streams.
#[derive(Debug)]
pub struct Watches {
    automata: Vec<Automaton>,
    bound_bytes: usize,
}

impl Watches {
    /// Patterns that one policy may have.
    pub const MAX: usize = 64;
    /// What all automata of one policy may take together, in bytes.
    pub const MAX_BYTES: usize = 32 << 20;

    /// Compile patterns. `bound_bytes` is how long a match may stay open in a stream.
    ///
    /// # Errors
    /// The first pattern that cannot be watched, and why.
    pub fn compile(patterns: &[Watch], bound_bytes: usize) -> Result<Arc<Watches>, WatchError> {
        if patterns.len() > Watches::MAX {
            return Err(WatchError::TooMany { found: patterns.len(), max: Watches::MAX });
        }
        let mut left = Watches::MAX_BYTES;
        let mut automata = Vec::with_capacity(patterns.len());
        for pattern in patterns {
            let automaton = build::build(pattern, left)?;
            left = left.saturating_sub(automaton.size_bytes());
            automata.push(automaton);
        }
        Ok(Arc::new(Watches { automata, bound_bytes: bound_bytes.max(1) }))
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.automata.is_empty()
    }

    /// Number of patterns.
    pub fn len(&self) -> usize {
        self.automata.len()
    }

    /// How long a match may stay open, in bytes.
    pub fn bound_bytes(&self) -> usize {
        self.bound_bytes
    }

    /// What the automata take, in bytes.
    pub fn size_bytes(&self) -> usize {
        self.automata.iter().map(Automaton::size_bytes).sum()
    }
}

#[cfg(test)]
mod tests;
