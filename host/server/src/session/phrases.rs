//! Phrases that say that something said before is meant, and the words around them that name it.

use aho_corasick::{AhoCorasick, MatchKind};

/// Signs that end a clause.
const ENDS: &[char] =
    &[',', '.', ';', ':', '!', '?', '\n', '，', '。', '；', '：', '！', '？', '、', '…', '—'];

/// Words that say that something said before is meant, in any case.
pub(super) struct Phrases(AhoCorasick);

impl Phrases {
    /// None when nothing can be searched for with these.
    pub(super) fn new(phrases: &[String]) -> Option<Phrases> {
        let phrases = phrases.iter().map(|phrase| phrase.to_lowercase());
        // Overlapping matches: one that ends inside a word must not hide another.
        let built = AhoCorasick::builder().match_kind(MatchKind::Standard).build(phrases);
        built.inspect_err(|error| tracing::warn!(%error, "phrases cannot be looked for")).ok().map(Phrases)
    }

    /// The words behind the first of them, up to the next sign, and all others; in lower case. None where none is in the text.
    pub(super) fn around(&self, text: &str) -> Option<(String, String)> {
        let text = text.to_lowercase();
        let mut found: Vec<(usize, usize)> = self
            .0
            .find_overlapping_iter(&text)
            .map(|found| (found.start(), found.end()))
            .filter(|(start, end)| !joins_letters(&text, *start) && !joins_letters(&text, *end))
            .collect();
        found.sort_unstable();
        let (start, mut end) = *found.first()?;
        // 回到刚才, 刚才说: they overlap.
        for (later, until) in found {
            end = if later <= end { end.max(until) } else { end };
        }
        let clause = text[end..].find(ENDS).map_or(text.len(), |length| end + length);
        Some((text[end..clause].to_owned(), format!("{} {}", &text[..start], &text[clause..])))
    }
}

/// Whether a letter of a script that puts spaces between words stands on both sides.
fn joins_letters(text: &str, at: usize) -> bool {
    let is_letter = |character: char| character.is_alphabetic() && character < '\u{2e80}';
    let (before, after) = text.split_at(at);
    before.chars().next_back().is_some_and(is_letter) && after.chars().next().is_some_and(is_letter)
}
