//! Tables and differences, for people: coloured on a terminal only.

use console::{Alignment, Style, measure_text_width, pad_str, style};
use serde_json::Value;

/// A column's heading, and whether it holds numbers, which are aligned to the right.
pub(super) struct Column(pub(super) &'static str, pub(super) Alignment);

/// Text.
pub(super) const fn text(heading: &'static str) -> Column {
    Column(heading, Alignment::Left)
}

/// Numbers.
pub(super) const fn number(heading: &'static str) -> Column {
    Column(heading, Alignment::Right)
}

/// Rows under headings, each column as wide as its widest cell.
pub(super) fn table<const N: usize>(columns: &[Column; N], rows: &[[String; N]]) -> String {
    let width = |at: usize| {
        let cells = rows.iter().map(|row| measure_text_width(&row[at]));
        cells.chain([columns[at].0.len()]).max().unwrap_or_default()
    };
    let widths: Vec<usize> = (0..N).map(width).collect();
    let line = |cells: &[&str]| {
        let padded = cells.iter().zip(columns).zip(&widths);
        let padded: Vec<_> =
            padded.map(|((cell, column), width)| pad_str(cell, *width, column.1, None)).collect();
        padded.join("  ").trim_end().to_owned() + "\n"
    };
    let headings: Vec<&str> = columns.iter().map(|column| column.0).collect();
    let mut table = style(line(&headings).trim_end()).bold().to_string() + "\n";
    for row in rows {
        table += &line(&row.each_ref().map(String::as_str));
    }
    table
}

/// Two values of one place, under each other, with what differs marked where both are text.
pub(super) fn two(place: &str, sides: [(&str, Option<&Value>); 2]) -> String {
    let place = if place.is_empty() { "(the whole)" } else { place };
    let width = sides.iter().map(|(label, _)| label.len()).max().unwrap_or_default();
    let texts = sides.map(|(_, value)| value.map_or_else(|| "(nothing)".to_owned(), Value::to_string));
    let marks = match sides {
        [(_, Some(Value::String(_))), (_, Some(Value::String(_)))] => Some(differing(&texts[0], &texts[1])),
        _ => None,
    };
    let colours = [Style::new().red(), Style::new().green()];
    let mut shown = format!("{}\n", style(place).bold());
    for (at, (label, _)) in sides.iter().enumerate() {
        let line = match &marks {
            Some(marks) => {
                let (start, end) = marks[at];
                let text = &texts[at];
                let changed = colours[at].clone().underlined().apply_to(&text[start..end]);
                format!("{}{changed}{}", &text[..start], &text[end..])
            }
            None => colours[at].apply_to(&texts[at]).to_string(),
        };
        shown += &format!("  {label:<width$}  {line}\n");
    }
    if let Some(marks) = marks {
        let (start, end) = marks[1];
        let before = measure_text_width(&texts[1][..start]);
        let length = measure_text_width(&texts[1][start..end]).max(1);
        shown += &format!("  {:width$}  {}{}\n", "", " ".repeat(before), "^".repeat(length));
    }
    shown
}

/// The span of each text, in bytes, between what both begin and end with.
fn differing(a: &str, b: &str) -> [(usize, usize); 2] {
    let same = |(x, y): &(char, char)| x == y;
    let length = |(x, _): (char, char)| x.len_utf8();
    let start: usize = a.chars().zip(b.chars()).take_while(same).map(length).sum();
    let rest = a[start..].chars().rev().zip(b[start..].chars().rev());
    let end: usize = rest.take_while(same).map(length).sum();
    [(start, a.len() - end), (start, b.len() - end)]
}

/// Every line a step to the right.
pub(super) fn indent(text: &str, by: usize) -> String {
    text.lines().map(|line| format!("{:by$}{line}\n", "")).collect()
}

/// The beginning of a digest: enough to tell versions apart.
pub(super) fn short(digest: &str) -> &str {
    digest.get(..12).unwrap_or(digest)
}

/// `1 case`, `2 cases`.
pub(super) fn count(number: usize, of: &str) -> String {
    match number {
        1 => format!("1 {of}"),
        number => format!("{number} {of}s"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let rows = [["退款".into(), "5".into()], ["a-long-name".into(), "1200".into()]];
        assert_eq!(
            table(&[text("NAME"), number("CALLS")], &rows),
            "NAME         CALLS\n退款             5\na-long-name   1200\n"
        );
    }

    #[test]
    fn what_differs_in_a_text_is_marked() {
        let (a, b) = (json!("编号[card]，谢谢"), json!("编号[卡号]，谢谢"));
        assert_eq!(
            two("/sent", [("expected", Some(&a)), ("found", Some(&b))]),
            "/sent\n  expected  \"编号[card]，谢谢\"\n  found     \"编号[卡号]，谢谢\"\n                  ^^^^\n"
        );
        let nothing = two("", [("expected", Some(&a)), ("found", None)]);
        assert!(
            nothing.starts_with("(the whole)\n") && nothing.ends_with("found     (nothing)\n"),
            "{nothing}"
        );
    }

    #[test]
    fn texts_that_share_their_ends_differ_between() {
        assert_eq!(differing("aXa", "aa"), [(1, 2), (1, 1)]);
        assert_eq!(differing("aa", "aaa"), [(2, 2), (2, 3)]);
        assert_eq!(differing("é", "è"), [(0, 2), (0, 2)]);
    }
}
