//! What can go from one text: ranges of scalars, rising, not touching what must stay. Everything is a pure deletion,
//! so what is left is the original with holes.

use crate::clauses::{Clause, Strength, split};
use crate::guard;
use crate::phrases::Phrases;
use crate::rules::Rules;
use crate::text::{View, is_wide};
use std::ops::Range;

/// Deletions of a text, in bytes. None when nothing would be left. `protected` are spans in bytes.
pub fn deletions(rules: &Rules, text: &str, protected: &[Range<usize>]) -> Vec<Range<usize>> {
    let view = View::new(text);
    let kept = guard::kept(&view, protected);
    let finder = Finder { rules, view: &view, kept: &kept };
    let found = finder.all();
    if !finder.something_left(&found) {
        return Vec::new();
    }
    found.iter().map(|range| view.bytes(range)).collect()
}

/// Those deletions with nothing but other deletions and white space before them, or behind them.
pub fn edges(text: &str, all: &[Range<usize>]) -> Vec<Range<usize>> {
    let blank = |range: Range<usize>| text.get(range).is_some_and(|s| s.trim().is_empty());
    let mut front = 0;
    let leading = all.iter().take_while(|range| {
        let touches = blank(front..range.start);
        front = range.end;
        touches
    });
    let leading = leading.count();
    let mut back = text.len();
    let trailing = all.iter().rev().take_while(|range| {
        let touches = blank(range.end..back);
        back = range.start;
        touches
    });
    let trailing = trailing.count().min(all.len() - leading);
    [&all[..leading], &all[all.len() - trailing..]].concat()
}

struct Finder<'a, 't> {
    rules: &'a Rules,
    view: &'a View<'t>,
    kept: &'a [bool],
}

/// What is to become of a clause.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Fate {
    Keep,
    /// Goes as a whole.
    Drop,
    /// Confirmations only; the last starts at this place.
    Confirm(usize),
}

impl Finder<'_, '_> {
    fn all(&self) -> Vec<Range<usize>> {
        let clauses = split(self.view, self.kept);
        let fates = self.fates(&clauses);
        let mut found = self.confirmations(&clauses, &fates);
        for (clause, fate) in clauses.iter().zip(&fates) {
            if *fate == Fate::Keep {
                self.within(clause, &mut found);
            }
        }
        self.whole_clauses(&clauses, &fates, &mut found);
        found.retain(|range| {
            range.start < range.end && !self.kept[range.clone()].contains(&true) && !self.glues(range)
        });
        found.sort_by_key(|range| range.start);
        // Two rules may claim the same scalars: the first keeps them.
        let mut end = 0;
        found.retain(|range| {
            let free = range.start >= end;
            end = if free { range.end } else { end };
            free
        });
        found
    }

    /// Whether what stands around a deletion would become one word, or part of a URL or quotation before it.
    fn glues(&self, range: &Range<usize>) -> bool {
        let (Some(before), Some(after)) = (self.view.before(range.start), self.view.get(range.end)) else {
            return false;
        };
        let open = self.kept[range.start - 1]
            && (self.kept[range.end] || !(after.is_whitespace() || is_wide(after)));
        open || (before.is_ascii_alphanumeric() && after.is_ascii_alphanumeric())
    }

    fn something_left(&self, found: &[Range<usize>]) -> bool {
        let starts = std::iter::once(0).chain(found.iter().map(|range| range.end));
        let ends = found.iter().map(|range| range.start).chain([self.view.len()]);
        starts
            .zip(ends)
            .any(|(start, end)| (start..end).any(|at| self.view.get(at).is_some_and(char::is_alphanumeric)))
    }

    fn fates(&self, clauses: &[Clause]) -> Vec<Fate> {
        let mut fates = Vec::with_capacity(clauses.len());
        while let Some(clause) = clauses.get(fates.len()) {
            match self.spanned(clauses, fates.len()) {
                Some(count) => fates.resize(fates.len() + count, Fate::Drop),
                None => fates.push(self.fate(clause)),
            }
        }
        fates
    }

    /// How many clauses from `first` on are one phrase: 谢谢 大家, between which only a space separates.
    fn spanned(&self, clauses: &[Clause], first: usize) -> Option<usize> {
        let Clause { words, strength, .. } = &clauses[first];
        if *strength != Strength::Space {
            return None;
        }
        let end = self.phrase_at(words.start, self.view.len(), &[&self.rules.whole])?;
        let more = clauses[first..].iter().take_while(|clause| clause.words.end < end).count();
        (end > words.end && clauses[first + more].words.end == end).then_some(more + 1)
    }

    fn fate(&self, clause: &Clause) -> Fate {
        let words = &clause.words;
        if words.is_empty() || self.kept[words.clone()].contains(&true) {
            return Fate::Keep;
        }
        if let Some(last) = self.covered(words, &[&self.rules.confirm]) {
            return Fate::Confirm(last);
        }
        match self.covered(words, &[&self.rules.whole, &self.rules.lead]) {
            Some(_) => Fate::Drop,
            None => Fate::Keep,
        }
    }

    /// Whether a clause is made of such phrases alone: where the last of them starts.
    fn covered(&self, words: &Range<usize>, lists: &[&Phrases]) -> Option<usize> {
        let mut at = words.start;
        let mut last = at;
        while at < words.end {
            if self.view.get(at) == Some(' ') {
                at += 1;
                continue;
            }
            last = at;
            at = self.phrase_at(at, words.end, lists)?;
        }
        Some(last)
    }

    /// The longest phrase of the lists at `at` that ends by `limit` and is no trap.
    fn phrase_at(&self, at: usize, limit: usize, lists: &[&Phrases]) -> Option<usize> {
        let end = lists.iter().filter_map(|list| list.longest_at(self.view, at, limit)).max()?;
        let trapped = self.rules.trap.longest_at(self.view, at, limit).is_some_and(|trap| trap > end);
        (!trapped && !self.kept[at..end].contains(&true)).then_some(end)
    }

    /// 好的好的 → 好的; of clauses of confirmations in a row the last stays.
    fn confirmations(&self, clauses: &[Clause], fates: &[Fate]) -> Vec<Range<usize>> {
        let mut found = Vec::new();
        for n in 0..clauses.len() {
            let Fate::Confirm(last) = fates[n] else { continue };
            let followed =
                matches!(fates.get(n + 1), Some(Fate::Confirm(_))) && clauses[n].strength < Strength::Line;
            if followed {
                found.push(clauses[n].words.start..clauses[n].next);
                continue;
            }
            found.push(clauses[n].words.start..last);
        }
        found
    }

    /// The start, the end and the inside of a clause that stays.
    fn within(&self, clause: &Clause, found: &mut Vec<Range<usize>>) {
        let words = clause.words.clone();
        let start = self.lead_end(&words);
        if start > words.start {
            found.push(words.start..start);
        }
        let rest = start..self.tail_start(&(start..words.end));
        if rest.end < words.end {
            found.push(rest.end..words.end);
        }
        let mut at = rest.start;
        while at < rest.end {
            match self.inner_at(at, &rest) {
                Some(end) => {
                    found.push(at..end);
                    at = end;
                }
                None => at += 1,
            }
        }
    }

    /// After the leading phrases. Greetings without punctuation (你好请问…) go when a leading phrase follows them.
    fn lead_end(&self, words: &Range<usize>) -> usize {
        let (mut at, mut safe) = (words.start, words.start);
        while at < words.end {
            if let Some(end) = self.phrase_at(at, words.end, &[&self.rules.lead]) {
                at = self.skip_spaces(end, words.end);
                safe = at;
            } else if let Some(end) = self.phrase_at(at, words.end, &[&self.rules.whole]) {
                at = self.skip_spaces(end, words.end);
            } else {
                break;
            }
        }
        if safe < words.end { safe } else { words.start }
    }

    fn skip_spaces(&self, from: usize, limit: usize) -> usize {
        (from..limit).find(|&at| self.view.get(at) != Some(' ')).unwrap_or(limit)
    }

    /// Before a trailing phrase and the space before it.
    fn tail_start(&self, rest: &Range<usize>) -> usize {
        let tail = (rest.start + 1..rest.end).find(|&at| {
            self.rules.tail.longest_at(self.view, at, rest.end) == Some(rest.end)
                && !self.trapped_within(rest, at)
                && !self.kept[at..rest.end].contains(&true)
        });
        let Some(mut start) = tail else { return rest.end };
        while start > rest.start && self.view.before(start) == Some(' ') {
            start -= 1;
        }
        if start > rest.start { start } else { rest.end }
    }

    /// A trap that covers `at`.
    fn trapped_within(&self, rest: &Range<usize>, at: usize) -> bool {
        (rest.start..=at)
            .any(|from| self.rules.trap.longest_at(self.view, from, rest.end).is_some_and(|end| end > at))
    }

    /// um, uh: with the spaces behind, between spaces only, and never in capitals (UM is a name).
    fn inner_at(&self, at: usize, rest: &Range<usize>) -> Option<usize> {
        let open = at == rest.start || self.view.before(at) == Some(' ');
        let end =
            self.rules.inner.longest_at(self.view, at, rest.end).filter(|end| open && *end < rest.end)?;
        let spaced = self.view.get(end) == Some(' ') && !self.kept[end];
        let capital = (at + 1..end).any(|i| self.view.raw(i).is_some_and(char::is_uppercase));
        (spaced && !capital).then(|| self.skip_spaces(end, rest.end))
    }

    /// Runs of clauses that go, with one of the two pieces of punctuation around them: the stronger one stays.
    fn whole_clauses(&self, clauses: &[Clause], fates: &[Fate], found: &mut Vec<Range<usize>>) {
        let mut n = 0;
        while n < clauses.len() {
            if fates[n] != Fate::Drop {
                n += 1;
                continue;
            }
            let first = n;
            while n < clauses.len() && fates[n] == Fate::Drop {
                n += 1;
            }
            found.push(self.run(clauses, first, n));
        }
    }

    /// Clauses `first..end` go.
    fn run(&self, clauses: &[Clause], first: usize, end: usize) -> Range<usize> {
        let (opening, closing) = (&clauses[first], &clauses[end - 1]);
        let Some(before) = first.checked_sub(1).map(|n| &clauses[n]) else {
            return opening.words.start..closing.next;
        };
        if before.strength < closing.strength || (end == clauses.len() && before.strength < Strength::Stop) {
            // …，谢谢！ keeps the mark behind; …，谢谢 at the end of the text loses the comma too.
            return before.words.end..closing.words.end;
        }
        if end == clauses.len() {
            let mut start = opening.words.start;
            while start > before.words.end && self.view.before(start).is_some_and(char::is_whitespace) {
                start -= 1;
            }
            return start..closing.next;
        }
        opening.words.start..closing.next
    }
}
