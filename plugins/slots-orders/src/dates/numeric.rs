//! Dates in digits: 2026-03-05, 2026/3/5, 25/12/2026. What could be read two ways is unclear.

use super::{Calendar, Hit, When};
use crate::civil::Day;
use crate::text::Text;

pub(super) fn date_at(text: &Text<'_>, at: usize, _calendar: Calendar) -> Option<Hit> {
    if text.before(at).is_some_and(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '/' | '.' | '+' | '#'))
    {
        return None;
    }
    let (first, end) = digits(text, at)?;
    let separator = text.get(end).filter(|c| matches!(c, '-' | '/' | '.'))?;
    let (second, end) = digits(text, end + 1)?;
    match text.get(end) {
        Some(c) if c == separator && text.get(end + 1).is_some_and(|c| c.is_ascii_digit()) => {
            let (third, end) = digits(text, end + 1)?;
            closed(text, end).then(|| three(first, second, third, end)).flatten()
        }
        _ if separator == '/' && closed(text, end) => two(first, second, end),
        _ => None,
    }
}

/// A number of one to four digits and how many there were.
#[derive(Clone, Copy)]
struct Part {
    value: u32,
    digits: usize,
}

fn digits(text: &Text<'_>, at: usize) -> Option<(Part, usize)> {
    let end = text.run(at, |c| c.is_ascii_digit());
    if !(1..=4).contains(&(end - at)) {
        return None;
    }
    let value = text.slice(at..end).iter().collect::<String>().parse().ok()?;
    Some((Part { value, digits: end - at }, end))
}

/// Nothing follows that would make the date part of a longer code; `T08:00` may.
fn closed(text: &Text<'_>, at: usize) -> bool {
    match text.get(at) {
        Some('-' | '/') => !text.get(at + 1).is_some_and(|c| c.is_ascii_alphanumeric()),
        Some('.') => !text.get(at + 1).is_some_and(|c| c.is_ascii_digit()),
        Some('t') => text.get(at + 1).is_some_and(|c| c.is_ascii_digit()),
        Some(c) => !c.is_ascii_alphanumeric(),
        None => true,
    }
}

fn three(first: Part, second: Part, third: Part, end: usize) -> Option<Hit> {
    let day = |y: Part, m: Part, d: Part| Day::of_civil(i64::from(y.value), m.value, d.value).map(When::Day);
    if first.digits == 4 && second.digits <= 2 && third.digits <= 2 {
        return Hit::sure(end, day(first, second, third));
    }
    if third.digits != 4 || first.digits > 2 || second.digits > 2 {
        return None;
    }
    // Day first or month first: only where one of the two is no date, or both are the same.
    match (day(third, second, first), day(third, first, second)) {
        (Some(a), Some(b)) if a != b => Hit::unclear(end),
        (a, b) => Hit::sure(end, a.or(b)),
    }
}

/// 3/5 may be March or May; 24/7 and other fractions are no dates at all.
fn two(first: Part, second: Part, end: usize) -> Option<Hit> {
    let plausible = |a: u32, b: u32| (1..=12).contains(&a) && (1..=31).contains(&b);
    let may_be = first.digits <= 2 && second.digits <= 2 && (first.value, second.value) != (24, 7);
    let read = plausible(first.value, second.value) || plausible(second.value, first.value);
    if may_be && read { Hit::unclear(end) } else { None }
}
