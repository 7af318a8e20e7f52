//! Text on its way through the filters, with the memory of where it came from.

use std::collections::VecDeque;
use std::ops::Range;

/// A stretch of text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Segment {
    pub(crate) text: String,
    /// Bytes of the model's own text that this stands for.
    pub(crate) origin: Range<usize>,
    /// Whether a filter wrote it. Otherwise it is the model's text, byte for byte.
    pub(crate) altered: bool,
}

/// Segments in order; their origins rise without a gap.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Segments(VecDeque<Segment>);

impl Segments {
    /// The model's own text from byte `start`.
    pub(crate) fn original(text: String, start: usize) -> Self {
        let origin = start..start + text.len();
        let segment = Segment { text, origin, altered: false };
        Segments(if segment.text.is_empty() { VecDeque::new() } else { VecDeque::from([segment]) })
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Segment> {
        self.0.iter()
    }

    pub(crate) fn len(&self) -> usize {
        self.0.iter().map(|segment| segment.text.len()).sum()
    }

    pub(crate) fn text(&self) -> String {
        self.0.iter().map(|segment| segment.text.as_str()).collect()
    }

    pub(crate) fn append(&mut self, mut more: Segments) {
        self.0.append(&mut more.0);
    }

    /// Removes and returns the first `bytes` bytes. A bound inside a character or past the end is moved back to the
    /// nearest one that is usable.
    pub(crate) fn take(&mut self, mut bytes: usize) -> Segments {
        let mut taken = VecDeque::new();
        while let Some(mut segment) = self.0.pop_front() {
            if segment.text.len() <= bytes {
                bytes -= segment.text.len();
                taken.push_back(segment);
                continue;
            }
            let at = segment.text.floor_char_boundary(bytes);
            if at > 0 {
                taken.push_back(segment.split_front(at));
            }
            self.0.push_front(segment);
            break;
        }
        Segments(taken)
    }

    /// Puts `text` in the place of the first `bytes` bytes; the result stands for all that they stood for.
    fn replace_front(&mut self, bytes: usize, text: String) -> Option<Segment> {
        let removed = self.take(bytes);
        let origin = match (removed.0.front(), removed.0.back()) {
            (Some(first), Some(last)) => first.origin.start..last.origin.end,
            _ => {
                let place = self.0.front()?.origin.start;
                place..place
            }
        };
        Some(Segment { text, origin, altered: true })
    }

    /// The same segments with the given byte ranges replaced. The ranges rise and do not overlap.
    pub(crate) fn rewrite(
        mut self,
        replacements: impl IntoIterator<Item = (Range<usize>, String)>,
    ) -> Segments {
        let mut out = Segments::default();
        let mut done = 0;
        for (range, text) in replacements {
            out.append(self.take(range.start.saturating_sub(done)));
            let end_of_out = out.0.back().map_or(0, |segment| segment.origin.end);
            let here = Segment { text: text.clone(), origin: end_of_out..end_of_out, altered: true };
            let replaced = self.replace_front(range.len(), text).unwrap_or(here);
            out.0.push_back(replaced);
            done = range.end;
        }
        out.append(self);
        out
    }
}

impl Segment {
    /// Cuts off the first `at` bytes. What a filter wrote has no inner correspondence: its front stands for everything.
    fn split_front(&mut self, at: usize) -> Segment {
        let rest = self.text.split_off(at);
        let text = std::mem::replace(&mut self.text, rest);
        let middle = if self.altered { self.origin.end } else { self.origin.start + at };
        let origin = self.origin.start..middle;
        self.origin.start = middle;
        Segment { text, origin, altered: self.altered }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(segments: &Segments) -> Vec<(String, Range<usize>, bool)> {
        segments
            .iter()
            .map(|segment| (segment.text.clone(), segment.origin.clone(), segment.altered))
            .collect()
    }

    #[test]
    fn replacements_keep_their_place_in_the_original() {
        let segments = Segments::original("ab-12-cd".into(), 10);
        let after = segments.rewrite([(3..5, "****".into()), (8..8, "!".into())]);
        assert_eq!(after.text(), "ab-****-cd!");
        assert_eq!(
            shape(&after),
            [
                ("ab-".into(), 10..13, false),
                ("****".into(), 13..15, true),
                ("-cd".into(), 15..18, false),
                ("!".into(), 18..18, true),
            ]
        );
    }

    #[test]
    fn a_second_rewrite_covers_the_first() {
        let once = Segments::original("a 1 b".into(), 0).rewrite([(2..3, "one".into())]);
        let twice = once.rewrite([(0..4, "x".into())]);
        assert_eq!(
            shape(&twice),
            [("x".into(), 0..3, true), ("e".into(), 3..3, true), (" b".into(), 3..5, false)]
        );
    }

    #[test]
    fn taking_never_cuts_a_character() {
        let mut segments = Segments::original("a龘b".into(), 0);
        assert_eq!(segments.take(2).text(), "a");
        assert_eq!(segments.take(3).text(), "龘");
        assert_eq!(segments.take(99).text(), "b");
        assert_eq!(segments.len(), 0);
    }
}
