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
        let begun = memory::language(PROMPTED, self.dialog).is_some();
        // In front of what the model has read without them, the instructions would make it read all of that again.
        let front = (!is_whole || begun || !self.is_read()).then_some(self.language);
        let shown = self.shown(recent, &told, front.is_some());
        let unsaid = facts.iter().filter(|fact| !fact.is_seen_in(&shown));
        let unsaid: serde_json::Map<_, _> =
            unsaid.map(|fact| (fact.name.clone(), fact.json.clone())).collect();
        let mut new = Vec::new();
        let instructions = self.machine.instructions(self.language, self.today);
        if front.is_none() && !told.values().any(|told| told.starts_with(&instructions)) {
            new.push(instructions);
        }
        if !unsaid.is_empty() {
            new.push(self.machine.known(self.language, &serde_json::Value::Object(unsaid).to_string()));
        }
        let prompted = front.and_then(|language| memory::keep_language(PROMPTED, language, self.dialog));
        let mut set: Vec<Slot> = prompted.into_iter().collect();
        if !new.is_empty() {
            let users: Vec<_> = recent.iter().filter(|message| message.role == Role::User).collect();
            if let Some(last) = users.last() {
                told.insert(memory::place(users.len() - 1, &last.text), new.join("\n"));
            }
            set.extend(memory::keep_told(&told).filter(|_| is_whole));
        }
        Prompt { messages: self.messages(front, self.shown(recent, &told, front.is_some())), set }
    }

    /// As it is, with the instructions and what was told where they stood. They begin here where the model has read nothing yet.
    /// `None` where nothing was told, or the dialog may not be whole here.
    pub fn going_on(&self) -> Option<Prompt> {
        let told = memory::told(self.dialog);
        let begun = memory::language(PROMPTED, self.dialog);
        let front = begun.or_else(|| self.begins().then_some(self.language));
        if !self.machine.is_whole(self.recent) || (front.is_none() && told.is_empty()) {
            return None;
        }
        let set = front.and_then(|language| memory::keep_language(PROMPTED, language, self.dialog));
        let shown = self.shown(self.recent, &told, front.is_some());
        Some(Prompt { messages: self.messages(front, shown), set: set.into_iter().collect() })
    }

    /// Whether the rules have answered so far, and nobody else, in a dialog that is kept: a caller without a session would be
    /// given the instructions in this turn and not in the next.
    fn begins(&self) -> bool {
        self.dialog.schema != 0 && self.answers().next().is_some() && !self.is_read()
    }

    /// Whether the model has answered before.
    fn is_read(&self) -> bool {
        self.answers().any(|answer| !self.machine.is_reply(&answer.text))
    }

    fn answers(&self) -> impl Iterator<Item = &Message> {
        self.recent.iter().filter(|message| message.role == Role::Assistant)
    }

    /// The dialog without system messages. `brief`: of what the rules have answered in a row the model reads the last, which says
    /// what they came to; what the user said meanwhile is one message.
    fn shown(&self, recent: &[Message], told: &Told, brief: bool) -> Vec<Message> {
        let said: Vec<&Message> = recent.iter().filter(|message| message.role != Role::System).collect();
        let is_reply = |message: &Message| {
            brief && message.role == Role::Assistant && self.machine.is_reply(&message.text)
        };
        let mut shown: Vec<Message> = Vec::with_capacity(said.len() + 1);
        let (mut user, mut dropped) = (0, false);
        for (at, message) in said.iter().enumerate() {
            let next = said[at + 1..].iter().find(|message| message.role == Role::Assistant);
            let drop = is_reply(message) && next.is_some_and(|next| is_reply(next));
            let mut text = message.text.clone();
            if message.role == Role::User {
                if let Some(told) = told.get(&memory::place(user, &message.text)) {
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

    /// After the caller's own system messages and, in front, the instructions.
    fn messages(&self, front: Option<Language>, shown: Vec<Message>) -> Vec<Message> {
        let own = self.recent.iter().filter(|message| message.role == Role::System);
        let instructions = front.map(|language| self.machine.instructions(language, self.today));
        let texts: Vec<&str> =
            own.map(|message| message.text.as_str()).chain(instructions.as_deref()).collect();
        let system = Message { role: Role::System, text: texts.join("\n\n") };
        (!texts.is_empty()).then_some(system).into_iter().chain(shown).collect()
    }
}
