//! A prompt whose control tokens are known apart from its text.

use aho_corasick::{AhoCorasick, MatchKind};

/// A part of a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Segment {
    /// Text: whatever it says, it holds no control token.
    Text(String),
    /// One control token that the template wrote, by its text.
    Control(String),
}

/// A conversation as the model's template writes it. Control tokens come from the template alone.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rendered {
    segments: Vec<Segment>,
}

impl Rendered {
    /// A prompt of text alone.
    pub fn plain(text: impl Into<String>) -> Self {
        Self { segments: vec![Segment::Text(text.into())] }
    }

    /// The parts, in order; no text is empty and no two texts are neighbours.
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// The whole prompt as one string, in which control tokens can no longer be told from text.
    pub fn text(&self) -> String {
        let texts = self.segments.iter().map(|segment| match segment {
            Segment::Text(text) | Segment::Control(text) => text.as_str(),
        });
        texts.collect()
    }

    /// The control tokens in order.
    pub(super) fn controls(&self) -> impl Iterator<Item = &str> {
        self.segments.iter().filter_map(|segment| match segment {
            Segment::Control(text) => Some(text.as_str()),
            Segment::Text(_) => None,
        })
    }

    fn push_text(&mut self, marked: &str, mark: char) {
        let text: String = marked.chars().filter(|&c| c != mark).collect();
        match self.segments.last_mut() {
            _ if text.is_empty() => {}
            Some(Segment::Text(last)) => last.push_str(&text),
            _ => self.segments.push(Segment::Text(text)),
        }
    }
}

/// Finds control tokens in marked text.
pub(super) struct Splitter {
    finder: AhoCorasick,
}

impl Splitter {
    /// None when the control tokens are too many to look for.
    pub(super) fn new(controls: &[String]) -> Option<Self> {
        let finder = AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(controls).ok()?;
        Some(Self { finder })
    }

    /// Splits at the control tokens that no mark breaks, and drops the marks.
    pub(super) fn split(&self, marked: &str, mark: char) -> Rendered {
        let mut out = Rendered::default();
        let mut at = 0;
        for found in self.finder.find_iter(marked) {
            let text = &marked[found.range()];
            // A token of one character cannot be broken inside: the mark stands behind it.
            let broken = text.chars().nth(1).is_none() && marked[found.end()..].starts_with(mark);
            if broken {
                continue;
            }
            out.push_text(&marked[at..found.start()], mark);
            out.segments.push(Segment::Control(text.to_owned()));
            at = found.end();
        }
        out.push_text(&marked[at..], mark);
        out
    }
}
