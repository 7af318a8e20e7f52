//! The answers of an output filter.

use super::{Checked, reason, span};
use crate::types::{Interest, Verdict, Window};

/// Longest name of a watch, in bytes.
const MAX_NAME_BYTES: usize = 128;

/// The rules for `interests` that compiling the watches does not hold.
pub(crate) fn interest(interest: &Interest) -> Checked {
    for watch in &interest.watches {
        super::not_empty("the name of a watch", &watch.name)?;
        super::at_most("the name of a watch", watch.name.len(), MAX_NAME_BYTES, "bytes")?;
    }
    super::attributes(&interest.attributes)
}

/// `max_hold` is the bound on held text, in bytes.
pub(crate) fn verdicts(verdicts: &[Verdict], windows: &[Window], max_hold: u32) -> Checked {
    for pair in verdicts.windows(2) {
        if pair[1].window <= pair[0].window {
            let (first, second) = (pair[0].window, pair[1].window);
            return Err(format!("a verdict on window {second} after one on window {first}"));
        }
    }
    for verdict in verdicts {
        let window = windows
            .get(verdict.window as usize)
            .ok_or_else(|| format!("a verdict on window {} of {}", verdict.window, windows.len()))?;
        self::verdict(verdict, window, max_hold)
            .map_err(|what| format!("window {}: {what}", verdict.window))?;
    }
    Ok(())
}

fn verdict(verdict: &Verdict, window: &Window, max_hold: u32) -> Checked {
    let kept = kept_bytes(verdict, window, max_hold)?;
    let mut done = 0;
    for replacement in &verdict.replace {
        span("replacement", replacement.at, &window.pending)?;
        let (start, end) = (replacement.at.start, replacement.at.end);
        if start < done {
            return Err(format!("replacement {start}..{end} overlaps the one before, or comes late"));
        }
        if end as usize > kept {
            return Err(format!("replacement {start}..{end} reaches into the bytes held from {kept}"));
        }
        done = end;
    }
    match &verdict.stop {
        Some(stop) => reason("the reason to stop", stop),
        None => Ok(()),
    }
}

/// Bytes of the window that are not held.
fn kept_bytes(verdict: &Verdict, window: &Window, max_hold: u32) -> Checked<usize> {
    let (hold, length) = (verdict.hold_bytes as usize, window.pending.len());
    let kept = length.checked_sub(hold).ok_or_else(|| format!("{hold} bytes held of {length}"))?;
    if !window.pending.is_char_boundary(kept) {
        return Err(format!("{hold} bytes held, which begin inside of a character"));
    }
    if verdict.stop.is_none() {
        if window.is_final && hold > 0 {
            return Err(format!("{hold} bytes held of a final window"));
        }
        if verdict.hold_bytes > max_hold {
            return Err(format!("{hold} bytes held; at most {max_hold}"));
        }
    }
    Ok(kept)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::{Replacement, Span};

    fn windows() -> Vec<Window> {
        let window =
            |pending: &str, is_final| Window { pending: pending.into(), is_final, ..Window::default() };
        vec![window("ab汉cd", false), window("end", true)]
    }

    fn on(window: u32, replace: &[(u32, u32)], hold_bytes: u32, stop: Option<&str>) -> Verdict {
        let replacement =
            |&(start, end): &(u32, u32)| Replacement { at: Span::new(start, end), text: "*".into() };
        Verdict {
            window,
            replace: replace.iter().map(replacement).collect(),
            hold_bytes,
            stop: stop.map(String::from),
        }
    }

    fn check(all: &[Verdict]) -> Checked {
        verdicts(all, &windows(), 4)
    }

    #[test]
    fn good_verdicts_pass() {
        assert_eq!(check(&[]), Ok(()));
        assert_eq!(check(&[on(0, &[(0, 1), (1, 2), (2, 5)], 2, None), on(1, &[(0, 3)], 0, None)]), Ok(()));
        // What a stop drops may be more than may be held, and may be the end of a final window.
        assert_eq!(check(&[on(0, &[], 7, Some("no")), on(1, &[], 3, Some("no"))]), Ok(()));
    }

    #[test]
    fn each_rule_is_held() {
        let broken = |verdict: Verdict| check(&[verdict]).expect_err("broken");
        assert!(broken(on(2, &[], 0, None)).contains("window 2 of 2"));
        assert!(broken(on(0, &[(2, 3)], 0, None)).contains("inside of a character"));
        assert!(broken(on(0, &[(0, 9)], 0, None)).contains("0..9"));
        assert!(broken(on(0, &[(0, 2), (1, 2)], 0, None)).contains("overlaps"));
        assert!(broken(on(0, &[(5, 6), (0, 1)], 0, None)).contains("comes late"));
        assert!(broken(on(0, &[], 8, None)).contains("8 bytes held of 7"));
        assert!(broken(on(0, &[], 3, None)).contains("inside of a character"));
        assert!(broken(on(0, &[], 5, None)).contains("at most 4"));
        assert!(broken(on(0, &[(2, 6)], 2, None)).contains("reaches into"));
        assert!(broken(on(1, &[], 1, None)).contains("final"));
        assert!(broken(on(0, &[], 0, Some(""))).contains("empty"));
        let twice = check(&[on(0, &[], 0, None), on(0, &[], 0, None)]);
        assert!(twice.expect_err("twice").contains("after one on window 0"));
        let backwards = check(&[on(1, &[], 0, None), on(0, &[], 0, None)]);
        assert!(backwards.is_err());
    }
}
