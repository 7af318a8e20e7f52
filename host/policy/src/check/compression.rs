//! The answer of a compressor.

use super::{Checked, span};
use crate::types::{Edit, Part, Role, Span, apply_edits};

/// Checks edits and puts them in order of message and start.
pub(crate) fn edits(edits: &mut [Edit], parts: &[Part]) -> Checked {
    edits.sort_by_key(|edit| (edit.message, edit.at.start, edit.at.end));
    for edit in edits.iter() {
        let part = parts
            .get(edit.message as usize)
            .ok_or_else(|| format!("an edit of message {} of {}", edit.message, parts.len()))?;
        let what = format!("edit of message {}", edit.message);
        span(&what, edit.at, &part.message.text)?;
        if let Some(protected) = part.protected.iter().find(|held| touches(edit.at, **held)) {
            let Span { start, end } = protected;
            return Err(format!("{what} touches the protected bytes {start}..{end}"));
        }
    }
    for pair in edits.windows(2) {
        if pair[0].message == pair[1].message && pair[1].at.start < pair[0].at.end {
            let (first, second) = (pair[0].at, pair[1].at);
            return Err(format!(
                "edits of message {} overlap: {}..{} and {}..{}",
                pair[0].message, first.start, first.end, second.start, second.end
            ));
        }
    }
    let after = apply_edits(parts, edits);
    none_grows(parts, &after)?;
    last_user_keeps_text(parts, &after)
}

/// An insertion at the edge of a protected span does not touch it.
fn touches(at: Span, protected: Span) -> bool {
    if at.is_empty() {
        return protected.start < at.start && at.start < protected.end;
    }
    at.start < protected.end && protected.start < at.end
}

fn none_grows(parts: &[Part], after: &[String]) -> Checked {
    for (index, (part, after)) in parts.iter().zip(after).enumerate() {
        let (had, has) = (part.message.text.len(), after.len());
        if has > had {
            return Err(format!("message {index} grows from {had} to {has} bytes"));
        }
    }
    Ok(())
}

fn last_user_keeps_text(parts: &[Part], after: &[String]) -> Checked {
    let last = parts.iter().zip(after).rfind(|(part, _)| part.message.role == Role::User);
    match last {
        Some((part, after)) if after.trim().is_empty() && !part.message.text.trim().is_empty() => {
            Err("the last message of the user would be blank".into())
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::Message;

    fn parts() -> Vec<Part> {
        let part = |role, text: &str, protected: Vec<Span>| Part {
            message: Message::new(role, text),
            protected,
            cached_bytes: 0,
        };
        vec![
            part(Role::System, "be brief", vec![Span::new(0, 8)]),
            part(Role::User, "你好，查 A-1", vec![Span::new(13, 16)]),
            part(Role::Assistant, "well", vec![]),
        ]
    }

    fn edit(message: u32, start: u32, end: u32, replacement: &str) -> Edit {
        Edit { message, at: Span::new(start, end), replacement: replacement.into() }
    }

    fn check(mut all: Vec<Edit>) -> Checked<Vec<Edit>> {
        edits(&mut all, &parts()).map(|()| all)
    }

    #[test]
    fn good_edits_pass_and_come_in_order() {
        let ordered = check(vec![edit(2, 0, 4, ""), edit(1, 9, 12, "!"), edit(1, 0, 9, "")]);
        assert_eq!(ordered, Ok(vec![edit(1, 0, 9, ""), edit(1, 9, 12, "!"), edit(2, 0, 4, "")]));
    }

    #[test]
    fn each_rule_is_held() {
        let broken = |edits: Vec<Edit>| check(edits).expect_err("broken");
        assert!(broken(vec![edit(3, 0, 0, "")]).contains("message 3 of 3"));
        assert!(broken(vec![edit(1, 1, 3, "")]).contains("inside of a character"));
        assert!(broken(vec![edit(1, 0, 99, "")]).contains("0..99"));
        assert!(broken(vec![edit(1, 0, 6, ""), edit(1, 3, 9, "")]).contains("overlap"));
        assert!(broken(vec![edit(1, 12, 14, "")]).contains("protected"));
        assert!(broken(vec![edit(1, 0, 9, ""), edit(1, 14, 14, "x")]).contains("protected"));
        assert!(broken(vec![edit(2, 0, 1, "looong")]).contains("grows from 4"));
        let mut unprotected = parts();
        unprotected[1].protected.clear();
        let blank = edits(&mut [edit(1, 0, 16, " ")], &unprotected);
        assert!(blank.expect_err("blank").contains("blank"));
    }

    #[test]
    fn an_insertion_at_the_edge_of_a_protected_span_is_allowed() {
        assert!(check(vec![edit(1, 0, 9, ""), edit(1, 13, 13, "#")]).is_ok());
        assert!(check(vec![edit(1, 0, 9, ""), edit(1, 16, 16, "#")]).is_ok());
    }
}
