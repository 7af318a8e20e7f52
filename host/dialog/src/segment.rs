//! What a dialog is about, stretch by stretch: each segment with a vector that sums up its turns.

use serde::{Deserialize, Serialize};

use crate::terms::Terms;
use crate::{PastTurn, Session};

/// Segments of one session; then the one that was spoken of longest ago is forgotten. Two that are united would be like
/// everything a little and like nothing enough.
pub const MOST_SEGMENTS: usize = 64;

/// A turn that is less like the running segment than this is about something else. Chosen on the dialogs of
/// `tests/recall/topics.json`, with all-MiniLM-L6-v2: of English turns that change the topic all 21 are less like it, of those
/// that go on 5 in 48.
pub const LEAST_TO_GO_ON: f32 = 0.18;

/// A turn that leaves the running segment and is as like an earlier one goes on with that one. Of turns whose answers keep to
/// the question, one in 148 is as like another topic of its dialog.
pub const LEAST_TO_RETURN: f32 = 0.4;

/// What is less like a segment does not ask for it. In the same dialogs, what asked for a topic was at 0.29 and more to it, and
/// at 0.22 and less to others.
pub const LEAST_TO_RECALL: f32 = 0.25;

/// A turn that has no vector, shares no word with the running segment, and says so much that was not said in it, in words or pairs of
/// characters, is about something else. Chosen on the Chinese dialogs of the `rules` split.
const LEAST_NEW: f32 = 7.2;

/// In words that no other segment has: what speaks for an earlier segment where it is asked for, and where it is not.
const LEAST_WORDS_TO_RECALL: f32 = 1.0;
/// See [`LEAST_WORDS_TO_RECALL`].
const LEAST_WORDS_TO_RETURN: f32 = 2.5;

/// So much more must speak for a segment than for the next best: a wrong one is worse than none.
const CLEARLY: f32 = 1.5;
/// What is said beside the words that name a topic counts for so much of them.
const BESIDE: f32 = 0.5;

/// The vector of a text.
#[derive(Clone, Debug, PartialEq)]
pub struct Embedding {
    /// Of any length but 0.
    pub vector: Vec<f32>,
    /// Which model made it; not 0. Vectors of two models are not compared.
    pub model: u64,
}

/// What is to be gone back to.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sought<'a> {
    /// The vector of what is said, where there is one.
    pub embedding: Option<&'a Embedding>,
    /// The words that name it.
    pub named: &'a str,
    /// What is said beside them.
    pub beside: &'a str,
    /// The segment that runs is in the race, and none is found where it wins.
    pub may_stay: bool,
}

/// Turns of a session that are about one thing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct Segment {
    /// Their numbers, counted from 1, ascending.
    pub turns: Vec<u32>,
    /// The sum of their unit vectors, as far as they have one.
    pub sum: Vector,
    /// The model that made these; 0 for none, or one that is not known.
    pub model: u64,
}

/// A vector in 16 bits a number: with 8, what one turn adds to the sum of a hundred would be lost in the rounding.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct Vector {
    /// What a step of 1 stands for.
    scale: f32,
    /// The numbers in steps, two bytes each, the lower one first.
    #[serde(with = "bytes")]
    steps: Vec<u8>,
}

/// An earlier segment that is spoken of.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Recalled {
    /// Its last turn, counted from 1.
    pub turn: u32,
    /// How like it is, -1 to 1; by words, the share of what speaks for any segment that speaks for this one.
    pub likeness: f32,
    /// It was found by the words in it, not by its vector.
    pub by_words: bool,
}

impl Segment {
    /// Its last turn, counted from 1; 0 when it has none.
    pub fn last(&self) -> u32 {
        self.turns.last().copied().unwrap_or(0)
    }

    /// As it was after the `turn`-th turn of its session, but for what later turns have added to its vector; none when it
    /// had not begun.
    pub(crate) fn until(&self, turn: u32) -> Option<Segment> {
        let turns: Vec<u32> = self.turns.iter().copied().filter(|own| *own <= turn).collect();
        (!turns.is_empty()).then(|| Segment { turns, ..self.clone() })
    }

    pub(crate) fn size_bytes(&self) -> usize {
        size_of::<Segment>() + size_of_val(self.turns.as_slice()) + self.sum.steps.len()
    }

    /// How like a vector it is; none where they cannot be compared.
    fn likeness(&self, Embedding { vector, model }: &Embedding) -> Option<f32> {
        let is_comparable = self.model == *model && self.sum.width() == vector.len();
        is_comparable.then(|| self.sum.likeness(vector))
    }

    /// Takes a turn up. Another model's vectors give way: what is asked later is asked of this one.
    fn push(&mut self, turn: u32, embedding: Option<&Embedding>) {
        self.turns.push(turn);
        let Some(Embedding { vector, model }) = embedding else { return };
        if self.model == *model && self.sum.width() == vector.len() {
            self.sum.add(vector);
        } else {
            (self.sum, self.model) = (Vector::of(vector), *model);
        }
    }
}

impl Session {
    /// Puts the last turn into a segment, once it was [pushed](Session::push): that of the turn it follows, an earlier one
    /// that it returns to, or a new one. `embedding` is of what was said in it; where there is none to compare, its words tell.
    pub fn place_last(&mut self, embedding: Option<&Embedding>) {
        let number = self.turn_count();
        let Some(turn) = self.turns.last() else { return };
        let (follows, is_recalled) = (self.follows(number), turn.resumes.is_some());
        // One that was gone back to may have got a turn from another host meanwhile.
        let is_running = |segment: &Segment| match is_recalled {
            true => segment.turns.contains(&follows),
            false => segment.last() == follows,
        };
        let running = self.segments.iter().position(|segment| follows > 0 && is_running(segment));
        let embedding = embedding.and_then(unit);
        let place = match running {
            Some(running) if is_recalled || self.goes_on(running, turn, embedding.as_ref()) => Some(running),
            _ => self.returns_to(turn, embedding.as_ref()),
        };
        let says_something = || Terms::of(turn.question_and_answer().0) != Terms::default();
        match place {
            Some(place) => self.segments[place].push(number, embedding.as_ref()),
            None if embedding.is_some() || says_something() => {
                let mut segment = Segment::default();
                segment.push(number, embedding.as_ref());
                self.segments.push(segment);
                self.forget_segments();
            }
            None => {}
        }
    }

    /// Whether a turn is about what the running segment is about.
    fn goes_on(&self, running: usize, turn: &PastTurn, embedding: Option<&Embedding>) -> bool {
        let segment = &self.segments[running];
        if let Some(likeness) = embedding.and_then(|embedding| segment.likeness(embedding)) {
            return likeness >= LEAST_TO_GO_ON;
        }
        let (question, answer) = turn.question_and_answer();
        let known = self.terms(segment);
        let (asked, mut said) = (Terms::of(question), Terms::of(question));
        said.add(answer);
        said.shared(&known) > 0 || asked.beyond(&known) < LEAST_NEW
    }

    /// The segment that a turn which leaves the running one goes on with.
    fn returns_to(&self, turn: &PastTurn, embedding: Option<&Embedding>) -> Option<usize> {
        let by_vector = embedding.and_then(|embedding| self.most_like(embedding, LEAST_TO_RETURN, |_| true));
        let question = turn.question_and_answer().0;
        let by_words = || match embedding {
            Some(_) => None,
            None => self.by_words(question, "", LEAST_WORDS_TO_RETURN, |_| true),
        };
        by_vector.or_else(by_words).map(|(place, _)| place)
    }

    /// The earlier segment that is spoken of; none when none clearly is. By vectors where there are any to compare, and by words
    /// for the rest.
    pub fn recall(&self, sought: &Sought<'_>) -> Option<Recalled> {
        let now = self.turn_count();
        let is_open = |segment: &Segment| sought.may_stay || segment.last() != now;
        let embedding = sought.embedding.and_then(unit);
        let comparable = |place: usize| {
            embedding.as_ref().is_some_and(|embedding| self.segments[place].likeness(embedding).is_some())
        };
        let by_vector = embedding.as_ref().and_then(|it| self.most_like(it, LEAST_TO_RECALL, is_open));
        let by_words = self.by_words(sought.named, sought.beside, LEAST_WORDS_TO_RECALL, is_open);
        let ((place, likeness), by_words) = match (by_vector, by_words) {
            // Of a segment without a vector only its words can speak.
            (Some(_), Some(found)) if !comparable(found.0) => (found, true),
            (Some(found), _) => (found, false),
            (None, found) => (found?, true),
        };
        let turn = self.segments[place].last();
        (turn != now).then_some(Recalled { turn, likeness, by_words })
    }

    /// The segment that clearly shares the most words, of some, with the share that it has of all that speaks for any.
    fn by_words(
        &self,
        named: &str,
        beside: &str,
        least: f32,
        of: impl Fn(&Segment) -> bool,
    ) -> Option<(usize, f32)> {
        let texts: Vec<Terms> = self.segments.iter().map(|segment| self.terms(segment)).collect();
        let named = Terms::of(named);
        let beside = Terms::of(beside).without(&named);
        let names_nothing = named == Terms::default();
        let spoken = named.evidence(&texts).into_iter().zip(beside.evidence(&texts)).zip(&self.segments);
        let spoken =
            spoken.map(|((named, beside), segment)| match of(segment) && (names_nothing || named > 0.0) {
                true => named + BESIDE * beside,
                false => 0.0,
            });
        let mut ranked: Vec<(usize, f32)> = spoken.enumerate().collect();
        ranked.sort_by(|(_, a), (_, b)| b.total_cmp(a));
        let all: f32 = ranked.iter().map(|(_, by)| by).sum();
        let (place, best) = *ranked.first()?;
        let next = ranked.get(1).map_or(0.0, |(_, by)| *by);
        // Who names two means neither for certain, however much is said of one.
        (best >= least && best >= CLEARLY * next && next < LEAST_WORDS_TO_RECALL).then(|| (place, best / all))
    }

    /// The words of a segment's turns.
    fn terms(&self, segment: &Segment) -> Terms {
        let mut terms = Terms::default();
        let index = |turn: &u32| (*turn as usize).checked_sub(1);
        for turn in segment.turns.iter().filter_map(index).filter_map(|index| self.turns.get(index)) {
            let (question, answer) = turn.question_and_answer();
            terms.add(question);
            terms.add(answer);
        }
        terms
    }

    /// The most like of some segments, of those that are at least so like.
    fn most_like(
        &self,
        embedding: &Embedding,
        least: f32,
        of: impl Fn(&Segment) -> bool,
    ) -> Option<(usize, f32)> {
        let segments = self.segments.iter().enumerate().filter(|(_, segment)| of(segment));
        let like = segments.filter_map(|(place, segment)| Some((place, segment.likeness(embedding)?)));
        like.max_by(|a, b| a.1.total_cmp(&b.1)).filter(|(_, likeness)| *likeness >= least)
    }

    fn forget_segments(&mut self) {
        while self.segments.len() > MOST_SEGMENTS {
            let oldest = self.segments.iter().enumerate().min_by_key(|(_, segment)| segment.last());
            let Some((oldest, _)) = oldest else { return };
            self.segments.remove(oldest);
        }
    }
}

impl Vector {
    fn of(values: &[f32]) -> Vector {
        let largest = values.iter().fold(0.0_f32, |largest, value| largest.max(value.abs()));
        let scale = largest / f32::from(i16::MAX);
        // No number is further from zero than the largest, and one that is none becomes 0.
        let steps = |value: &f32| ((value / scale).round() as i16).to_le_bytes();
        Vector { scale, steps: values.iter().flat_map(steps).collect() }
    }

    fn width(&self) -> usize {
        self.steps.len() / size_of::<i16>()
    }

    fn values(&self) -> impl Iterator<Item = f32> {
        self.steps.as_chunks().0.iter().map(|step| f32::from(i16::from_le_bytes(*step)) * self.scale)
    }

    /// Adds a vector of the same length; another one is of another model, and says nothing here.
    fn add(&mut self, vector: &[f32]) {
        if vector.len() == self.width() {
            let sum: Vec<f32> = self.values().zip(vector).map(|(a, b)| a + b).collect();
            *self = Vector::of(&sum);
        }
    }

    /// The cosine of the angle to a vector of length 1; 0 where there is none.
    fn likeness(&self, unit: &[f32]) -> f32 {
        if unit.len() != self.width() {
            return 0.0;
        }
        let (product, square) = self
            .values()
            .zip(unit)
            .fold((0.0, 0.0), |(product, square), (a, b)| (product + a * b, square + a * a));
        let cosine = product / square.sqrt();
        if cosine.is_finite() { cosine } else { 0.0 }
    }
}

/// With the vector of length 1 in the same direction; none without one.
fn unit(Embedding { vector, model }: &Embedding) -> Option<Embedding> {
    let length = vector.iter().map(|value| value * value).sum::<f32>().sqrt();
    (length.is_finite() && length > 0.0)
        .then(|| Embedding { vector: vector.iter().map(|value| value / length).collect(), model: *model })
}

/// Bytes as bytes, where the format has them; serde writes a list of numbers of its own accord.
mod bytes {
    use std::fmt;

    use serde::de::{SeqAccess, Visitor};
    use serde::{Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(bytes: &[u8], to: S) -> Result<S::Ok, S::Error> {
        to.serialize_bytes(bytes)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u8>, D::Error> {
        from.deserialize_byte_buf(Bytes)
    }

    struct Bytes;

    impl<'de> Visitor<'de> for Bytes {
        type Value = Vec<u8>;

        fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
            to.write_str("bytes")
        }

        fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Vec<u8>, E> {
            Ok(bytes.to_vec())
        }

        fn visit_byte_buf<E>(self, bytes: Vec<u8>) -> Result<Vec<u8>, E> {
            Ok(bytes)
        }

        /// As JSON has them.
        fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<u8>, A::Error> {
            let mut bytes = Vec::new();
            while let Some(byte) = list.next_element()? {
                bytes.push(byte);
            }
            Ok(bytes)
        }
    }
}

#[cfg(test)]
mod tests;
