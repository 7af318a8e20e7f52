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
        self.clear();
        let mut end = 0;
        while let Some(start) = next_digit(text.as_bytes(), end) {
            end = self.take_with_plus(text, start);
        }
    }

    /// Likewise the run that a text begins with or in, and those at the places where the watch found one. Those left out
    /// are too short to be a secret.
    pub(crate) fn find_at(&mut self, text: &str, places: impl Iterator<Item = usize>) {
        self.clear();
        let mut end = 0;
        for place in begins_in_run(text).then_some(0).into_iter().chain(places) {
            match next_digit(text.as_bytes(), place) {
                Some(start) if start >= end => end = self.take_with_plus(text, start),
                _ => {}
            }
        }
    }

    fn clear(&mut self) {
        self.digits.clear();
        self.groups.clear();
        self.runs.clear();
    }

    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = Run<'_>> {
        self.runs.iter().map(|place| Run {
            plus: place.plus,
            digits: &self.digits[place.digits.clone()],
            groups: &self.groups[place.groups.clone()],
            x_end: place.x_end,
        })
    }

    /// Takes the run whose first digit is here, and the plus sign in front of it. Says where its last digit ends.
    fn take_with_plus(&mut self, text: &str, start: usize) -> usize {
        let before = &text.as_bytes()[..start];
        let plus = ["+", "＋"].iter().find(|plus| before.ends_with(plus.as_bytes()));
        self.take(text, start, plus.map(|plus| start - plus.len()))
    }

    /// Takes the run whose first digit is here. Says where its last one ends.
    #[inline(never)]
    fn take(&mut self, text: &str, start: usize, plus: Option<usize>) -> usize {
        let (digits, groups) = (self.digits.len(), self.groups.len());
        let mut end = start;
        loop {
            let (from, first) = (end, self.digits.len());
            end = self.take_digits(text.as_bytes(), end);
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

    /// Takes the digits that stand here. Says where the last one ends.
    fn take_digits(&mut self, text: &[u8], mut end: usize) -> usize {
        loop {
            if let Some(eight) = eight_at(text, end) {
                let values = eight ^ (ONES * u64::from(b'0'));
                // The lowest byte above 9 gets its highest bit, and none below it does.
                let others = (values.wrapping_add(ONES * (0x7f - 9)) | values) & HIGHEST;
                let count = others.trailing_zeros() as usize / 8;
                let length = self.digits.len() + count;
                self.digits.extend_from_slice(&values.to_le_bytes());
                self.digits.truncate(length);
                end += count;
                if count == 8 {
                    continue;
                }
            }
            let Some((value, length)) = digit_at(text, end) else { return end };
            self.digits.push(value);
            end += length;
        }
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

const ONES: u64 = u64::MAX / 0xff;
const HIGHEST: u64 = ONES << 7;

fn eight_at(text: &[u8], at: usize) -> Option<u64> {
    text.get(at..)?.first_chunk().map(|eight| u64::from_le_bytes(*eight))
}

/// Where the first digit from here on begins. Eight bytes at a time: most text has none.
// In a function of its own what the loop needs stays in registers.
#[inline(never)]
fn next_digit(text: &[u8], from: usize) -> Option<usize> {
    let mut at = from;
    while let Some(eight) = eight_at(text, at) {
        let perhaps = perhaps_digits(eight);
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

/// The highest bit of the first byte with which a digit may begin. Those below it have none.
fn perhaps_digits(eight: u64) -> u64 {
    // The lowest byte that is zero gets its highest bit, and none below it does.
    let zeros = |bytes: u64| bytes.wrapping_sub(ONES) & !bytes & HIGHEST;
    // 0 to 9 are among the sixteen that begin with 3.
    zeros((eight & (ONES * 0xf0)) ^ (ONES * 0x30)) | zeros(eight ^ (ONES * u64::from(WIDE)))
}

/// Whether a text begins with a run, or with separators inside of one.
fn begins_in_run(text: &str) -> bool {
    let number = text.strip_prefix(['+', '＋']).unwrap_or(text);
    digit_at(number.as_bytes(), 0).is_some() || behind_separators(text, 0).is_some()
}

/// Where a digit stands behind a few separators.
fn behind_separators(text: &str, mut end: usize) -> Option<usize> {
    for _ in 0..SEPARATORS {
        end += separator_at(text, end)?;
        if digit_at(text.as_bytes(), end).is_some() {
            return Some(end);
        }
    }
    None
}

/// The length of the separator that begins here.
fn separator_at(text: &str, at: usize) -> Option<usize> {
    match *text.as_bytes().get(at)? {
        b' ' | b'(' | b')' | b'-' => Some(1),
        // The others begin with one of these.
        0xc2 | 0xe2 | 0xe3 | WIDE => {
            text[at..].chars().next().filter(|c| is_separator(*c)).map(char::len_utf8)
        }
        _ => None,
    }
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

    /// Texts of pieces that numbers are made of, drawn by a fixed sequence.
    fn texts() -> impl Iterator<Item = String> {
        const PIECES: [&str; 24] = [
            "1",
            "2",
            "3",
            "8",
            "86",
            "13800138000",
            "4111",
            "1111 1111",
            "１",
            "１３８",
            "4111111111111111",
            "0",
            "+",
            "＋",
            " ",
            "-",
            "\u{3000}",
            "（",
            "x",
            "Ｘ",
            "，",
            "a",
            "11010519491231002",
            "。字",
        ];
        let mut state = 1u32;
        let mut draw = move |below: usize| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) as usize % below
        };
        (0..20_000).map(move |_| (0..draw(24)).map(|_| PIECES[draw(PIECES.len())]).collect())
    }

    #[test]
    fn the_places_of_the_watch_hold_every_run_that_is_long_enough() {
        let watch = regex::Regex::new(&watch()).expect("a watch");
        let enough = |run: &Run<'_>| run.digits.len() >= if run.plus.is_some() { 7 } else { 11 };
        let (mut all, mut some, mut seen) = (Runs::default(), Runs::default(), 0);
        for text in texts() {
            all.find(&text);
            some.find_at(&text, watch.find_iter(&text).map(|hit| hit.start()));
            let long: Vec<_> = all.iter().filter(enough).collect();
            assert_eq!(some.iter().filter(enough).collect::<Vec<_>>(), long, "{text}");
            seen += long.len();
        }
        assert!(seen > 10_000, "{seen}");
    }

    #[test]
    fn a_run_that_a_text_begins_in_needs_no_place() {
        for text in ["4111 2x", "+86 1", "＋１", " - 7", "\u{3000}7"] {
            let mut runs = Runs::default();
            runs.find_at(text, std::iter::empty());
            assert_eq!(runs.iter().count(), 1, "{text}");
        }
        for text in ["", "a1", "    1", "，1", "- a"] {
            let mut runs = Runs::default();
            runs.find_at(text, std::iter::empty());
            assert_eq!(runs.iter().count(), 0, "{text}");
        }
    }
}
