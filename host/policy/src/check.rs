//! Every answer of a guest, held to the rules of the contract before it leaves this crate.

mod compression;
mod extraction;
mod filtering;
mod instant;
mod routing;

pub(crate) use compression::edits;
pub(crate) use extraction::transition;
pub(crate) use filtering::{interest, verdicts};
pub(crate) use routing::decision;

use crate::types::{Field, Span};

/// A rule that is broken: where, and how.
pub(crate) type Checked<T = ()> = Result<T, String>;

/// Longest reason of a refusal or a stop, in bytes.
const MAX_REASON_BYTES: usize = 4 << 10;
/// Attributes of one record.
const MAX_ATTRIBUTES: usize = 64;

/// `start <= end <= length`, both between scalars.
fn span(what: &str, at: Span, text: &str) -> Checked {
    let Span { start, end } = at;
    if start > end {
        return Err(format!("{what}: span {start}..{end} ends before it starts"));
    }
    if end as usize > text.len() {
        let length = text.len();
        return Err(format!("{what}: span {start}..{end} of a text of {length} bytes"));
    }
    for bound in [start, end] {
        if !text.is_char_boundary(bound as usize) {
            return Err(format!("{what}: {bound} lies inside of a character"));
        }
    }
    Ok(())
}

fn not_empty(what: &str, text: &str) -> Checked {
    if text.is_empty() {
        return Err(format!("{what} is empty"));
    }
    Ok(())
}

fn at_most(what: &str, found: usize, max: usize, unit: &str) -> Checked {
    if found > max {
        return Err(format!("{what} has {found} {unit}; at most {max}"));
    }
    Ok(())
}

fn reason(what: &str, text: &str) -> Checked {
    not_empty(what, text)?;
    at_most(what, text.len(), MAX_REASON_BYTES, "bytes")
}

fn share(what: &str, value: f32) -> Checked {
    if (0.0..=1.0).contains(&value) {
        return Ok(());
    }
    Err(format!("{what} is {value}, not within 0 to 1"))
}

fn attributes(attributes: &[Field]) -> Checked {
    at_most("attributes", attributes.len(), MAX_ATTRIBUTES, "fields")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_lie_within_their_text_and_between_scalars() {
        let text = "a汉é";
        let check = |start, end| span("x", Span::new(start, end), text);
        assert_eq!(check(0, 6), Ok(()));
        assert_eq!(check(1, 4), Ok(()));
        assert_eq!(check(6, 6), Ok(()));
        assert_eq!(check(2, 4), Err("x: 2 lies inside of a character".into()));
        assert_eq!(check(1, 5), Err("x: 5 lies inside of a character".into()));
        assert_eq!(check(4, 1), Err("x: span 4..1 ends before it starts".into()));
        assert_eq!(check(0, 7), Err("x: span 0..7 of a text of 6 bytes".into()));
        assert!(check(u32::MAX, u32::MAX).is_err());
    }

    #[test]
    fn a_share_is_a_number_from_0_to_1() {
        assert_eq!(share("x", 0.0), Ok(()));
        assert_eq!(share("x", 1.0), Ok(()));
        for wrong in [-0.1, 1.1, f32::NAN, f32::INFINITY] {
            assert!(share("x", wrong).is_err(), "{wrong}");
        }
    }
}
