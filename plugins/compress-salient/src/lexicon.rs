//! The lists, made ready: words and phrases found by their first glyph, the longest first.

use crate::glyphs::{Glyphs, fold};
use crate::rules::{Config, Words};

/// What a list says of its words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listed {
    /// Goes first.
    Filler,
    /// Goes first where a pause follows, else it stays.
    Pause,
    /// Goes by its surprisal.
    Function,
    /// A Chinese word like any other.
    Word,
    /// Stays, with what it negates.
    Negation,
    /// Stays.
    Kept,
    /// Stays, with what completes it.
    Verb,
    /// Stays, with what leads up to it.
    Time,
    /// Stays, with the name behind it.
    NameAfter,
    /// Stays, with the name before it.
    NameBefore,
}

/// All lists.
#[derive(Debug)]
pub struct Lexicon {
    words: Phrases,
    units: Phrases,
    /// In lower case, sorted.
    verbs: Vec<String>,
}

impl Lexicon {
    /// # Errors
    /// A phrase that is empty, stands in two lists, or could take a negation or a number with it.
    pub fn new(config: &Config) -> Result<Lexicon, String> {
        let lists: [(&str, &Words, Listed); 10] = [
            ("negation", &config.negation, Listed::Negation),
            ("filler", &config.filler, Listed::Filler),
            ("pause", &config.pause, Listed::Pause),
            ("function", &config.function, Listed::Function),
            ("word", &config.word, Listed::Word),
            ("verb", &config.verb, Listed::Verb),
            ("time", &config.time, Listed::Time),
            ("keep", &config.keep, Listed::Kept),
            ("name_after", &config.name_after, Listed::NameAfter),
            ("name_before", &config.name_before, Listed::NameBefore),
        ];
        let mut words: Vec<(String, Listed, &str)> = Vec::new();
        for (list, phrases, listed) in lists {
            for phrase in phrases.all() {
                let folded = folded(phrase);
                if let Some(why) = refusal(&folded, listed, config) {
                    return Err(format!("{list}: `{phrase}` {why}"));
                }
                if let Some((_, _, other)) = words.iter().find(|(other, _, _)| *other == folded) {
                    return Err(format!("{list}: `{phrase}` is in {other}, too; leave it in one of them"));
                }
                words.push((folded, listed, list));
            }
        }
        // 'you (really) know' must not become a filler when a word between goes.
        let is_kept = |word: &str| words.iter().any(|(listed, what, _)| listed == word && !may_go(*what));
        let all_kept = |phrase: &str| phrase.contains(' ') && phrase.split(' ').all(is_kept);
        if let Some((phrase, _, list)) =
            words.iter().find(|(phrase, what, _)| may_go(*what) && all_kept(phrase))
        {
            return Err(format!("{list}: `{phrase}` may not be dropped: other lists keep each word of it"));
        }
        let words = words.into_iter().map(|(phrase, listed, _)| (phrase, listed));
        let units = config.unit.all().map(|unit| (folded(unit), Listed::Kept));
        let mut verbs: Vec<String> = config.verb.en.iter().map(|verb| folded(verb)).collect();
        verbs.sort_unstable();
        Ok(Lexicon { words: Phrases::new(words), units: Phrases::new(units), verbs })
    }

    /// End and list of the longest phrase that starts at `at` and may end there.
    pub fn at(&self, glyphs: &Glyphs<'_>, at: usize, may: impl Fn(usize) -> bool) -> Option<(usize, Listed)> {
        self.words.longest_at(glyphs, at, may)
    }

    /// End of the longest unit of measure that starts at `at` and may end there.
    pub fn unit_at(&self, glyphs: &Glyphs<'_>, at: usize, may: impl Fn(usize) -> bool) -> Option<usize> {
        self.units.longest_at(glyphs, at, may).map(|(end, _)| end)
    }

    /// Whether an English word in lower case is a form of a listed verb.
    pub fn is_verb(&self, word: &str) -> bool {
        let known = |stem: &str| self.verbs.binary_search_by(|verb| verb.as_str().cmp(stem)).is_ok();
        let Some(stem) = ["ing", "ed", "es", "s"].iter().find_map(|end| {
            let stem = word.strip_suffix(end)?;
            (known(stem)
                || known(&format!("{stem}e"))
                || undoubled(stem).is_some_and(known)
                || ies(stem, known))
            .then_some(stem)
        }) else {
            return known(word);
        };
        stem.len() > 1
    }
}

fn folded(phrase: &str) -> String {
    phrase.trim().chars().map(fold).collect()
}

fn may_go(listed: Listed) -> bool {
    matches!(listed, Listed::Filler | Listed::Pause | Listed::Function | Listed::Word)
}

/// cancell, plann: without the doubled consonant.
fn undoubled(stem: &str) -> Option<&str> {
    let mut back = stem.chars().rev();
    let (last, before) = (back.next()?, back.next()?);
    (last == before).then(|| &stem[..stem.len() - last.len_utf8()])
}

/// tri(es), tri(ed): of a verb in y.
fn ies(stem: &str, known: impl Fn(&str) -> bool) -> bool {
    stem.strip_suffix('i').is_some_and(|stem| known(&format!("{stem}y")))
}

/// Why a phrase must not be in its list.
fn refusal(folded: &str, listed: Listed, Config { negation, word, .. }: &Config) -> Option<String> {
    if folded.is_empty() {
        return Some("is empty".into());
    }
    if !may_go(listed) || listed == Listed::Word {
        return None;
    }
    if folded.chars().any(char::is_numeric) {
        return Some("holds a digit; it must not be dropped".into());
    }
    // 非常 hides the character of a negation.
    let open = word.zh.iter().fold(folded.to_owned(), |open, word| open.replace(word.as_str(), "\n"));
    let chinese = negation.zh.iter().find(|word| open.contains(word.as_str()));
    let english = negation.en.iter().find(|word| folded.split(' ').any(|part| part == word.as_str()));
    let negation = chinese.or(english).map(String::as_str);
    let negation = negation.or(folded.split(' ').any(|part| part.ends_with("n't")).then_some("n't"));
    negation.map(|word| format!("holds the negation `{word}`; it must not be dropped"))
}

/// Phrases by their first glyph, and of those the longest first.
#[derive(Debug)]
struct Phrases(Vec<(Vec<char>, Listed)>);

impl Phrases {
    fn new(phrases: impl Iterator<Item = (String, Listed)>) -> Self {
        let mut sorted: Vec<(Vec<char>, Listed)> =
            phrases.map(|(phrase, listed)| (phrase.chars().collect(), listed)).collect();
        sorted.sort_unstable_by(|(a, _), (b, _)| {
            a.first().cmp(&b.first()).then(b.len().cmp(&a.len())).then_with(|| a.cmp(b))
        });
        Phrases(sorted)
    }

    fn longest_at(
        &self,
        glyphs: &Glyphs<'_>,
        at: usize,
        may: impl Fn(usize) -> bool,
    ) -> Option<(usize, Listed)> {
        let first = Some(glyphs.get(at)?);
        let from = self.0.partition_point(|(phrase, _)| phrase.first().copied() < first);
        let like = self.0[from..].iter().take_while(|(phrase, _)| phrase.first().copied() == first);
        let end = |phrase: &[char]| end_of(phrase, glyphs, at).filter(|end| may(*end));
        like.into_iter().find_map(|(phrase, listed)| Some((end(phrase)?, *listed)))
    }
}

/// Where a phrase that starts at `at` ends. One that ends in a Latin letter ends with its word.
fn end_of(phrase: &[char], glyphs: &Glyphs<'_>, at: usize) -> Option<usize> {
    let end = at + phrase.len();
    if !phrase.iter().zip(at..).all(|(&c, i)| glyphs.get(i) == Some(c)) {
        return None;
    }
    let joins = |c: char| c.is_ascii_alphanumeric() || matches!(c, '\'' | '-' | '_' | '@');
    let open = phrase.last()?.is_ascii_alphanumeric() && glyphs.get(end).is_some_and(joins);
    (!open).then_some(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verbs_are_known_in_every_form() {
        let verbs = ["be", "cancel", "change", "plan", "send", "try"].map(str::to_owned).into();
        let lexicon = Lexicon {
            words: Phrases::new(std::iter::empty()),
            units: Phrases::new(std::iter::empty()),
            verbs,
        };
        for form in [
            "cancel",
            "cancelled",
            "canceling",
            "plans",
            "planning",
            "changed",
            "changing",
            "tried",
            "tries",
            "sends",
        ] {
            assert!(lexicon.is_verb(form), "{form}");
        }
        for other in ["sender", "bed", "plant", "tri", "s", "channel"] {
            assert!(!lexicon.is_verb(other), "{other}");
        }
    }

    #[test]
    fn the_longest_phrase_wins_and_ends_with_its_word() {
        let words = ["in", "in order to", "特别", "别"].map(|phrase| (phrase.to_owned(), Listed::Word));
        let phrases = Phrases::new(words.into_iter());
        let found = |text: &str| phrases.longest_at(&Glyphs::new(text), 0, |_| true).map(|(end, _)| end);
        assert_eq!(found("In order to go"), Some(11));
        assert_eq!(found("in orderly"), Some(2));
        assert_eq!(found("in-house"), None);
        assert_eq!(found("inn"), None);
        assert_eq!(found("特别好"), Some(2));
    }
}
