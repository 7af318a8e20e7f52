//! A session: what was said, what is known, and how it came to be known.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{Dialog, Message, Role, Segment, Slot};

/// Of what a user says, the bytes that are looked at for its topic: it is named early, and long texts take long.
pub const SAID_BYTES: usize = 600;
/// The same of an answer.
pub const ANSWER_BYTES: usize = 200;

/// Everything that is kept of a dialog between two turns.
///
/// A session is a list of turns; the dialog is what their changes add up to. So it can be branched off at any of them, and
/// a turn that was worked out beside another one can still be added after it.
///
/// What is in force of what was said is a path through the turns: each follows the one before it, or [an earlier
/// one](PastTurn::resumes). Slots and state know no paths: they are the whole dialog's, and the last change wins.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct Session {
    /// Slots and state after the last turn.
    pub dialog: Dialog,
    /// The system messages in force, which come before all that was said.
    pub instructions: Vec<Message>,
    /// The turns, oldest first. Shared, so that a session is copied in no time.
    #[serde(with = "shared_turns")]
    pub turns: Vec<Arc<PastTurn>>,
    /// What the turns are about, in the order in which it came up; none where nobody keeps vectors. At most
    /// [`MOST_SEGMENTS`](crate::MOST_SEGMENTS).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub segments: Vec<Segment>,
    /// When it was made, in milliseconds since 1970 UTC.
    pub created_unix_ms: i64,
    /// When it last changed.
    pub updated_unix_ms: i64,
    /// Where it was branched off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<Parent>,
}

/// The session that another one was branched off.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Parent {
    /// Its id; of the same tenant.
    pub id: String,
    /// The last turn that both share, counted from 1; 0 when they share the instructions alone.
    pub turn: u32,
}

/// A turn that is over.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct PastTurn {
    /// What the client sent and was answered, in this order.
    pub messages: Vec<Message>,
    /// The earlier turn that it follows, counted from 1, where that is not the one before it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resumes: Option<u32>,
    /// What it did to the dialog.
    pub change: Change,
    /// The generation of policies it ran under.
    pub generation: u64,
    /// When it was committed, in milliseconds since 1970 UTC.
    pub unix_ms: i64,
    /// Where it and turns beside it changed the same slots.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conflicts: Vec<SlotConflict>,
}

/// What a turn did to a dialog.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct Change {
    /// The new state, where it is another.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// The new schema, where it is another.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema: Option<u32>,
    /// Slots that are new or different.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub set: Vec<Slot>,
    /// Names of slots that are gone.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cleared: Vec<String>,
}

/// Two turns that knew nothing of each other changed the same slot.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct SlotConflict {
    /// The slot's name.
    pub name: String,
    /// What the turn that was committed first had made of it; none when it had cleared it.
    pub earlier: Option<Slot>,
    /// What holds now; none when it is cleared.
    pub later: Option<Slot>,
}

impl Session {
    /// A session without turns.
    pub fn new(instructions: Vec<Message>, unix_ms: i64) -> Session {
        Session { instructions, created_unix_ms: unix_ms, updated_unix_ms: unix_ms, ..Session::default() }
    }

    /// All that was said, the instructions first.
    pub fn messages(&self) -> impl Iterator<Item = &Message> {
        self.instructions.iter().chain(self.turns.iter().flat_map(|turn| &turn.messages))
    }

    /// What is in force after the `end`-th turn: it and the turns that it follows, oldest first. Without an end, after the
    /// last one.
    pub fn path(&self, end: Option<u32>) -> Vec<&PastTurn> {
        let mut path = Vec::new();
        let mut at = end.map_or(self.turn_count(), |end| end.min(self.turn_count()));
        while let Some(turn) = (at as usize).checked_sub(1).and_then(|index| self.turns.get(index)) {
            path.push(turn.as_ref());
            at = self.follows(at);
        }
        path.reverse();
        path
    }

    /// The turn that the `number`-th follows, both counted from 1; 0 for the first. Always a smaller number.
    pub(crate) fn follows(&self, number: u32) -> u32 {
        let before = number.saturating_sub(1);
        let resumes = self.turns.get(before as usize).and_then(|turn| turn.resumes);
        // What a store gives back may be anything.
        resumes.filter(|resumes| *resumes < number).unwrap_or(before)
    }

    pub(crate) fn turn_count(&self) -> u32 {
        u32::try_from(self.turns.len()).unwrap_or(u32::MAX)
    }

    /// Adds a turn at the end.
    pub fn push(&mut self, turn: PastTurn) {
        turn.change.apply(&mut self.dialog);
        self.updated_unix_ms = self.updated_unix_ms.max(turn.unix_ms);
        self.turns.push(Arc::new(turn));
        self.dialog.turns = self.turn_count();
    }

    /// Adds a turn that was worked out when the session had only `known` turns, after those that came in between: slots
    /// are united, and where both changed one, the later turn, which is this one, wins. Says where that was so, and keeps it with
    /// the turn. It follows the last of them, or the one that it resumes.
    pub fn push_late(&mut self, known: usize, turn: PastTurn) -> &[SlotConflict] {
        let between = self.turns.get(known..).unwrap_or_default();
        let touched = |name: &str| between.iter().any(|past| past.change.touches(name));
        let both: Vec<String> = turn.change.names().filter(|name| touched(name)).map(str::to_owned).collect();
        let earlier: Vec<Option<Slot>> = both.iter().map(|name| self.dialog.slot(name).cloned()).collect();
        self.push(turn);
        let later = |name: &str| self.dialog.slot(name).cloned();
        let found = both.into_iter().zip(earlier);
        let conflicts = found.map(|(name, earlier)| SlotConflict { later: later(&name), name, earlier });
        let conflicts: Vec<_> = conflicts.filter(SlotConflict::is_real).collect();
        let Some(turn) = self.turns.last_mut() else { return &[] };
        if !conflicts.is_empty() {
            Arc::make_mut(turn).conflicts = conflicts;
        }
        &turn.conflicts
    }

    /// The session as it was after its `turn`-th turn, under the name of its parent; none when it never had so many.
    pub fn branch(&self, id: &str, turn: u32, unix_ms: i64) -> Option<Session> {
        let turns = self.turns.get(..turn as usize)?;
        let mut branch = Session::new(self.instructions.clone(), unix_ms);
        branch.parent = Some(Parent { id: id.to_owned(), turn });
        branch.turns = turns.to_vec();
        branch.segments = self.segments.iter().filter_map(|segment| segment.until(turn)).collect();
        turns.iter().for_each(|past| past.change.apply(&mut branch.dialog));
        branch.dialog.turns = turn;
        Some(branch)
    }

    /// The generation of policies that the last turn ran under; 0 before the first.
    pub fn generation(&self) -> u64 {
        self.turns.last().map_or(0, |turn| turn.generation)
    }

    /// What a request adds, when it begins with all that was said, as clients send it that keep the dialog themselves, or with
    /// all that is in force. `sent` without system messages. None when it begins otherwise.
    pub fn beyond_history<'a>(&self, sent: &'a [Message]) -> Option<&'a [Message]> {
        let all = self.turns.iter().flat_map(|turn| &turn.messages);
        let in_force = || self.path(None).into_iter().flat_map(|turn| &turn.messages);
        beyond(all, sent).or_else(|| beyond(in_force(), sent))
    }

    /// Roughly what it takes in memory, in bytes.
    pub fn size_bytes(&self) -> usize {
        let turns = self.turns.iter().map(|turn| turn.size_bytes());
        let instructions = self.instructions.iter().map(Message::size_bytes);
        let segments = self.segments.iter().map(Segment::size_bytes);
        self.dialog.size_bytes()
            + instructions.sum::<usize>()
            + turns.sum::<usize>()
            + segments.sum::<usize>()
    }
}

/// What of `sent` comes after `said`, which it begins with; none when it does not, or when either has nothing.
fn beyond<'a, 's>(said: impl Iterator<Item = &'s Message>, sent: &'a [Message]) -> Option<&'a [Message]> {
    let mut known = 0;
    for message in said {
        if sent.get(known)? != message {
            return None;
        }
        known += 1;
    }
    Some(&sent[known..]).filter(|new| known > 0 && !new.is_empty())
}

impl PastTurn {
    /// What the user asked, and what was answered, as far as that tells what it is about.
    pub(crate) fn question_and_answer(&self) -> (&str, &str) {
        let of = |role| {
            let own = self.messages.iter().rfind(|message| message.role == role);
            own.and_then(|message| message.content.as_deref()).unwrap_or_default()
        };
        let head = |text: &'_ str, most: usize| text.floor_char_boundary(most);
        let (question, answer) = (of(Role::User), of(Role::Assistant));
        (&question[..head(question, SAID_BYTES)], &answer[..head(answer, ANSWER_BYTES)])
    }

    fn size_bytes(&self) -> usize {
        let messages = self.messages.iter().map(Message::size_bytes).sum::<usize>();
        let slots = self.change.set.iter().map(Slot::size_bytes).sum::<usize>();
        let cleared = self.change.cleared.iter().map(String::len).sum::<usize>();
        let conflicts = self.conflicts.iter().map(SlotConflict::size_bytes).sum::<usize>();
        size_of::<PastTurn>() + messages + slots + cleared + conflicts
    }
}

impl Change {
    /// What leads from one dialog to the other.
    pub fn between(before: &Dialog, after: &Dialog) -> Change {
        let is_new = |slot: &&Slot| before.slot(&slot.name) != Some(*slot);
        let is_gone = |slot: &&Slot| after.slot(&slot.name).is_none();
        Change {
            state: (before.state != after.state).then(|| after.state.clone()),
            schema: (before.schema != after.schema).then_some(after.schema),
            set: after.slots.iter().filter(is_new).cloned().collect(),
            cleared: before.slots.iter().filter(is_gone).map(|slot| slot.name.clone()).collect(),
        }
    }

    /// Makes the same change to a dialog.
    pub fn apply(&self, dialog: &mut Dialog) {
        if let Some(state) = &self.state {
            dialog.state.clone_from(state);
        }
        if let Some(schema) = self.schema {
            dialog.schema = schema;
        }
        for name in &self.cleared {
            dialog.clear(name);
        }
        for slot in &self.set {
            dialog.set(slot.clone());
        }
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        self.set.iter().map(|slot| slot.name.as_str()).chain(self.cleared.iter().map(String::as_str))
    }

    fn touches(&self, name: &str) -> bool {
        self.names().any(|touched| touched == name)
    }
}

impl SlotConflict {
    fn size_bytes(&self) -> usize {
        let slots = [&self.earlier, &self.later].into_iter().flatten().map(Slot::size_bytes);
        size_of::<SlotConflict>() + self.name.len() + slots.sum::<usize>()
    }

    /// Both turns found the same: nothing was lost.
    fn is_real(&self) -> bool {
        self.earlier.as_ref().map(|slot| &slot.value) != self.later.as_ref().map(|slot| &slot.value)
    }
}

/// Turns are written as if nobody shared them.
mod shared_turns {
    use std::sync::Arc;

    use serde::{Deserialize, Deserializer, Serializer};

    use super::PastTurn;

    pub(super) fn serialize<S: Serializer>(turns: &[Arc<PastTurn>], to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(turns.iter().map(Arc::as_ref))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Arc<PastTurn>>, D::Error> {
        let turns = Vec::<PastTurn>::deserialize(from)?;
        Ok(turns.into_iter().map(Arc::new).collect())
    }
}

#[cfg(test)]
mod tests;
