//! The figures of a measurement, by half and language, and a list of what went wrong in the half that rules are written by.

use crate::{Dialog, GoldSlot, Lang, Split, Turn, courtesy, load, salient, slots};
use jackfield_sdk::{Slot, Value};
use std::collections::BTreeMap;
use std::fmt::{self, Display};

/// Counts of some dialogs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Dialogs.
    pub dialogs: usize,
    /// Those in which all slots of the goal were known, each with the value that it had last.
    pub goals: usize,
    /// Turns of the user.
    pub turns: usize,
    /// Claimed slots read right: value and words.
    pub right: usize,
    /// Claimed slots not read, or read otherwise.
    pub missed: usize,
    /// Slots read that are not there, or are otherwise.
    pub wrong: usize,
    /// Turns answered without a model.
    pub answered: usize,
    /// Of these, turns that rules should have left to the model.
    pub answered_too_much: usize,
    /// Turns left to the model that rules could have answered.
    pub answered_too_little: usize,
    /// Characters of the texts.
    pub characters: usize,
    /// Characters that courtesy rules would drop.
    pub removed: usize,
    /// Words that must stay and would go.
    pub lost: usize,
    /// Characters that the lists of `compress-salient` would drop.
    pub salient_removed: usize,
    /// Words that must stay and would go with them.
    pub salient_lost: usize,
}

/// Counts by half, language, and for slots by name.
#[derive(Debug, Default)]
pub struct Figures {
    groups: BTreeMap<(Split, Lang), Counts>,
    names: BTreeMap<(Split, String), Counts>,
    /// What went wrong in the half that rules are written by, and what is left of its texts.
    pub notes: Vec<String>,
}

/// Measures the shipped rules.
pub fn measure() -> Result<Figures, String> {
    let (player, rules, policy) = (slots::Player::new()?, courtesy::rules()?, salient::policy()?);
    let mut figures = Figures::default();
    for dialog in load()? {
        player.play(&dialog, &mut figures)?;
        courtesy::drop_from(&rules, &dialog, &mut figures)?;
        salient::drop_from(&policy, &dialog, &mut figures)?;
    }
    Ok(figures)
}

impl Counts {
    /// Of the slots read, how many are right, 0 to 1.
    pub fn precision(&self) -> f64 {
        share(self.right, self.right + self.wrong)
    }

    /// Of the slots that are claimed, how many are read, 0 to 1.
    pub fn recall(&self) -> f64 {
        share(self.right, self.right + self.missed)
    }

    /// Of the turns, how many need no model, 0 to 1.
    pub fn answered_share(&self) -> f64 {
        share(self.answered, self.turns)
    }

    fn add(&mut self, other: &Counts) {
        self.dialogs += other.dialogs;
        self.goals += other.goals;
        self.turns += other.turns;
        self.right += other.right;
        self.missed += other.missed;
        self.wrong += other.wrong;
        self.answered += other.answered;
        self.answered_too_much += other.answered_too_much;
        self.answered_too_little += other.answered_too_little;
        self.characters += other.characters;
        self.removed += other.removed;
        self.lost += other.lost;
        self.salient_removed += other.salient_removed;
        self.salient_lost += other.salient_lost;
    }
}

fn share(part: usize, whole: usize) -> f64 {
    if whole == 0 { 1.0 } else { part as f64 / whole as f64 }
}

impl Figures {
    /// The counts of a half.
    pub fn half(&self, split: Split) -> Counts {
        let mut all = Counts::default();
        self.groups.iter().filter(|((half, _), _)| *half == split).for_each(|(_, counts)| all.add(counts));
        all
    }

    pub(crate) fn goal(&mut self, dialog: &Dialog, known: &BTreeMap<String, Value>) {
        let slots = dialog.goal.iter().filter(|(name, _)| *name != "action");
        let reached =
            slots.into_iter().all(|(name, value)| known.get(name).is_some_and(|found| value.is(found)));
        let group = self.group(dialog);
        group.dialogs += 1;
        group.goals += usize::from(reached);
        if !reached {
            self.note(dialog, || format!("goal not known: {:?}", dialog.goal));
        }
    }

    pub(crate) fn answered(&mut self, dialog: &Dialog, turn: &Turn, answered: bool) {
        let group = self.group(dialog);
        group.turns += 1;
        group.characters += turn.text.chars().count();
        group.answered += usize::from(answered);
        group.answered_too_much += usize::from(answered && !turn.alone);
        group.answered_too_little += usize::from(!answered && turn.alone);
        if answered != turn.alone {
            let how = if answered { "answered" } else { "not answered" };
            self.note(dialog, || format!("{how}: {:?}", turn.text));
        }
    }

    pub(crate) fn read(&mut self, dialog: &Dialog, turn: &Turn, gold: &GoldSlot, right: bool) {
        for counts in self.both(dialog, &gold.name) {
            counts.right += usize::from(right);
            counts.missed += usize::from(!right);
        }
        if !right {
            self.note(dialog, || {
                format!("missed {} {:?} ({}): {:?}", gold.name, gold.value, gold.span, turn.text)
            });
        }
    }

    pub(crate) fn wrong(&mut self, dialog: &Dialog, turn: &Turn, slot: &Slot) {
        self.both(dialog, &slot.name).into_iter().for_each(|counts| counts.wrong += 1);
        let span = slot.source.as_ref().and_then(|span| turn.text.get(span.range())).unwrap_or("");
        self.note(dialog, || format!("wrong {} {:?} ({span}): {:?}", slot.name, slot.value, turn.text));
    }

    pub(crate) fn lost(&mut self, dialog: &Dialog, turn: &Turn, word: &str) {
        self.group(dialog).lost += 1;
        self.note(dialog, || format!("lost {word:?}: {:?}", turn.text));
    }

    pub(crate) fn removed(&mut self, dialog: &Dialog, turn: &Turn, characters: usize, rest: &str) {
        self.group(dialog).removed += characters;
        self.note(dialog, || format!("left {rest:?} of {:?}", turn.text));
    }

    pub(crate) fn salient_lost(&mut self, dialog: &Dialog, turn: &Turn, word: &str) {
        self.group(dialog).salient_lost += 1;
        self.note(dialog, || format!("salient lost {word:?}: {:?}", turn.text));
    }

    pub(crate) fn salient_removed(&mut self, dialog: &Dialog, characters: usize) {
        self.group(dialog).salient_removed += characters;
    }

    fn group(&mut self, dialog: &Dialog) -> &mut Counts {
        self.groups.entry((dialog.split, dialog.lang)).or_default()
    }

    fn both(&mut self, dialog: &Dialog, name: &str) -> [&mut Counts; 2] {
        let group = self.groups.entry((dialog.split, dialog.lang)).or_default();
        let named = self.names.entry((dialog.split, name.to_owned())).or_default();
        [group, named]
    }

    /// Nothing of the other half is told: rules must not be tuned on it.
    fn note(&mut self, dialog: &Dialog, what: impl FnOnce() -> String) {
        if dialog.split == Split::Rules {
            self.notes.push(format!("{}: {}", dialog.id, what()));
        }
    }
}

impl Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{:<13} {:>7} {:>5} {:>5} | {:>5} {:>6} {:>5} {:>9} {:>6} | {:>8} {:>4} {:>6} | {:>5} {:>13} {:>4} | {:>13} {:>4}",
            "half",
            "dialogs",
            "goals",
            "turns",
            "right",
            "missed",
            "wrong",
            "precision",
            "recall",
            "answered",
            "much",
            "little",
            "chars",
            "dropped/turn",
            "lost",
            "salient/turn",
            "lost"
        )?;
        for split in [Split::Rules, Split::Report] {
            for ((half, lang), counts) in self.groups.iter().filter(|((half, _), _)| *half == split) {
                row(f, &format!("{half:?} {lang:?}"), counts)?;
            }
            row(f, &format!("{split:?}"), &self.half(split))?;
        }
        writeln!(
            f,
            "\n{:<18} {:>5} {:>6} {:>5} {:>9} {:>6}",
            "slot", "right", "missed", "wrong", "precision", "recall"
        )?;
        for ((split, name), c) in &self.names {
            let name = format!("{split:?} {name}");
            writeln!(
                f,
                "{name:<18} {:>5} {:>6} {:>5} {:>9.3} {:>6.3}",
                c.right,
                c.missed,
                c.wrong,
                c.precision(),
                c.recall()
            )?;
        }
        Ok(())
    }
}

fn row(f: &mut fmt::Formatter<'_>, name: &str, c: &Counts) -> fmt::Result {
    let per_turn = c.removed as f64 / c.turns.max(1) as f64;
    let percent = 100.0 * share(c.removed, c.characters);
    let salient = c.salient_removed as f64 / c.turns.max(1) as f64;
    let salient_percent = 100.0 * share(c.salient_removed, c.characters);
    writeln!(
        f,
        "{name:<13} {:>7} {:>5} {:>5} | {:>5} {:>6} {:>5} {:>9.3} {:>6.3} | {:>7.1}% {:>4} {:>6} | {:>5} {:>5.2} ({percent:>4.1}%) {:>4} | {salient:>5.2} ({salient_percent:>4.1}%) {:>4}",
        c.dialogs,
        c.goals,
        c.turns,
        c.right,
        c.missed,
        c.wrong,
        c.precision(),
        c.recall(),
        100.0 * c.answered_share(),
        c.answered_too_much,
        c.answered_too_little,
        c.characters,
        per_turn,
        c.lost,
        c.salient_lost
    )
}
