//! What the customer wants, and whether a question was confirmed. A denied wish is no wish.

use crate::config::{ActionConfig, AnswerConfig, AnswersConfig, NegationConfig};
use crate::text::{Phrases, Text, is_cjk};
use std::ops::Range;

/// A wish in the utterance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wish {
    /// Number of the action in the rules.
    pub action: usize,
    /// Scalars of the text.
    pub at: Range<usize>,
    /// It is said not to be wanted.
    pub denied: bool,
}

/// Finds wishes.
pub struct Actions {
    names: Vec<String>,
    ranks: Vec<u8>,
    words: Phrases,
    unless: Vec<Phrases>,
    negation: Negation,
    answers: Answers,
}

impl Actions {
    /// Gathers the words.
    pub fn new(actions: &[ActionConfig], negation: &NegationConfig, answers: &AnswersConfig) -> Self {
        let numbered =
            actions.iter().enumerate().flat_map(|(n, a)| a.words.iter().map(move |w| (w.as_str(), n)));
        Actions {
            names: actions.iter().map(|a| a.name.clone()).collect(),
            ranks: actions.iter().map(|a| a.rank).collect(),
            words: Phrases::numbered(numbered),
            unless: actions.iter().map(|a| phrases(&a.unless)).collect(),
            negation: Negation::new(negation),
            answers: Answers::new(answers),
        }
    }

    /// The name of an action.
    pub fn name(&self, action: usize) -> &str {
        self.names.get(action).map_or("", String::as_str)
    }

    /// The number of the action of that name.
    pub fn number(&self, name: &str) -> Option<usize> {
        self.names.iter().position(|n| n == name)
    }

    /// All wishes, denied ones too, in order.
    pub fn find(&self, text: &Text<'_>) -> Vec<Wish> {
        let mut found: Vec<Wish> = Vec::new();
        let mut at = 0;
        while at < text.len() {
            let Some((end, action)) = self.words.longest_at(text, at) else {
                at += 1;
                continue;
            };
            let clause = text.clause_start(at)..text.clause_end(at);
            if self.unless[action].find_in(text, clause).is_none() {
                let floor = found.last().map_or(0, |wish| wish.at.end);
                found.push(Wish { action, at: at..end, denied: self.negation.reaches(text, at, floor) });
            }
            at = end;
        }
        found
    }

    /// The one wish that is meant: the highest in rank, when no other is as high. A wish that is denied later in the same
    /// breath (取消，不对，不要取消) is none.
    pub fn wanted<'w>(&self, wishes: &'w [Wish]) -> Option<&'w Wish> {
        let taken_back = |wish: &Wish| {
            wishes.iter().any(|w| w.denied && w.action == wish.action && w.at.start > wish.at.start)
        };
        let live = wishes.iter().filter(|wish| !wish.denied && !taken_back(wish));
        let highest = live.clone().map(|wish| self.ranks[wish.action]).max()?;
        let mut best = live.filter(|wish| self.ranks[wish.action] == highest);
        let first = best.next()?;
        best.all(|other| other.action == first.action).then_some(first)
    }

    /// Whether what stands at `at` is denied.
    pub fn denied(&self, text: &Text<'_>, at: usize) -> bool {
        self.negation.reaches(text, at, 0)
    }

    /// What a yes-or-no question about `action` got.
    pub fn answer(&self, text: &Text<'_>, wishes: &[Wish], action: Option<usize>) -> Option<AnswerConfig> {
        let about = |wish: &&Wish| Some(wish.action) == action;
        if wishes.iter().filter(about).any(|wish| wish.denied) {
            return Some(AnswerConfig::No);
        }
        let repeated: Vec<_> = wishes.iter().filter(about).map(|wish| wish.at.clone()).collect();
        self.answers.read(text, &repeated)
    }
}

fn phrases(words: &[String]) -> Phrases {
    Phrases::new(words.iter().map(String::as_str))
}

struct Negation {
    words: Phrases,
    not: Phrases,
    resets: Phrases,
    reach: usize,
}

impl Negation {
    fn new(config: &NegationConfig) -> Self {
        Negation {
            words: phrases(&config.words),
            not: phrases(&config.not),
            resets: phrases(&config.resets),
            reach: config.reach,
        }
    }

    /// Whether a negation of the same clause, not before `floor`, reaches what stands at `at`.
    fn reaches(&self, text: &Text<'_>, at: usize, floor: usize) -> bool {
        let start = text.clause_start(at).max(floor);
        let mut denied_from = None;
        let mut here = start;
        while here < at {
            if let Some((end, _)) = self.not.longest_at(text, here) {
                here = end;
            } else if let Some((end, _)) = self.words.longest_at(text, here).filter(|(end, _)| *end <= at) {
                denied_from = Some(end);
                here = end;
            } else if let Some((end, _)) = self.resets.longest_at(text, here).filter(|(end, _)| *end <= at) {
                denied_from = None;
                here = end;
            } else {
                here += 1;
            }
        }
        denied_from.is_some_and(|from| distance(text, from..at) <= self.reach)
    }
}

/// Chinese characters and other words in a range.
fn distance(text: &Text<'_>, range: Range<usize>) -> usize {
    let mut count = 0;
    let mut in_word = false;
    for &c in text.slice(range) {
        let letter = c.is_ascii_alphanumeric() || c == '\'';
        count += usize::from(is_cjk(c)) + usize::from(letter && !in_word);
        in_word = letter;
    }
    count
}

/// Reads yes and no.
struct Answers {
    pieces: Phrases,
}

const YES: usize = 0;
const NO: usize = 1;
const UNCLEAR: usize = 2;
const FILLER: usize = 3;

impl Answers {
    fn new(config: &AnswersConfig) -> Self {
        let lists =
            [(&config.yes, YES), (&config.no, NO), (&config.unclear, UNCLEAR), (&config.filler, FILLER)];
        let numbered = lists.iter().flat_map(|(words, kind)| words.iter().map(move |w| (w.as_str(), *kind)));
        Answers { pieces: Phrases::numbered(numbered) }
    }

    /// A clause counts when it is made of known pieces alone; `repeated` are places where the wish itself is said again.
    fn read(&self, text: &Text<'_>, repeated: &[Range<usize>]) -> Option<AnswerConfig> {
        let mut seen = [false; 4];
        let mut start = 0;
        let mut whole = true;
        while start < text.len() {
            let end = text.clause_end(start);
            if !self.cover(text, start..end, repeated, &mut seen) {
                if !(seen[YES] || seen[NO] || seen[UNCLEAR]) {
                    return None;
                }
                whole = false;
                self.scan(text, end.min(start)..text.len(), &mut seen);
                break;
            }
            start = end + 1;
        }
        let asks = (0..text.len()).any(|at| matches!(text.get(at), Some('?' | '吗')));
        match seen {
            [false, false, false, _] => None,
            _ if asks || seen[UNCLEAR] || (seen[YES] && seen[NO]) => Some(AnswerConfig::Unclear),
            [true, ..] => Some(AnswerConfig::Yes),
            // "不用了，我再想想" denies; a bare 不 before much else is not taken for an answer.
            _ if whole || seen[NO] => Some(AnswerConfig::No),
            _ => None,
        }
    }

    fn cover(
        &self,
        text: &Text<'_>,
        clause: Range<usize>,
        repeated: &[Range<usize>],
        seen: &mut [bool; 4],
    ) -> bool {
        let mut found = *seen;
        let mut at = clause.start;
        while at < clause.end {
            let again = repeated.iter().find(|r| r.start == at).map(|r| (r.end, YES));
            match again.or_else(|| self.pieces.longest_at(text, at)) {
                Some((end, kind)) if end <= clause.end => {
                    found[kind] = true;
                    at = end;
                }
                _ if text.get(at).is_some_and(|c| !c.is_alphanumeric()) => at += 1,
                _ => return false,
            }
        }
        *seen = found;
        true
    }

    /// In the rest only a contradiction is looked for.
    fn scan(&self, text: &Text<'_>, range: Range<usize>, seen: &mut [bool; 4]) {
        let mut at = range.start;
        while at < range.end {
            match self.pieces.longest_at(text, at) {
                Some((end, kind)) => {
                    seen[NO] |= kind == NO;
                    seen[UNCLEAR] |= kind == UNCLEAR;
                    at = end;
                }
                None => at += 1,
            }
        }
    }
}
