//! Watching one stream.

use std::sync::Arc;

use super::{Automaton, Watches};

/// A match in the pending text, or a piece of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// Index of the watch.
    pub watch: usize,
    /// First byte, in the pending text.
    pub start: usize,
    /// One past its last byte.
    pub end: usize,
    /// Still open when it reached the bound.
    pub cut: bool,
}

/// The state of one stream: its pending text, what was found in it, and what could still be found.
#[derive(Debug)]
pub struct Watcher {
    watches: Arc<Watches>,
    pending: String,
    /// The last byte that was released: what look-behind sees before the pending text.
    before: Option<u8>,
    cursors: Vec<Cursor>,
    found: Vec<Found>,
    finished: bool,
}

/// How far one watch has got in the pending text.
#[derive(Clone, Copy, Debug, Default)]
struct Cursor {
    /// Bytes seen.
    at: usize,
    candidate: Option<Candidate>,
}

/// A place where a match may have begun, and the automaton run from there.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    start: usize,
    row: u32,
    /// Where the best match so far ends.
    matched: Option<usize>,
    /// Its first pieces were reported already; `start` is where the rest begins.
    cut: bool,
}

impl Watcher {
    /// For a stream that has not begun.
    pub fn new(watches: Arc<Watches>) -> Watcher {
        let cursors = vec![Cursor::default(); watches.automata.len()];
        Watcher { watches, pending: String::new(), before: None, cursors, found: Vec::new(), finished: false }
    }

    /// More text.
    pub fn feed(&mut self, text: &str) {
        self.pending.push_str(text);
        self.advance();
    }

    /// No more text will follow: nothing is held after this.
    pub fn finish(&mut self) {
        self.finished = true;
        self.advance();
    }

    /// Text that was not released yet.
    pub fn pending(&self) -> &str {
        &self.pending
    }

    /// Leading bytes of [`Watcher::pending`] in which everything is decided. The others are held: they could still become
    /// part of a match, or are part of one that reaches into those.
    pub fn decided_bytes(&self) -> usize {
        let open = self
            .cursors
            .iter()
            .map(|cursor| cursor.candidate.map_or(cursor.at, |c| c.start))
            .min()
            .unwrap_or(self.pending.len());
        let whole = self.clear_of_matches(open);
        // Watches that overlap in turn could keep each other open for ever: past twice the bound, matches are split.
        if self.pending.len() - whole > 2 * self.watches.bound_bytes {
            return open;
        }
        whole
    }

    /// The last place at or before `limit` that lies inside no match.
    fn clear_of_matches(&self, mut limit: usize) -> usize {
        loop {
            let across = |found: &&Found| found.start < limit && limit < found.end;
            match self.found.iter().filter(across).map(|f| f.start).min() {
                Some(start) => limit = start,
                None => return limit,
            }
        }
    }

    /// What was found in the decided bytes, in order of start, then of watch.
    pub fn found(&self) -> Vec<Found> {
        let decided = self.decided_bytes();
        let mut found: Vec<Found> = self
            .found
            .iter()
            .filter(|found| found.start < decided)
            .map(|&found| Found {
                end: found.end.min(decided),
                cut: found.cut || found.end > decided,
                ..found
            })
            .collect();
        found.sort_by_key(|found| (found.start, found.watch, found.end));
        found
    }

    /// Whether anything was found in the decided bytes.
    pub fn has_found(&self) -> bool {
        if self.found.is_empty() {
            return false;
        }
        let decided = self.decided_bytes();
        self.found.iter().any(|found| found.start < decided)
    }

    /// Forget the first `bytes` of the pending text: they were sent, or dropped. Never more than
    /// [`Watcher::decided_bytes`], and never half a scalar: then it does nothing.
    pub fn release(&mut self, bytes: usize) {
        if bytes == 0 || bytes > self.decided_bytes() || !self.pending.is_char_boundary(bytes) {
            return;
        }
        self.before = self.pending.as_bytes().get(bytes - 1).copied();
        self.pending.drain(..bytes);
        self.found.retain_mut(|found| {
            let rest = found.end > bytes;
            // What is left of a match that was split.
            found.cut |= found.start < bytes;
            found.start = found.start.saturating_sub(bytes);
            found.end = found.end.saturating_sub(bytes);
            rest
        });
        for cursor in &mut self.cursors {
            cursor.shift(bytes);
        }
    }

    fn advance(&mut self) {
        let Watches { automata, bound_bytes } = &*self.watches;
        for (watch, (cursor, automaton)) in self.cursors.iter_mut().zip(automata).enumerate() {
            let mut run = Run {
                automaton,
                bound_bytes: *bound_bytes,
                text: self.pending.as_bytes(),
                before: self.before,
                finished: self.finished,
                watch,
                found: &mut self.found,
            };
            run.advance(cursor);
        }
    }
}

impl Cursor {
    fn shift(&mut self, bytes: usize) {
        self.at = self.at.saturating_sub(bytes);
        if let Some(candidate) = &mut self.candidate {
            candidate.start = candidate.start.saturating_sub(bytes);
            candidate.matched = candidate.matched.and_then(|end| end.checked_sub(bytes));
        }
    }
}

/// One watch over the text there is.
struct Run<'a> {
    automaton: &'a Automaton,
    bound_bytes: usize,
    text: &'a [u8],
    before: Option<u8>,
    finished: bool,
    watch: usize,
    found: &'a mut Vec<Found>,
}

impl Run<'_> {
    fn advance(&mut self, cursor: &mut Cursor) {
        loop {
            let candidate = match cursor.candidate.take() {
                Some(candidate) => candidate,
                None => match self.automaton.next_begin(self.text, cursor.at) {
                    Some(start) => {
                        cursor.at = start;
                        self.candidate_at(start)
                    }
                    None => {
                        cursor.at = self.text.len();
                        return;
                    }
                },
            };
            cursor.candidate = self.follow(candidate, &mut cursor.at);
            if cursor.candidate.is_some() {
                return;
            }
        }
    }

    fn candidate_at(&self, start: usize) -> Candidate {
        let before = match start.checked_sub(1) {
            Some(at) => self.text.get(at).copied(),
            None => self.before,
        };
        Candidate { start, row: self.automaton.start(before), matched: None, cut: false }
    }

    /// Run a candidate until it is decided, or the text ends. Gives back one that is still open; else `at` is where to
    /// look for the next.
    fn follow(&mut self, mut candidate: Candidate, at: &mut usize) -> Option<Candidate> {
        while let Some(&byte) = self.text.get(*at) {
            let step = self.automaton.step(candidate.row, byte);
            if step.matched() {
                candidate.matched = Some(*at);
            }
            if !step.live() {
                *at = self.settle(candidate);
                return None;
            }
            candidate.row = step.row();
            *at += 1;
            if step.closed() {
                candidate.matched = Some(*at);
                *at = self.settle(candidate);
                return None;
            }
            if *at - candidate.start >= self.bound_bytes && self.at_boundary(*at) {
                candidate = self.cut(candidate, *at);
            }
        }
        if !self.finished {
            return Some(candidate);
        }
        if self.automaton.step_end(candidate.row).matched() {
            candidate.matched = Some(*at);
        }
        *at = self.settle(candidate);
        None
    }

    /// A candidate that can go no further: report its match, if it has one. Where to look for the next.
    fn settle(&mut self, candidate: Candidate) -> usize {
        match candidate.matched.filter(|&end| end > candidate.start) {
            Some(end) => {
                self.report(candidate.start, end, candidate.cut);
                end
            }
            // The text after the last piece was not tried as a beginning yet.
            None if candidate.cut => candidate.start,
            None => candidate.start + 1,
        }
    }

    fn cut(&mut self, candidate: Candidate, at: usize) -> Candidate {
        self.report(candidate.start, at, true);
        Candidate { start: at, cut: true, matched: None, ..candidate }
    }

    fn report(&mut self, start: usize, end: usize, cut: bool) {
        self.found.push(Found { watch: self.watch, start, end, cut });
    }

    fn at_boundary(&self, at: usize) -> bool {
        self.text.get(at).is_none_or(|byte| byte & 0xC0 != 0x80)
    }
}
