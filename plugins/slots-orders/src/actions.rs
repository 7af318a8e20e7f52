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
        // The clause that was read last, and of each action whether it is not meant there, once that was asked.
        let mut clause = 0..0;
        let mut unmeant = vec![None; self.unless.len()];
        while at < text.len() {
            let Some((end, action)) = self.words.longest_at(text, at) else {
                at += 1;
                continue;
            };
            if !clause.contains(&at) {
                clause = text.clause_start(at)..text.clause_end(at);
                unmeant.fill(None);
            }
            let ask = || self.unless[action].find_in(text, clause.clone()).is_some();
            if !*unmeant[action].get_or_insert_with(ask) && !in_json(text, at..end) {
                // What denied the wish before is done with.
                let here = found.last().map_or(clause.start, |wish| wish.at.end.max(clause.start));
                let denied = self.negation.reaches(text, at, &mut Read { here, denied_from: None });
                found.push(Wish { action, at: at..end, denied });
            }
            at = end;
        }
        found
    }

    /// The one wish that is meant: the highest in rank, when no other is as high. A wish that is denied later in the same
    /// breath (取消，不对，不要取消) is none.
    pub fn wanted<'w>(&self, wishes: &'w [Wish]) -> Option<&'w Wish> {
        let mut last_denied = vec![0; self.names.len()];
        for wish in wishes.iter().filter(|wish| wish.denied) {
            last_denied[wish.action] = wish.at.start;
        }
        let taken_back = |wish: &Wish| last_denied[wish.action] > wish.at.start;
        let live = wishes.iter().filter(|wish| !wish.denied && !taken_back(wish));
        let highest = live.clone().map(|wish| self.ranks[wish.action]).max()?;
        let mut best = live.filter(|wish| self.ranks[wish.action] == highest);
        let first = best.next()?;
        best.all(|other| other.action == first.action).then_some(first)
    }

    /// Tells whether what stands at a place is denied, for places in rising order.
    pub fn denied<'t>(&'t self, text: &'t Text<'t>) -> impl FnMut(usize) -> bool + 't {
        let mut clause = 0..0;
        let mut read = Read::default();
        move |at| {
            if !clause.contains(&at) {
                clause = text.clause_start(at)..text.clause_end(at);
                read = Read { here: clause.start, denied_from: None };
            }
            self.negation.reaches(text, at, &mut read)
        }
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

/// "status" in {"status": 500} is a name, or a value, and not what a customer wants.
fn in_json(text: &Text<'_>, word: Range<usize>) -> bool {
    if text.before(word.start) != Some('"') || text.get(word.end) != Some('"') {
        return false;
    }
    let name = text.get(text.run(word.end + 1, |c| c == ' ')) == Some(':');
    let open = word.start - 1;
    let before = (0..open).rev().map_while(|at| text.get(at)).find(|c| *c != ' ');
    name || matches!(before, Some(':' | '{' | '['))
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

    /// Whether a negation that was read, or comes before `at`, reaches what stands there. Reads on up to where the next place
    /// would be read otherwise.
    fn reaches(&self, text: &Text<'_>, at: usize, read: &mut Read) -> bool {
        let Read { mut here, mut denied_from } = *read;
        let mut crossed = false;
        while here < at {
            let mut before = |words: &Phrases| {
                let found = words.longest_at(text, here);
                crossed |= found.is_some_and(|(end, _)| end > at);
                found.filter(|(end, _)| *end <= at)
            };
            if let Some((end, _)) = self.not.longest_at(text, here) {
                here = end;
            } else if let Some((end, _)) = before(&self.words) {
                denied_from = Some(end);
                here = end;
            } else if let Some((end, _)) = before(&self.resets) {
                denied_from = None;
                here = end;
            } else {
                here += 1;
            }
            if !crossed {
                *read = Read { here, denied_from };
            }
        }
        denied_from.is_some_and(|from| is_within(text, from..at, self.reach))
    }
}

/// How far a clause was read for what denies, and where the last of it ended.
#[derive(Debug, Clone, Copy, Default)]
struct Read {
    here: usize,
    denied_from: Option<usize>,
}

/// Whether a range has at most so many Chinese characters and other words.
fn is_within(text: &Text<'_>, range: Range<usize>, most: usize) -> bool {
    let mut count = 0;
    let mut in_word = false;
    for &c in text.slice(range) {
        let letter = c.is_ascii_alphanumeric() || c == '\'';
        count += usize::from(is_cjk(c)) + usize::from(letter && !in_word);
        in_word = letter;
        if count > most {
            return false;
        }
    }
    true
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clause_that_is_read_on_is_denied_as_one_that_is_read_anew() {
        let config: NegationConfig = toml::from_str(
            "reach = 3\nwords = ['不', '不要', 'not']\nnot = ['不如', '要不要']\nresets = ['要是', '但']",
        )
        .expect("a configuration");
        let negation = Negation::new(&config);
        let pieces = ["不", "要", "如", "是", "但", "3", "个", "，", "not ", "no", "t", " "];
        let mut random = 1u64;
        for _ in 0..3000 {
            let said: String = (0..12)
                .map(|_| {
                    random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    pieces[(random >> 33) as usize % pieces.len()]
                })
                .collect();
            let text = Text::new(&said);
            let mut read = Read::default();
            let mut clause = 0..0;
            for at in 0..text.len() {
                let start = text.clause_start(at);
                if !clause.contains(&at) {
                    clause = start..text.clause_end(at);
                    read = Read { here: start, denied_from: None };
                }
                let anew = negation.reaches(&text, at, &mut Read { here: start, denied_from: None });
                assert_eq!(negation.reaches(&text, at, &mut read), anew, "{at} of {said}");
            }
        }
    }
}
