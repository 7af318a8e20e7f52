//! What a dialog is about, stretch by stretch: each segment with a vector that sums up its turns.

use serde::{Deserialize, Serialize};

use crate::Session;

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

/// Turns of a session that are about one thing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct Segment {
    /// Their numbers, counted from 1, ascending.
    pub turns: Vec<u32>,
    /// The sum of their unit vectors, as far as they have one.
    pub sum: Vector,
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
    /// How like it is, -1 to 1.
    pub likeness: f32,
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
        (!turns.is_empty()).then(|| Segment { turns, sum: self.sum.clone() })
    }

    pub(crate) fn size_bytes(&self) -> usize {
        size_of::<Segment>() + size_of_val(self.turns.as_slice()) + self.sum.steps.len()
    }
}

impl Session {
    /// Puts the last turn into a segment, once it was [pushed](Session::push): that of the turn it follows, an earlier one
    /// that it returns to, or a new one. `vector` is of what was said in it; without one it stays with the turn it follows.
    pub fn place_last(&mut self, vector: Option<&[f32]>) {
        let number = self.turn_count();
        let Some(turn) = self.turns.last() else { return };
        let (follows, is_recalled) = (self.follows(number), turn.resumes.is_some());
        // One that was gone back to may have got a turn from another host meanwhile.
        let goes_on = |segment: &Segment| match is_recalled {
            true => segment.turns.contains(&follows),
            false => segment.last() == follows,
        };
        let running = self.segments.iter().position(|segment| follows > 0 && goes_on(segment));
        let vector = vector.and_then(unit);
        let place = match (&vector, running) {
            (None, running) => running,
            (Some(_), Some(running)) if is_recalled => Some(running),
            (Some(vector), running) => running
                .filter(|running| self.segments[*running].sum.likeness(vector) >= LEAST_TO_GO_ON)
                .or_else(|| self.most_like(vector, LEAST_TO_RETURN, |_| true).map(|(place, _)| place)),
        };
        match (place, vector) {
            (Some(place), vector) => {
                let segment = &mut self.segments[place];
                segment.turns.push(number);
                vector.iter().for_each(|vector| segment.sum.add(vector));
            }
            (None, Some(vector)) => {
                self.segments.push(Segment { turns: vec![number], sum: Vector::of(&vector) });
                self.forget_segments();
            }
            (None, None) => {}
        }
    }

    /// The earlier segment that a text with this vector speaks of; none when none is like enough. With `may_stay`, the
    /// segment that runs is in the race, and none is found where it wins.
    pub fn recall(&self, vector: &[f32], may_stay: bool) -> Option<Recalled> {
        let vector = unit(vector)?;
        let now = self.turn_count();
        let is_open = |segment: &Segment| may_stay || segment.last() != now;
        let (place, likeness) = self.most_like(&vector, LEAST_TO_RECALL, is_open)?;
        let turn = self.segments[place].last();
        (turn != now).then_some(Recalled { turn, likeness })
    }

    /// The most like of some segments, of those that are at least so like.
    fn most_like(&self, vector: &[f32], least: f32, of: impl Fn(&Segment) -> bool) -> Option<(usize, f32)> {
        let like = |(place, segment): (usize, &Segment)| (place, segment.sum.likeness(vector));
        let segments = self.segments.iter().enumerate().filter(|(_, segment)| of(segment));
        let best = segments.map(like).max_by(|a, b| a.1.total_cmp(&b.1));
        best.filter(|(_, likeness)| *likeness >= least)
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

/// The vector of length 1 in the same direction; none without one.
fn unit(vector: &[f32]) -> Option<Vec<f32>> {
    let length = vector.iter().map(|value| value * value).sum::<f32>().sqrt();
    (length.is_finite() && length > 0.0).then(|| vector.iter().map(|value| value / length).collect())
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
