//! Replies with `{slot}` in them. What is put in is text and nothing else: braces in a value stay as they are.

/// A reply, split at its placeholders.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template(Vec<Piece>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Text(String),
    Slot(String),
}

impl Template {
    /// Splits a text; `known` says which placeholders there are. `{{` is a brace.
    pub fn new(source: &str, known: impl Fn(&str) -> bool) -> Result<Template, String> {
        let mut pieces = Vec::new();
        let mut text = String::new();
        let mut rest = source;
        while let Some(at) = rest.find('{') {
            text.push_str(&rest[..at]);
            rest = &rest[at + 1..];
            if let Some(after) = rest.strip_prefix('{') {
                text.push('{');
                rest = after;
                continue;
            }
            let Some(end) = rest.find('}') else {
                return Err(format!("text `{source}`: `{{` without `}}`"));
            };
            let name = &rest[..end];
            if !known(name) {
                return Err(format!("text `{source}`: there is no slot `{name}`"));
            }
            pieces.push(Piece::Text(std::mem::take(&mut text)));
            pieces.push(Piece::Slot(name.to_owned()));
            rest = &rest[end + 1..];
        }
        text.push_str(rest);
        pieces.push(Piece::Text(text));
        Ok(Template(pieces))
    }

    /// The text with its values, `None` when one is not known.
    pub fn render(&self, value: impl Fn(&str) -> Option<String>) -> Option<String> {
        let mut out = String::new();
        for piece in &self.0 {
            match piece {
                Piece::Text(text) => out.push_str(text),
                Piece::Slot(name) => out.push_str(&value(name)?),
            }
        }
        Some(out)
    }

    /// Whether a text is this one with some values.
    pub fn could_be(&self, text: &str) -> bool {
        // The first piece and the last are text, and between two of them there is a value.
        let [Piece::Text(first), rest @ ..] = self.0.as_slice() else { return false };
        let Some(mut left) = text.strip_prefix(first.as_str()) else { return false };
        let Some(([Piece::Text(last)], between)) = rest.split_last_chunk().map(|(rest, last)| (last, rest))
        else {
            return left.is_empty();
        };
        for piece in between {
            let Piece::Text(text) = piece else { continue };
            let Some((value, after)) = left.split_once(text.as_str()) else { return false };
            if value.is_empty() {
                return false;
            }
            left = after;
        }
        left.len() > last.len() && left.ends_with(last.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_plain_text() {
        let template = Template::new("订单 {order}，{{x", |n| n == "order").unwrap();
        assert_eq!(template.render(|_| Some("{order}".into())).as_deref(), Some("订单 {order}，{x"));
        assert_eq!(template.render(|_| None), None);
    }

    #[test]
    fn a_text_is_known_again_whatever_its_values() {
        let template = |source| Template::new(source, |_| true).unwrap();
        assert!(template("Done.").could_be("Done."));
        assert!(!template("Done.").could_be("Done. And more"));
        let asked = template("Order {order}: {changes}. Is that right?");
        assert!(asked.could_be("Order AB-12: date 2026-04-01, city Paris. Is that right?"));
        assert!(!asked.could_be("Order AB-12: . Is that right?"));
        assert!(!asked.could_be("Order AB-12 is on its way."));
        assert!(template("{order}").could_be("x") && !template("{order}").could_be(""));
    }

    #[test]
    fn unknown_placeholders_and_open_braces_are_refused() {
        assert!(Template::new("{oder}", |n| n == "order").unwrap_err().contains("oder"));
        assert!(Template::new("{order", |n| n == "order").is_err());
    }
}
