//! The small pattern language of `rules.toml`: a sequence of classes, each with a count. It matches in time linear
//! in the text, whatever the pattern. `[A-Z]{2}-?[0-9]{6,12}`: two letters, perhaps a hyphen, six to twelve digits.

use crate::text::{Text, fold};

/// A compiled pattern of at most 63 places: where a match may stand is then one word of bits.
#[derive(Debug, Clone)]
pub struct Pattern {
    places: Vec<Place>,
}

#[derive(Debug, Clone)]
struct Place {
    /// Ranges of normalised scalars.
    class: Vec<(char, char)>,
    optional: bool,
}

const MAX_PLACES: usize = 63;

impl Pattern {
    /// Compiles a pattern: literals, `[A-Z0-9]`, `\d`, and after each `?`, `{n}` or `{m,n}`.
    pub fn new(source: &str) -> Result<Pattern, String> {
        let mut places = Vec::new();
        let mut rest = source.chars().peekable();
        while let Some(c) = rest.next() {
            let class = match c {
                '[' => class(&mut rest).ok_or_else(|| format!("pattern `{source}`: `[` without `]`"))?,
                '\\' => match rest.next() {
                    Some('d') => vec![('0', '9')],
                    Some(c) if !c.is_ascii_alphanumeric() => vec![(fold(c), fold(c))],
                    _ => return Err(format!("pattern `{source}`: after `\\` only `d` or a sign")),
                },
                '*' | '+' | '(' | ')' | '|' | '.' | '^' | '$' | '{' | '}' | ']' | '?' => {
                    return Err(format!(
                        "pattern `{source}`: `{c}` is not part of this language (see rules.toml)"
                    ));
                }
                c => vec![(fold(c), fold(c))],
            };
            let (least, most) =
                count(&mut rest).ok_or_else(|| format!("pattern `{source}`: a count is {{n}} or {{m,n}}"))?;
            for index in 0..most {
                places.push(Place { class: class.clone(), optional: index >= least });
            }
            if places.len() > MAX_PLACES {
                return Err(format!("pattern `{source}`: more than {MAX_PLACES} places"));
            }
        }
        if places.iter().all(|p| p.optional) {
            return Err(format!("pattern `{source}` matches the empty text"));
        }
        Ok(Pattern { places })
    }

    /// End of the longest match that starts at `at`. A hyphen of the pattern also stands for one space.
    pub fn end_at(&self, text: &Text<'_>, at: usize) -> Option<usize> {
        let accept = 1 << self.places.len();
        let mut states = self.closure(1);
        let mut best = None;
        let mut here = at;
        loop {
            if states & accept != 0 {
                best = Some(here);
            }
            let Some(c) = text.get(here) else { break };
            let taken = bits(states & !accept).filter(|&index| self.places[index].takes(c));
            let next = taken.fold(0, |next, index| next | 1 << (index + 1));
            if next == 0 {
                break;
            }
            states = self.closure(next);
            here += 1;
        }
        best.filter(|end| *end > at)
    }

    /// Adds the places that can be reached by leaving optional ones out.
    fn closure(&self, states: u64) -> u64 {
        let (mut all, mut left) = (states, states);
        while left != 0 {
            let index = left.trailing_zeros() as usize;
            left &= left - 1;
            if self.places.get(index).is_some_and(|place| place.optional) {
                all |= 1 << (index + 1);
                left |= 1 << (index + 1);
            }
        }
        all
    }
}

/// The numbers of the bits that are set.
fn bits(mut of: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let bit = of.trailing_zeros() as usize;
        (of != 0).then(|| {
            of &= of - 1;
            bit
        })
    })
}

impl Place {
    fn takes(&self, c: char) -> bool {
        let c = if c == ' ' && self.class == [('-', '-')] { '-' } else { c };
        self.class.iter().any(|&(from, to)| (from..=to).contains(&c))
    }
}

type Rest<'a> = std::iter::Peekable<std::str::Chars<'a>>;

fn class(rest: &mut Rest<'_>) -> Option<Vec<(char, char)>> {
    let mut ranges = Vec::new();
    loop {
        let from = fold(rest.next()?);
        if from == ']' {
            return (!ranges.is_empty()).then_some(ranges);
        }
        let mut ahead = rest.clone();
        if ahead.next() == Some('-') && ahead.peek().is_some_and(|c| *c != ']') {
            let to = fold(ahead.next()?);
            *rest = ahead;
            ranges.push((from, to));
        } else {
            ranges.push((from, from));
        }
    }
}

fn count(rest: &mut Rest<'_>) -> Option<(usize, usize)> {
    match rest.peek() {
        Some('?') => {
            rest.next();
            Some((0, 1))
        }
        Some('{') => {
            rest.next();
            let mut inner = String::new();
            loop {
                match rest.next()? {
                    '}' => break,
                    c => inner.push(c),
                }
            }
            let (least, most) = inner.split_once(',').unwrap_or((&inner, &inner));
            let (least, most) = (least.trim().parse().ok()?, most.trim().parse().ok()?);
            (least <= most && (1..=MAX_PLACES).contains(&most)).then_some((least, most))
        }
        _ => Some((1, 1)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matched(pattern: &str, s: &str) -> Option<String> {
        let text = Text::new(s);
        let end = Pattern::new(pattern).unwrap().end_at(&text, 0)?;
        Some(text.original(&(0..end)).to_owned())
    }

    #[test]
    fn matches_the_longest_in_any_width() {
        assert_eq!(matched("[A-Z]{2}-?[0-9]{6,12}", "AB-123456789").as_deref(), Some("AB-123456789"));
        assert_eq!(
            matched("[A-Z]{2}-?[0-9]{6,12}", "ＡＢ－１２３４５６，").as_deref(),
            Some("ＡＢ－１２３４５６")
        );
        assert_eq!(matched("[A-Z]{2}-?[0-9]{6,12}", "AB　123456").as_deref(), Some("AB　123456"));
        assert_eq!(matched("[A-Z]{2}-?[0-9]{6,12}", "AB12345"), None);
        assert_eq!(matched("SO\\d{3}", "so123x").as_deref(), Some("so123"));
        assert_eq!(matched("[A-Z0-9]{3,5}X", "abcdex").as_deref(), Some("abcdex"));
    }

    #[test]
    fn refuses_what_it_does_not_speak() {
        for bad in ["", "a*", "(a)", "[a", "a{2", "a{3,2}", "a{99}", "\\w", "a?", ".", "a{0}"] {
            assert!(Pattern::new(bad).is_err(), "{bad}");
        }
    }
}
