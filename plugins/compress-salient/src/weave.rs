//! What is left when words go: the spaces, commas and empty lines that they leave behind go with them, so that the rest reads
//! as if it had been written so. Everything is a deletion.

use crate::glyphs::{Glyphs, is_wide};
use crate::pieces::{Kind, Piece, Why};
use std::ops::Range;

/// Deletions in bytes, rising and apart, when `dropped` of the pieces go. Nothing before byte `floor` is touched.
pub fn deletions(glyphs: &Glyphs<'_>, pieces: &[Piece], dropped: &[bool], floor: usize) -> Vec<Range<usize>> {
    let tight = tight(glyphs, pieces, dropped);
    let mut weaver = Weaver { glyphs, pieces, tight, floor, left: Vec::new(), gap: false, emptied: false };
    for (at, piece) in pieces.iter().enumerate() {
        if dropped[at] {
            weaver.gap = true;
        } else {
            weaver.add(at, piece.kind);
        }
    }
    weaver.finish();
    let left = weaver.left;
    let mut gone: Vec<Range<usize>> = Vec::new();
    let mut next = left.into_iter().peekable();
    for (at, piece) in pieces.iter().enumerate() {
        if next.next_if_eq(&at).is_some() {
            continue;
        }
        let bytes = glyphs.bytes(&piece.glyphs);
        match gone.last_mut() {
            Some(last) if last.end == bytes.start => last.end = bytes.end,
            _ => gone.push(bytes),
        }
    }
    gone
}

/// For each piece of punctuation whether a word or number that stays follows it without a space: .env, :not.
fn tight(glyphs: &Glyphs<'_>, pieces: &[Piece], dropped: &[bool]) -> Vec<bool> {
    let mut tight = vec![false; pieces.len()];
    let mut follows = false;
    for (at, piece) in pieces.iter().enumerate().rev() {
        if dropped[at] {
            continue;
        }
        let narrow = glyphs.get(piece.glyphs.start).is_some_and(|c| !is_wide(c) && !c.is_whitespace());
        tight[at] = narrow && follows;
        follows = narrow && (follows || matches!(piece.kind, Kind::Word(_) | Kind::Kept(_)));
    }
    tight
}

struct Weaver<'a, 't> {
    glyphs: &'a Glyphs<'t>,
    pieces: &'a [Piece],
    tight: Vec<bool>,
    floor: usize,
    /// Pieces that stay, rising.
    left: Vec<usize>,
    /// A word was dropped behind the last piece that stays.
    gap: bool,
    /// The line before went whole.
    emptied: bool,
}

impl Weaver<'_, '_> {
    fn add(&mut self, at: usize, kind: Kind) {
        if !self.gap && !self.emptied {
            return self.left.push(at);
        }
        let stays = match kind {
            Kind::Line => self.line(),
            _ if !self.gap => true,
            Kind::Space => !self.after_blank(),
            Kind::Comma | Kind::Stop if self.tight[at] => self.bring_back(at),
            Kind::Comma => self.comma(),
            Kind::Stop => self.stop(),
            Kind::Close => self.close(at),
            Kind::Open | Kind::Bullet => true,
            Kind::Word(_) | Kind::Kept(_) => self.word(at),
        };
        if stays {
            self.left.push(at);
            self.gap = false;
            self.emptied = false;
        }
    }

    /// The kind of the last piece that stays.
    fn last(&self) -> Option<Kind> {
        self.left.last().map(|&at| self.pieces[at].kind)
    }

    /// Takes the last piece back, where it is of this kind and may be touched.
    fn take_back(&mut self, kind: Kind) -> bool {
        let may = self.left.last().is_some_and(|&at| {
            self.pieces[at].kind == kind && self.glyphs.bytes(&self.pieces[at].glyphs).start >= self.floor
        });
        if may {
            self.left.pop();
        }
        may
    }

    fn at_line_start(&self) -> bool {
        matches!(self.last(), None | Some(Kind::Line))
    }

    fn after_blank(&self) -> bool {
        let ends_blank = || {
            let last = self.left.last().map(|&at| self.pieces[at].glyphs.end);
            last.and_then(|end| self.glyphs.before(end)).is_some_and(char::is_whitespace)
        };
        self.at_line_start() || self.last() == Some(Kind::Open) || ends_blank()
    }

    /// A line of which nothing is left goes with its end, and so does the empty line behind it where there is one before.
    fn line(&mut self) -> bool {
        if !self.gap {
            let lines =
                self.left.iter().rev().take(2).filter(|&&at| self.pieces[at].kind == Kind::Line).count();
            return !self.left.is_empty() && lines < 2;
        }
        self.tidy_end();
        while self.take_back(Kind::Bullet) {
            self.take_back(Kind::Space);
        }
        if self.at_line_start() {
            self.gap = false;
            self.emptied = true;
            return false;
        }
        true
    }

    /// Something of what went since the last piece that stays comes back, before the piece `at`: a word that grows together
    /// with neither, and the spaces around it; or else all of it.
    fn bring_back(&mut self, at: usize) -> bool {
        self.gap = false;
        let before = self.left.last().copied();
        let from = before.map_or(0, |before| before + 1);
        let is_space = |i: &usize| self.pieces[*i].kind == Kind::Space;
        let parts = |&word: &usize| {
            matches!(self.pieces[word].kind, Kind::Word(_))
                && !before.is_some_and(|before| self.grows_together(before, word))
                && !self.grows_together(word, at)
        };
        let back: Vec<usize> = match (from..at).rev().find(parts) {
            Some(word) => {
                let space = (from..word).find(is_space).filter(|_| !self.after_blank());
                space.into_iter().chain([word]).chain((word + 1..at).find(is_space)).collect()
            }
            None => (from..at).collect(),
        };
        self.left.extend(back);
        true
    }

    /// Whether punctuation that separates has something to separate here. A space before stays where it has not.
    fn separates(&self, from: &[Kind]) -> bool {
        let last = self.left.iter().rev().map(|&at| self.pieces[at].kind).find(|kind| *kind != Kind::Space);
        last.is_some_and(|last| !from.contains(&last))
    }

    fn comma(&mut self) -> bool {
        let stays = self.separates(&[Kind::Line, Kind::Bullet, Kind::Open, Kind::Stop, Kind::Comma]);
        if stays {
            self.take_back(Kind::Space);
        }
        stays
    }

    fn stop(&mut self) -> bool {
        let stays = self.separates(&[Kind::Line, Kind::Bullet, Kind::Open, Kind::Stop]);
        if stays {
            self.tidy_end();
        }
        stays
    }

    /// Parentheses of which nothing is left go, unless what is around them would become one word.
    fn close(&mut self, at: usize) -> bool {
        self.tidy_end();
        if self.last() != Some(Kind::Open) {
            return true;
        }
        let before = self.left.len().checked_sub(2).map(|i| self.pieces[self.left[i]].glyphs.end);
        let before = before.and_then(|end| self.glyphs.before(end));
        let apart = before.is_none_or(|c| c.is_whitespace() || is_wide(c));
        if apart && self.take_back(Kind::Open) {
            return false;
        }
        self.bring_back(at)
    }

    /// A word or sign that stays. Where it would grow together with what is before, the word between comes back.
    fn word(&mut self, at: usize) -> bool {
        match self.left.last() {
            Some(&before) if self.grows_together(before, at) => return self.bring_back(at),
            Some(_) if self.starts_blank(at) => self.take_back(Kind::Space),
            _ => true,
        };
        true
    }

    fn starts_blank(&self, at: usize) -> bool {
        self.glyphs.get(self.pieces[at].glyphs.start).is_some_and(char::is_whitespace)
    }

    fn grows_together(&self, before: usize, after: usize) -> bool {
        let (before, after) = (&self.pieces[before], &self.pieces[after]);
        let is_text = |kind| matches!(kind, Kind::Word(_) | Kind::Kept(_));
        if !is_text(before.kind) || !is_text(after.kind) {
            return false;
        }
        let numbers = before.kind == Kind::Kept(Why::Number) && after.kind == Kind::Kept(Why::Number);
        let narrow = |c: char| !is_wide(c) && !c.is_whitespace();
        let seam = (self.glyphs.before(before.glyphs.end), self.glyphs.get(after.glyphs.start));
        numbers || matches!(seam, (Some(left), Some(right)) if narrow(left) && narrow(right))
    }

    /// Without the spaces and commas at the end.
    fn tidy_end(&mut self) {
        while self.take_back(Kind::Space) || self.take_back(Kind::Comma) {}
    }

    fn finish(&mut self) {
        if !self.gap && !self.emptied {
            return;
        }
        self.tidy_end();
        while self.take_back(Kind::Bullet) {
            self.take_back(Kind::Space);
        }
        while self.at_line_start() && self.take_back(Kind::Line) {}
    }
}
