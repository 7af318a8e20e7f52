//! A text cut into pieces: words, spaces, punctuation, and what is kept as it is. Words are what is dropped: English ones with
//! their apostrophes and hyphens, Chinese ones of the lists, and single characters of the rest.

use crate::glyphs::{Glyphs, is_spaced_letter, is_wide};
use crate::guard::is_line_end;
use crate::lexicon::{Lexicon, Listed};
use jackfield_sdk::text::is_han;
use std::ops::Range;

/// A piece of a text. The pieces of a text cover it without gaps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// Its glyphs.
    pub glyphs: Range<usize>,
    /// What it is.
    pub kind: Kind,
}

/// What a piece is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// White space within a line.
    Space,
    /// The end of a line.
    Line,
    /// What opens an item of a list, or a heading.
    Bullet,
    /// Separates parts of a sentence.
    Comma,
    /// Ends a sentence.
    Stop,
    /// An opening parenthesis.
    Open,
    /// A closing one.
    Close,
    /// May go.
    Word(Class),
    /// Stays.
    Kept(Why),
}

/// Of words that may go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// Says nothing.
    Filler,
    /// Says nothing where a pause follows; there it becomes a filler, elsewhere it stays.
    Pause,
    /// Holds the sentence together.
    Function,
    /// Any other word.
    Content,
    /// A Chinese character of no known word.
    Character,
}

/// Why a piece stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// Code, a quotation, or the host says so.
    Fixed,
    /// A number with its unit.
    Number,
    /// A word of the lists, a name, or one that belongs to a word that stays.
    Word,
    /// A verb.
    Verb,
    /// The name of a time.
    Time,
    /// The negation itself.
    Negation,
    /// Introduces a name.
    NameAfter,
    /// Follows a name.
    NameBefore,
    /// A sign or a script of which nothing is known.
    Other,
}

/// Cuts a text. `fixed` says of each glyph whether it must stay.
pub fn pieces(glyphs: &Glyphs<'_>, fixed: &[bool], lexicon: &Lexicon) -> Vec<Piece> {
    let mut cutter = Cutter { glyphs, fixed, lexicon, plain_before: 0 };
    let mut pieces: Vec<Piece> = Vec::new();
    let mut at = 0;
    while at < glyphs.len() {
        let (end, kind) = cutter.piece_at(at);
        let end = end.max(at + 1);
        pieces.push(Piece { glyphs: at..end, kind });
        at = end;
    }
    crate::scope::keep(glyphs, &mut pieces);
    pieces
}

struct Cutter<'a, 't> {
    glyphs: &'a Glyphs<'t>,
    fixed: &'a [bool],
    lexicon: &'a Lexicon,
    /// Up to here nothing but words and punctuation stands between spaces.
    plain_before: usize,
}

impl Cutter<'_, '_> {
    /// End and kind of the piece that starts at `at`.
    fn piece_at(&mut self, at: usize) -> (usize, Kind) {
        if self.fixed[at] {
            let end = (at..self.fixed.len()).find(|&i| !self.fixed[i]);
            return (end.unwrap_or(self.fixed.len()), Kind::Kept(Why::Fixed));
        }
        let c = self.glyphs.get(at).unwrap_or_default();
        match c {
            _ if is_line_end(c) => (at + 1, Kind::Line),
            _ if c.is_whitespace() => (self.run(at, |c| c.is_whitespace() && !is_line_end(c)), Kind::Space),
            '#' if self.line_start(at) => (self.run(at, |c| c == '#'), Kind::Bullet),
            '-' | '*' | '•' | '·' if self.line_start(at) && self.blank(at + 1) => (at + 1, Kind::Bullet),
            _ if is_wide(c) => self.chinese(at, c),
            _ => self.latin(at, c),
        }
    }

    fn get(&self, at: usize) -> Option<char> {
        self.glyphs.get(at).filter(|_| !self.fixed[at])
    }

    /// End of the glyphs from `at` on that are like this.
    fn run(&self, at: usize, like: impl Fn(char) -> bool) -> usize {
        let mut end = at;
        while self.get(end).is_some_and(&like) {
            end += 1;
        }
        end
    }

    fn line_start(&self, at: usize) -> bool {
        self.glyphs.before(at).is_none_or(is_line_end)
    }

    fn blank(&self, at: usize) -> bool {
        self.glyphs.get(at).is_none_or(char::is_whitespace)
    }

    /// Whether nothing of a range is fixed, so that a phrase may stand there.
    fn free(&self, range: Range<usize>) -> bool {
        !self.fixed[range].contains(&true)
    }

    fn listed_at(&self, at: usize) -> Option<(usize, Listed)> {
        self.lexicon.at(self.glyphs, at, |end| self.free(at..end))
    }

    fn chinese(&self, at: usize, c: char) -> (usize, Kind) {
        if let Some(end) = self.number_end(at) {
            return (end, Kind::Kept(Why::Number));
        }
        if let Some((end, listed)) = self.listed_at(at) {
            return (end, kind_of(listed));
        }
        match punctuation(c) {
            Some(kind) => (at + 1, kind),
            None if is_han(c) => (at + 1, Kind::Word(Class::Character)),
            None => (at + 1, Kind::Kept(Why::Other)),
        }
    }

    fn latin(&mut self, at: usize, c: char) -> (usize, Kind) {
        if let Some(kind) = punctuation(c) {
            return (at + 1, kind);
        }
        if at >= self.plain_before {
            let core = self.core_end(at);
            match self.is_complex(at..core) {
                Some(true) => return (self.unit_end(core), Kind::Kept(Why::Number)),
                Some(false) => return (core, Kind::Kept(Why::Word)),
                None => self.plain_before = core,
            }
        }
        if !is_spaced_letter(c) {
            return (at + 1, Kind::Kept(Why::Other));
        }
        self.word(at)
    }

    /// End of what stands without a space, without the punctuation at its end.
    fn core_end(&self, at: usize) -> usize {
        let mut end = self.run(at, |c| !c.is_whitespace() && !is_wide(c));
        while end > at + 1 && self.get(end - 1).is_some_and(|c| punctuation(c).is_some() || c == '\'') {
            end -= 1;
        }
        end
    }

    /// Whether it is more than words: an address, a path, a formula, a number. And if so, whether it has a digit.
    fn is_complex(&self, core: Range<usize>) -> Option<bool> {
        let (mut complex, mut numeric) = (false, false);
        for at in core.clone() {
            let Some(c) = self.glyphs.get(at) else { break };
            let after_letter = at > core.start && self.glyphs.before(at).is_some_and(char::is_alphanumeric);
            let inside = after_letter && at + 1 < core.end;
            numeric |= c.is_numeric();
            complex |= matches!(
                c,
                '@' | '/'
                    | '\\'
                    | '_'
                    | '='
                    | '<'
                    | '>'
                    | '#'
                    | '$'
                    | '%'
                    | '&'
                    | '+'
                    | '*'
                    | '^'
                    | '|'
                    | '~'
            ) || (inside && matches!(c, '.' | ':' | '('));
        }
        (complex || numeric).then_some(numeric)
    }

    fn word(&self, at: usize) -> (usize, Kind) {
        let end = self.word_end(at);
        let later_capital = (at + 1..end).any(|i| self.glyphs.written(i).is_some_and(char::is_uppercase));
        if later_capital {
            return (end, Kind::Kept(Why::Word));
        }
        if let Some((end, listed)) = self.listed_at(at) {
            return (end, kind_of(listed));
        }
        let word: String = (at..end).filter_map(|i| self.glyphs.get(i)).collect();
        let kind = if word.ends_with("n't") {
            Kind::Kept(Why::Negation)
        } else if self.lexicon.is_verb(&word) {
            Kind::Kept(Why::Verb)
        } else if self.glyphs.written(at).is_some_and(char::is_uppercase) {
            Kind::Kept(Why::Word)
        } else {
            Kind::Word(Class::Content)
        };
        (end, kind)
    }

    /// Letters, and apostrophes and hyphens between them.
    fn word_end(&self, at: usize) -> usize {
        let mut end = at;
        loop {
            end = self.run(end, is_spaced_letter);
            let joined =
                matches!(self.get(end), Some('\'' | '-')) && self.get(end + 1).is_some_and(is_spaced_letter);
            if !joined {
                return end;
            }
            end += 1;
        }
    }

    /// End of a number of Chinese numerals, with what it counts. A single 一 is a number only beside another sign of one.
    fn number_end(&self, at: usize) -> Option<usize> {
        let from = if self.get(at) == Some('第') { at + 1 } else { at };
        let end = self.numerals_end(from, is_numeral).max(self.run(from, is_numeral).min(from + 1));
        let with_unit = self.unit_end(end);
        let first = self.get(from)?;
        let certain = match (first, end - from) {
            (_, 0) => false,
            ('几' | '多' | '半', 1) => with_unit > end,
            ('一', 1) => with_unit > end || from > at,
            _ => true,
        };
        // 一下, 一点: phrases of the lists, unless more numerals follow.
        let phrase = self.listed_at(at).is_some_and(|(listed, _)| listed >= with_unit && end - from <= 1);
        (certain && !phrase).then_some(with_unit)
    }

    /// End of a row of numerals. The last one may begin a phrase of the lists: 三十(一下).
    fn numerals_end(&self, at: usize, like: impl Fn(char) -> bool) -> usize {
        let end = self.run(at, like);
        let begins = |at: usize| self.listed_at(at).is_some_and(|(phrase, _)| phrase > at + 1);
        if end > at && begins(end - 1) { end - 1 } else { end }
    }

    /// Behind the units, and further numbers with theirs, that follow a number: 3点半, 2 kg.
    fn unit_end(&self, at: usize) -> usize {
        let mut end = at;
        loop {
            let space = usize::from(self.get(end) == Some(' '));
            let unit = self.lexicon.unit_at(self.glyphs, end + space, |unit| self.free(end..unit));
            let Some(unit) = unit else { return end };
            end = self.numerals_end(unit, |c| is_numeral(c) || c.is_numeric());
        }
    }
}

fn kind_of(listed: Listed) -> Kind {
    match listed {
        Listed::Filler => Kind::Word(Class::Filler),
        Listed::Pause => Kind::Word(Class::Pause),
        Listed::Function => Kind::Word(Class::Function),
        Listed::Word => Kind::Word(Class::Content),
        Listed::Negation => Kind::Kept(Why::Negation),
        Listed::Kept => Kind::Kept(Why::Word),
        Listed::Verb => Kind::Kept(Why::Verb),
        Listed::Time => Kind::Kept(Why::Time),
        Listed::NameAfter => Kind::Kept(Why::NameAfter),
        Listed::NameBefore => Kind::Kept(Why::NameBefore),
    }
}

fn punctuation(c: char) -> Option<Kind> {
    Some(match c {
        ',' | ';' | ':' | '，' | '；' | '：' | '、' | '—' | '–' => Kind::Comma,
        '.' | '!' | '?' | '。' | '！' | '？' | '…' => Kind::Stop,
        '(' | '（' => Kind::Open,
        ')' | '）' => Kind::Close,
        _ => return None,
    })
}

/// A Chinese numeral, and what may stand within a number.
pub fn is_numeral(c: char) -> bool {
    matches!(
        c,
        '零' | '〇'
            | '一'
            | '二'
            | '两'
            | '三'
            | '四'
            | '五'
            | '六'
            | '七'
            | '八'
            | '九'
            | '十'
            | '百'
            | '千'
            | '万'
            | '亿'
    ) || matches!(c, '兩' | '萬' | '億' | '几' | '幾' | '多' | '半')
}
