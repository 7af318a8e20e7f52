use std::ops::Range;

use jackfield_sdk::text::{digit, narrow};

/// How many separators may stand between two digits of a run.
const SEPARATORS: usize = 3;

/// Digits of one number, perhaps: groups of digits with a few separators between them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Run {
    /// Where the plus sign in front begins.
    pub(crate) plus: Option<usize>,
    /// The values of all digits.
    pub(crate) digits: Vec<u8>,
    pub(crate) groups: Vec<Group>,
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

/// The watch for runs that can be of interest: a plus sign and seven digits, or eleven digits. Finds the runs of
/// [`runs`], whole.
pub(crate) fn watch() -> String {
    let d = "[0-9０-９]";
    let s = r"[ \u{a0}\u{3000}()（）\-－‐‑–]{0,3}";
    format!("(?:[+＋]{d}(?:{s}{d}){{6,}}|{d}(?:{s}{d}){{10,}})[xXｘＸ]?")
}

/// All runs of the text, however short.
pub(crate) fn runs(text: &str) -> Vec<Run> {
    let mut runs = Vec::new();
    let mut rest = text.char_indices().peekable();
    let mut plus = None;
    while let Some((at, c)) = rest.next() {
        match digit(c) {
            Some(value) => {
                let mut run = Run { plus, digits: Vec::new(), groups: Vec::new(), x_end: None };
                run.push(at, c, value);
                let (run, end) = grow(text, run, at + c.len_utf8());
                while rest.next_if(|(at, _)| *at < end).is_some() {}
                runs.push(run);
                plus = None;
            }
            None => plus = (narrow(c) == '+').then_some(at),
        }
    }
    runs
}

/// Takes all that belongs to a run of which the first digit, which ends at `end`, is known. Says where it ends.
fn grow(text: &str, mut run: Run, mut end: usize) -> (Run, usize) {
    loop {
        let mut after = text[end..].char_indices();
        let mut separators = 0;
        let found = loop {
            match after.next() {
                Some((at, c)) => match digit(c) {
                    Some(value) => break Some((end + at, c, value)),
                    None if is_separator(c) && separators < SEPARATORS => separators += 1,
                    None => break None,
                },
                None => break None,
            }
        };
        let Some((at, c, value)) = found else { break };
        run.push(at, c, value);
        end = at + c.len_utf8();
    }
    let x = text[end..].chars().next().filter(|c| narrow(*c).eq_ignore_ascii_case(&'x'));
    run.x_end = x.map(|x| end + x.len_utf8());
    (run, end)
}

fn is_separator(c: char) -> bool {
    matches!(narrow(c), ' ' | '\u{a0}' | '(' | ')' | '-' | '‐' | '‑' | '–')
}

impl Run {
    fn push(&mut self, at: usize, c: char, value: u8) {
        let (text, digit) = (at..at + c.len_utf8(), self.digits.len());
        self.digits.push(value);
        match self.groups.last_mut() {
            Some(group) if group.at.end == at => {
                group.at.end = text.end;
                group.digits.end += 1;
            }
            _ => self.groups.push(Group { at: text, digits: digit..digit + 1 }),
        }
    }
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
        runs(text).into_iter().map(run).collect()
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
