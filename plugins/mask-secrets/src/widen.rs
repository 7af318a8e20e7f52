//! Rewrites a regex so that full-width forms match where ASCII was written.

use std::iter::Peekable;
use std::str::Chars;

/// What a hyphen stands for outside a class: a hyphen of any width, or one space of any width.
const HYPHEN: &str = r"[\-－‐‑– \u{a0}\u{3000}]";
/// What a hyphen adds inside a class.
const CLASS_HYPHEN: &str = "－‐‑–";
const DIGITS: &str = "0-9０-９";

/// The same pattern for ASCII and full-width text. What it does not know it leaves as written.
///
/// # Errors
/// A pattern in verbose mode, where a space means nothing, and one that ends inside a class or an escape.
pub(crate) fn widen(regex: &str) -> Result<String, String> {
    let mut wide = String::with_capacity(regex.len() * 4);
    let mut rest = regex.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '\\' => escape(&mut rest, &mut wide, Place::Outside)?,
            '[' => class(&mut rest, &mut wide)?,
            '(' => group(&mut rest, &mut wide)?,
            '{' => {
                wide.push(c);
                copy_to(&mut rest, &mut wide, '}')?;
            }
            '*' | '+' | '?' | '|' | ')' | '^' | '$' | '.' => wide.push(c),
            _ => literal(c, &mut wide, Place::Outside),
        }
    }
    Ok(wide)
}

#[derive(Clone, Copy, PartialEq)]
enum Place {
    Outside,
    InClass,
}

type Rest<'a> = Peekable<Chars<'a>>;

/// A character that stands for itself.
fn literal(c: char, wide: &mut String, place: Place) {
    match (place, full_width(c)) {
        (Place::Outside, _) if c == '-' => wide.push_str(HYPHEN),
        (Place::Outside, Some(form)) => {
            wide.push('[');
            push_escaped(c, wide);
            wide.extend([form, ']']);
        }
        (Place::InClass, Some(form)) => {
            push_escaped(c, wide);
            wide.push(form);
            if c == '-' {
                wide.push_str(CLASS_HYPHEN);
            }
        }
        (_, None) => wide.push(c),
    }
}

fn push_escaped(c: char, wide: &mut String) {
    // An escaped angle bracket is the edge of a word.
    if c.is_ascii_punctuation() && !matches!(c, '<' | '>') {
        wide.push('\\');
    }
    wide.push(c);
}

/// What follows a backslash.
fn escape(rest: &mut Rest<'_>, wide: &mut String, place: Place) -> Result<(), String> {
    let c = rest.next().ok_or("ends in a backslash")?;
    match (c, place) {
        ('d', Place::InClass) => wide.push_str(DIGITS),
        ('d', Place::Outside) => wide.extend(["[", DIGITS, "]"]),
        (c, _) if c.is_ascii_punctuation() && !matches!(c, '<' | '>') => literal(c, wide, place),
        (c, _) => {
            wide.extend(['\\', c]);
            // \p{Han}, \x{3000}, \u{3000}: what is in the braces is a name, not text. \x41 and \u3000: likewise.
            if rest.peek() == Some(&'{') && matches!(c, 'p' | 'P' | 'x' | 'u' | 'U' | 'b') {
                copy_to(rest, wide, '}')?;
            } else {
                let digits = match c {
                    'x' => 2,
                    'u' => 4,
                    'U' => 8,
                    'p' | 'P' => 1,
                    _ => 0,
                };
                wide.extend(rest.take(digits));
            }
        }
    }
    Ok(())
}

/// A class, of which the opening bracket was read.
fn class(rest: &mut Rest<'_>, wide: &mut String) -> Result<(), String> {
    wide.push('[');
    if rest.next_if_eq(&'^').is_some() {
        wide.push('^');
    }
    // A bracket that comes first stands for itself.
    if rest.next_if_eq(&']').is_some() {
        literal(']', wide, Place::InClass);
    }
    loop {
        match rest.next().ok_or("ends inside a class")? {
            ']' => {
                wide.push(']');
                return Ok(());
            }
            '[' if rest.peek() == Some(&':') => {
                wide.push('[');
                copy_to(rest, wide, ']')?;
            }
            '[' => class(rest, wide)?,
            c @ ('&' | '~' | '-') if rest.peek() == Some(&c) => {
                wide.extend([c, c]);
                rest.next();
            }
            '\\' => match rest.peek() {
                Some(c) if c.is_ascii_punctuation() => {
                    let low = *c;
                    rest.next();
                    range_or_literal(low, rest, wide);
                }
                _ => escape(rest, wide, Place::InClass)?,
            },
            low => range_or_literal(low, rest, wide),
        }
    }
}

/// `a-z`, or `a` alone.
fn range_or_literal(low: char, rest: &mut Rest<'_>, wide: &mut String) {
    let mut ahead = rest.clone();
    let high = match (ahead.next(), ahead.next()) {
        (Some('-'), Some(high)) if !matches!(high, ']' | '[' | '\\' | '-') => high,
        _ => return literal(low, wide, Place::InClass),
    };
    *rest = ahead;
    push_escaped(low, wide);
    wide.push('-');
    push_escaped(high, wide);
    if let Some((low, high)) = full_width(low).zip(full_width(high)).filter(|_| low != ' ') {
        wide.extend([low, '-', high]);
    }
}

/// `(`, `(?:`, `(?i)`, `(?P<name>`: up to where text begins.
fn group(rest: &mut Rest<'_>, wide: &mut String) -> Result<(), String> {
    wide.push('(');
    if rest.next_if_eq(&'?').is_none() {
        return Ok(());
    }
    wide.push('?');
    for c in rest.by_ref() {
        wide.push(c);
        match c {
            ':' | ')' | '>' => return Ok(()),
            'x' if !wide.ends_with("<x") => return Err("verbose mode needs `widths = false`".into()),
            '<' => return copy_to(rest, wide, '>'),
            _ => {}
        }
    }
    Err("ends inside a group".into())
}

fn copy_to(rest: &mut Rest<'_>, wide: &mut String, end: char) -> Result<(), String> {
    for c in rest.by_ref() {
        wide.push(c);
        if c == end {
            return Ok(());
        }
    }
    Err(format!("`{end}` is missing"))
}

/// The full-width form of an ASCII character.
fn full_width(c: char) -> Option<char> {
    match c {
        ' ' => Some('\u{3000}'),
        '!'..='~' => char::from_u32(u32::from(c) + 0xfee0),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::widen;

    fn wide(regex: &str) -> String {
        widen(regex).expect("a pattern")
    }

    #[test]
    fn literals_and_digits_match_in_both_widths() {
        assert_eq!(wide(r"A\d{4}"), r"[AＡ][0-9０-９]{4}");
        assert_eq!(wide("编号 9"), "编号[ \u{3000}][9９]");
        assert_eq!(wide(r"\."), r"[\.．]");
        assert_eq!(wide("a-b"), r"[aａ][\-－‐‑– \u{a0}\u{3000}][bｂ]");
    }

    #[test]
    fn classes_get_the_other_width_of_each_member() {
        assert_eq!(wide("[A-Z_]+"), r"[A-ZＡ-Ｚ\_＿]+");
        assert_eq!(wide(r"[^\d汉-]"), r"[^0-9０-９汉\-－－‐‑–]");
        assert_eq!(wide(r"[]a]"), r"[\]］aａ]");
        assert_eq!(wide(r"[[:alpha:]&&[^x]]"), r"[[:alpha:]&&[^xｘ]]");
        assert_eq!(wide(r"[\]\-\p{Han}]"), r"[\]］\-－－‐‑–\p{Han}]");
        assert_eq!(wide("[!-~]"), r"[\!-\~！-～]");
        assert_eq!(wide("<[>a]"), r"[<＜][>＞aａ]");
    }

    #[test]
    fn syntax_stays_syntax() {
        for same in [
            r"(?:.*?)",
            r"(?P<x>.)",
            r"(?<name>.)",
            r"(?i:.)",
            r"^\w+\s$",
            r"\x41\u{3000}\pL\p{Han}|",
            r"\<\w",
            r".{2,3}",
        ] {
            assert_eq!(wide(same), same);
        }
    }

    #[test]
    fn what_cannot_be_rewritten_is_refused() {
        for bad in ["(?x) a b", "[abc", r"abc\", "(?P<name", r"\p{Han", "a{2"] {
            assert!(widen(bad).is_err(), "{bad}");
        }
    }
}
