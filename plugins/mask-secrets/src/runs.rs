use std::ops::Range;

use jackfield_sdk::text::narrow;

/// How many separators may stand between two digits of a run.
const SEPARATORS: usize = 3;

/// Digits of one number, perhaps: groups of digits with a few separators between them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Run<'a> {
    /// Where the plus sign in front begins.
    pub(crate) plus: Option<usize>,
    /// The values of all digits.
    pub(crate) digits: &'a [u8],
    pub(crate) groups: &'a [Group],
    /// Where an x directly after the last digit ends: the check character of some identity numbers.
    pub(crate) x_end: Option<usize>,
}

/// Digits without anything between them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Group {
    /// Where in the text.
    pub(crate) at: Range<usize>,
    /// Where among the digits of the run.
    pub(crate) digits: Range<usize>,
}

/// All runs of one text after another, in the same memory.
#[derive(Debug, Default)]
pub(crate) struct Runs {
    digits: Vec<u8>,
    groups: Vec<Group>,
    runs: Vec<Place>,
}

/// Where in [`Runs`] a run is.
#[derive(Debug)]
struct Place {
    plus: Option<usize>,
    digits: Range<usize>,
    groups: Range<usize>,
    x_end: Option<usize>,
}

/// The watch for runs that can be of interest: a plus sign and seven digits, or eleven digits. Finds such runs as
/// [`Runs`] does, whole.
pub(crate) fn watch() -> String {
    let d = "[0-9０-９]";
    let s = r"[ \u{a0}\u{3000}()（）\-－‐‑–]{0,3}";
    format!("(?:[+＋]{d}(?:{s}{d}){{6,}}|{d}(?:{s}{d}){{10,}})[xXｘＸ]?")
}

impl Runs {
    /// Finds all runs of a text, however short, in place of those of the text before.
    pub(crate) fn find(&mut self, text: &str) {
        self.digits.clear();
        self.groups.clear();
        self.runs.clear();
        let mut end = 0;
        while let Some(start) = next_digit(text.as_bytes(), end) {
            let plus = text[..start].chars().next_back().filter(|c| narrow(*c) == '+');
            end = self.take(text, start, plus.map(|plus| start - plus.len_utf8()));
        }
    }

    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = Run<'_>> {
        self.runs.iter().map(|place| Run {
            plus: place.plus,
            digits: &self.digits[place.digits.clone()],
            groups: &self.groups[place.groups.clone()],
            x_end: place.x_end,
        })
    }

    /// Takes the run whose first digit is here. Says where its last one ends.
    fn take(&mut self, text: &str, start: usize, plus: Option<usize>) -> usize {
        let (digits, groups) = (self.digits.len(), self.groups.len());
        let mut end = start;
        loop {
            let (from, first) = (end, self.digits.len());
            while let Some((value, length)) = digit_at(text.as_bytes(), end) {
                self.digits.push(value);
                end += length;
            }
            self.groups.push(Group { at: from..end, digits: first - digits..self.digits.len() - digits });
            match behind_separators(text, end) {
                Some(next) => end = next,
                None => break,
            }
        }
        let x = text[end..].chars().next().filter(|c| narrow(*c).eq_ignore_ascii_case(&'x'));
        self.runs.push(Place {
            plus,
            digits: digits..self.digits.len(),
            groups: groups..self.groups.len(),
            x_end: x.map(|x| end + x.len_utf8()),
        });
        end
    }
}

/// The value of the digit that begins here, ASCII or full-width, and its length.
fn digit_at(text: &[u8], at: usize) -> Option<(u8, usize)> {
    match text.get(at..)? {
        [digit @ b'0'..=b'9', ..] => Some((digit - b'0', 1)),
        [WIDE, 0xbc, last @ 0x90..=0x99, ..] => Some((last - 0x90, 3)),
        _ => None,
    }
}

/// What full-width digits begin with, and some other characters.
const WIDE: u8 = 0xef;

/// Where the first digit from here on begins. Eight bytes at a time: most text has none.
fn next_digit(text: &[u8], from: usize) -> Option<usize> {
    const ONES: u64 = u64::MAX / 0xff;
    // The lowest byte that is zero has its highest bit set, and none below it has.
    let zeros = |bytes: u64| bytes.wrapping_sub(ONES) & !bytes & (ONES << 7);
    let mut at = from;
    while let Some(eight) = text.get(at..).and_then(|rest| rest.first_chunk::<8>()) {
        let eight = u64::from_le_bytes(*eight);
        // 0 to 9 are among the sixteen that begin with 3.
        let perhaps =
            zeros((eight & (ONES * 0xf0)) ^ (ONES * 0x30)) | zeros(eight ^ (ONES * u64::from(WIDE)));
        if perhaps == 0 {
            at += 8;
            continue;
        }
        at += perhaps.trailing_zeros() as usize / 8;
        if digit_at(text, at).is_some() {
            return Some(at);
        }
        at += 1;
    }
    (at..text.len()).find(|at| digit_at(text, *at).is_some())
}

/// Where a digit stands behind a few separators.
fn behind_separators(text: &str, end: usize) -> Option<usize> {
    let mut after = text[end..].char_indices();
    for _ in 0..SEPARATORS {
        let (at, c) = after.next().filter(|(_, c)| is_separator(*c))?;
        let next = end + at + c.len_utf8();
        if digit_at(text.as_bytes(), next).is_some() {
            return Some(next);
        }
    }
    None
}

fn is_separator(c: char) -> bool {
    matches!(narrow(c), ' ' | '\u{a0}' | '(' | ')' | '-' | '‐' | '‑' | '–')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Vec<String> {
        let group = |group: &Group| text[group.at.clone()].to_owned();
        let run = |run: Run| {
            let plus = run.plus.map_or("", |_| "+");
            let x = run.x_end.map_or("", |_| "x");
            format!("{plus}{}{x}", run.groups.iter().map(group).collect::<Vec<_>>().join("|"))
        };
        let mut runs = Runs::default();
        // What was found before leaves nothing behind.
        runs.find("+8 (12) 3x");
        runs.find(text);
        runs.iter().map(run).collect()
    }

    #[test]
    fn groups_are_split_by_separators_and_runs_by_everything_else() {
        assert_eq!(shown("卡4111 1111-1111\u{3000}１１１１，12a3"), ["4111|1111|1111|１１１１", "12", "3"]);
        assert_eq!(shown("+1 (415) 555-2671"), ["+1|415|555|2671"]);
        assert_eq!(shown("1    2"), ["1", "2"]);
        assert_eq!(shown("+ 86"), ["86"]);
        assert_eq!(shown("11010519491231002X"), ["11010519491231002x"]);
        assert_eq!(shown("11010519491231002 X"), ["11010519491231002"]);
        assert_eq!(shown("no digits"), [""; 0]);
    }
}
