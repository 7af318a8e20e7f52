//! What the model is given of a dialog. Each prompt begins with the one before it and what the model answered, so that all of
//! that is found in the host's prefix cache: what stays the same comes first, what is new last, and what was told is told
//! again where it stood.

use crate::machine::{Fact, Language, Machine};
use crate::memory::{self, PROMPTED, Told};
use jackfield_sdk::slot_extraction::Dialog;
use jackfield_sdk::{Message, Role, Slot};

/// The messages, and what has to be kept for the next prompt.
#[derive(Debug)]
pub struct Prompt {
    /// For the model.
    pub messages: Vec<Message>,
    /// Slots to set.
    pub set: Vec<Slot>,
}

/// A turn that goes to the model.
pub struct Asking<'a> {
    /// The rules.
    pub machine: &'a Machine,
    /// The last messages; the utterance is the last of them.
    pub recent: &'a [Message],
    /// What the dialog holds.
    pub dialog: &'a Dialog,
    /// The language that the user writes.
    pub language: Language,
    /// Today's date.
    pub today: Option<&'a str>,
}

impl Asking<'_> {
    /// With instructions, and what is known where the words do not say it. Of a dialog that may not be whole here only the
    /// utterance is shown.
    pub fn with(&self, facts: &[Fact]) -> Prompt {
        let is_whole = self.machine.is_whole(self.recent);
        let recent = if is_whole { self.recent } else { &self.recent[self.recent.len().saturating_sub(1)..] };
        let mut told = if is_whole { memory::told(self.dialog) } else { Told::new() };
        let shown = self.shown(recent, &told);
        let unsaid = facts.iter().filter(|fact| !fact.is_seen_in(&shown));
        let unsaid: serde_json::Map<_, _> =
            unsaid.map(|fact| (fact.name.clone(), fact.json.clone())).collect();
        let mut set: Vec<Slot> =
            memory::keep_language(PROMPTED, self.language, self.dialog).into_iter().collect();
        if !unsaid.is_empty() {
            let last = recent.iter().filter(|message| message.role == Role::User).count().saturating_sub(1);
            let json = serde_json::Value::Object(unsaid).to_string();
            told.insert(last, self.machine.known(self.language, &json));
            set.extend(memory::keep_told(&told).filter(|_| is_whole));
        }
        Prompt { messages: self.messages(self.language, self.shown(recent, &told)), set }
    }

    /// As it is, after the instructions, where the model has read of it so far what begins with them, or nothing at all. `None`
    /// where they would make it read again what it has read without them, or where the dialog may not be whole here.
    pub fn going_on(&self) -> Option<Prompt> {
        let begun = memory::language(PROMPTED, self.dialog);
        if !self.machine.is_whole(self.recent) || (begun.is_none() && !self.is_unread()) {
            return None;
        }
        let language = begun.unwrap_or(self.language);
        let shown = self.shown(self.recent, &memory::told(self.dialog));
        let set = memory::keep_language(PROMPTED, language, self.dialog).into_iter().collect();
        Some(Prompt { messages: self.messages(language, shown), set })
    }

    /// Whether every answer so far was one of the rules, in a dialog that is kept: a caller without a session would be given the
    /// instructions in this turn and not in the next.
    fn is_unread(&self) -> bool {
        if self.dialog.schema == 0 {
            return false;
        }
        let mut answers = self.recent.iter().filter(|message| message.role == Role::Assistant).peekable();
        answers.peek().is_some() && answers.all(|answer| self.machine.is_reply(&answer.text))
    }

    /// The dialog without system messages. The model does not read what the rules have answered, but for the last of several
    /// such answers in a row, which says what they came to; what the user said meanwhile is one message.
    fn shown(&self, recent: &[Message], told: &Told) -> Vec<Message> {
        let said: Vec<&Message> = recent.iter().filter(|message| message.role != Role::System).collect();
        let is_reply =
            |message: &Message| message.role == Role::Assistant && self.machine.is_reply(&message.text);
        let mut shown: Vec<Message> = Vec::with_capacity(said.len() + 1);
        let (mut user, mut dropped) = (0, false);
        for (at, message) in said.iter().enumerate() {
            let next = said[at + 1..].iter().find(|message| message.role == Role::Assistant);
            let drop = is_reply(message) && next.is_some_and(|next| is_reply(next));
            let mut text = message.text.clone();
            if message.role == Role::User {
                if let Some(told) = told.get(&user) {
                    text = format!("{told}\n{text}");
                }
                user += 1;
            }
            match shown.last_mut() {
                _ if drop => {}
                Some(last) if dropped && last.role == message.role => last.text += &format!("\n{text}"),
                _ => shown.push(Message { role: message.role, text }),
            }
            dropped = drop;
        }
        shown
    }

    /// After the caller's own system messages and the instructions.
    fn messages(&self, language: Language, shown: Vec<Message>) -> Vec<Message> {
        let own = self.recent.iter().filter(|message| message.role == Role::System);
        let instructions = self.machine.instructions(language, self.today);
        let texts: Vec<&str> =
            own.map(|message| message.text.as_str()).chain([instructions.as_str()]).collect();
        let system = Message { role: Role::System, text: texts.join("\n\n") };
        [system].into_iter().chain(shown).collect()
    }
}
