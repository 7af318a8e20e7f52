//! Which words go: fillers first, then by surprisal times the weight of their class, the lowest first, until the prompt is
//! within its budget.

use crate::Host;
use crate::cache::{Costs, Held, Place};
use crate::draft::{Candidate, Draft};
use crate::pieces::Class;
use crate::rules::{Score, Unavailable, Weight};

/// The messages that may lose words, and how many tokens are to go.
pub struct Plan<'a, 't, H> {
    /// Answers what only the model knows.
    pub host: &'a H,
    /// `[score]`
    pub score: &'a Score,
    /// `[weight]`
    pub weight: Weight,
    /// In the order of the prompt.
    pub drafts: Vec<Draft<'t>>,
    /// Tokens to be saved.
    pub needed: f64,
    /// What the target holds.
    pub held: Held,
    /// What breaking that costs.
    pub costs: Costs,
}

/// What came of a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reached {
    Enough,
    NotAll,
    /// The model could not be asked, and the rules say to keep everything then.
    Nothing,
}

impl<H: Host> Plan<'_, '_, H> {
    /// Drops words from the drafts. Within what the target holds only where that saves more than it costs.
    pub fn carry_out(&mut self) {
        let end = self.held.end();
        let begin = self.begin(end);
        let reached = self.drop_from(begin);
        if reached != Reached::Nothing && begin < end && !self.is_worth_breaking(end) {
            self.drop_from(end);
        }
        for draft in &mut self.drafts {
            // Tokens can grow together: a text without these words may have as many.
            if draft.saved_tokens(self.host) <= 0.0 {
                draft.reset(0);
            }
        }
    }

    /// Where edits may begin.
    fn begin(&self, end: Place) -> Place {
        let place = |word: &Candidate| (self.drafts[word.draft].message, word.start);
        let words: Vec<Candidate> = self.words().collect();
        let free: f64 = words.iter().filter(|word| place(word) >= end).map(|word| word.tokens).sum();
        if free >= self.needed {
            return end;
        }
        let held = words.iter().rev().filter(|word| place(word) < end);
        self.costs.begin(&self.held, held.map(|word| (place(word), word.tokens)), self.needed - free)
    }

    /// Whether what goes from the held prefix is more than what must be read again for it.
    fn is_worth_breaking(&self, end: Place) -> bool {
        let held = |word: &Candidate| {
            let draft = &self.drafts[word.draft];
            draft.has_dropped(word.piece) && (draft.message, word.start) < end
        };
        let mut words = self.words().filter(held).peekable();
        let Some(first) = words.peek().map(|word| (self.drafts[word.draft].message, word.start)) else {
            return true;
        };
        let saved = words.map(|word| word.tokens).sum();
        self.costs.gain_us(saved, self.held.behind(first)) > 0.0
    }

    fn words(&self) -> impl Iterator<Item = Candidate> {
        self.drafts.iter().enumerate().flat_map(|(at, draft)| draft.candidates(at))
    }

    /// Begins anew, with nothing touched before this place.
    fn drop_from(&mut self, (message, byte): Place) -> Reached {
        for draft in &mut self.drafts {
            draft.reset(match draft.message.cmp(&message) {
                std::cmp::Ordering::Less => usize::MAX,
                std::cmp::Ordering::Equal => byte,
                std::cmp::Ordering::Greater => 0,
            });
        }
        let fillers = self.words().filter(|word| word.class == Class::Filler).collect();
        if self.drop_until(fillers) == Reached::Enough {
            return Reached::Enough;
        }
        if !self.ask() && self.score.when_unavailable == Unavailable::Keep {
            self.drafts.iter_mut().for_each(|draft| draft.reset(usize::MAX));
            return Reached::Nothing;
        }
        let mut others: Vec<(f32, Candidate)> =
            self.words().filter_map(|word| Some((self.value(&word)?, word))).collect();
        others.retain(|(bits, _)| *bits <= self.score.most_bits);
        // Of equal ones the first of the prompt goes first.
        let place = |word: &Candidate| (word.draft, word.piece);
        others.sort_unstable_by(|(a, x), (b, y)| a.total_cmp(b).then_with(|| place(x).cmp(&place(y))));
        self.drop_until(others.into_iter().map(|(_, word)| word).collect())
    }

    /// Bits, weighted. A word that the model has not judged has none, and stays, unless it only holds the sentence together.
    fn value(&self, word: &Candidate) -> Option<f32> {
        match word.class {
            Class::Filler | Class::Pause => None,
            Class::Function => Some(word.bits.unwrap_or(self.score.unjudged_bits) * self.weight.function),
            Class::Content => word.bits.map(|bits| bits * self.weight.content),
            Class::Character => word.bits.map(|bits| bits * self.weight.character),
        }
    }

    /// Drops words in this order until enough tokens are saved. How many a word saves is known only when what is left has
    /// been counted, so it goes in rounds; each later one aims higher, so that they are few.
    fn drop_until(&mut self, words: Vec<Candidate>) -> Reached {
        let mut words = words.into_iter().peekable();
        let mut aim = 1.0;
        loop {
            let missing = self.needed - self.saved_tokens();
            if missing <= 0.0 {
                return Reached::Enough;
            }
            if words.peek().is_none() {
                return Reached::NotAll;
            }
            let mut wanted = missing * aim;
            while wanted > 0.0
                && let Some(word) = words.next()
            {
                if self.drafts[word.draft].drop_word(word.piece) {
                    wanted -= word.tokens;
                }
            }
            aim *= 2.0;
        }
    }

    fn saved_tokens(&mut self) -> f64 {
        let host = self.host;
        self.drafts.iter_mut().map(|draft| draft.saved_tokens(host).max(0.0)).sum()
    }

    /// Asks the model of the messages that are worth it, those with most to lose first: once of each, and of no more bytes
    /// than the rules allow. After the first refusal no more: the deadline is that of the whole call.
    fn ask(&mut self) -> bool {
        let mut worth: Vec<(usize, usize)> =
            self.drafts.iter().enumerate().map(|(at, draft)| (draft.loose_bytes(), at)).collect();
        worth.retain(|(bytes, at)| *bytes >= self.score.least_bytes.max(1) && !self.drafts[*at].is_judged());
        worth.sort_unstable_by_key(|(bytes, at)| (std::cmp::Reverse(*bytes), *at));
        let mut left = self.score.most_total_bytes;
        for (_, at) in worth {
            let draft = &mut self.drafts[at];
            let bytes = draft.read_bytes(self.score.most_bytes.min(left));
            if bytes == 0 {
                continue;
            }
            left -= bytes;
            if draft.ask(self.host, bytes).is_err() {
                return false;
            }
        }
        true
    }
}
