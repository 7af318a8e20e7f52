//! What becomes of a dialog whose state another version of a policy has written.

use std::collections::BTreeMap;

use jackfield_dialog::Dialog;
use serde::{Deserialize, Serialize};

/// `[dialog]` of a manifest: what becomes of a dialog that was written in a schema which the policy does not read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
pub struct DialogRules {
    /// Where no migration begins at its schema.
    pub on_other_schema: OnOtherSchema,
    /// States in which a dialog is over: what is kept on an earlier version goes over to this one.
    pub ends: Vec<String>,
    /// From older schemas to the one that the policy writes.
    pub migrate: Vec<Migration>,
}

/// What becomes of a dialog that nothing migrates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OnOtherSchema {
    /// Its state and slots are forgotten; what was said stays.
    #[default]
    Restart,
    /// The latest earlier version that reads it goes on with it until it is over. Without such a version it is restarted.
    Keep,
}

/// How a dialog of an older schema is read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Migration {
    /// The schema that the state was written in.
    pub from: u32,
    /// New names of states; those that are not named stay.
    #[serde(default)]
    pub states: BTreeMap<String, String>,
    /// New names of slots; those that are not named stay, and an empty name forgets the slot.
    #[serde(default)]
    pub slots: BTreeMap<String, String>,
}

/// How a dialog and a policy go together.
#[derive(Debug, PartialEq)]
pub(crate) enum Fit {
    /// It can be read as it is.
    AsIs,
    /// It can be read like this.
    Migrated(Dialog),
    /// An earlier version goes on with it, where there is one.
    Kept,
    /// It begins anew.
    Restarted(Dialog),
}

impl DialogRules {
    /// Whether earlier versions may be asked for.
    pub(crate) fn keeps(&self) -> bool {
        self.on_other_schema == OnOtherSchema::Keep
    }

    /// What becomes of `dialog`, for a policy that writes `own` and reads `reads` besides. A dialog without a schema is new,
    /// and a policy without one takes every dialog.
    pub(crate) fn fit(&self, dialog: &Dialog, own: u32, reads: &[u32]) -> Fit {
        if reads_schema(dialog.schema, own, reads) {
            return Fit::AsIs;
        }
        match self.migrate.iter().find(|migration| migration.from == dialog.schema) {
            Some(migration) => Fit::Migrated(migration.apply(dialog, own)),
            None if self.keeps() && !self.ends.contains(&dialog.state) => Fit::Kept,
            None => Fit::Restarted(restarted(dialog)),
        }
    }

    /// # Errors
    /// A schema that is migrated from twice, or none.
    pub(crate) fn validate(&self) -> Result<(), String> {
        for (index, migration) in self.migrate.iter().enumerate() {
            if migration.from == 0 {
                return Err(
                    "dialog.migrate: from is 0, the schema of a new dialog; give the older one".into()
                );
            }
            if self.migrate[..index].iter().any(|other| other.from == migration.from) {
                return Err(format!("dialog.migrate: from {} is given twice", migration.from));
            }
        }
        Ok(())
    }
}

/// Whether a policy that writes `own` and reads `reads` besides can read a dialog of this schema.
pub(crate) fn reads_schema(schema: u32, own: u32, reads: &[u32]) -> bool {
    schema == 0 || own == 0 || schema == own || reads.contains(&schema)
}

/// Without state and slots; the turns were taken all the same.
pub(crate) fn restarted(dialog: &Dialog) -> Dialog {
    Dialog { turns: dialog.turns, ..Dialog::default() }
}

impl Migration {
    fn apply(&self, dialog: &Dialog, to: u32) -> Dialog {
        let mut after = restarted(dialog);
        after.schema = to;
        after.state = self.states.get(&dialog.state).unwrap_or(&dialog.state).clone();
        for slot in &dialog.slots {
            let name = self.slots.get(&slot.name).unwrap_or(&slot.name);
            if !name.is_empty() {
                let mut slot = slot.clone();
                slot.name.clone_from(name);
                after.set(slot);
            }
        }
        after
    }
}

#[cfg(test)]
mod tests {
    use jackfield_dialog::{Slot, Value};

    use super::*;

    fn slot(name: &str) -> Slot {
        Slot {
            name: name.into(),
            value: Value::Boolean(true),
            source: None,
            confidence: 1.0,
            turn: 1,
            policy: "p@1".into(),
        }
    }

    fn dialog(schema: u32, state: &str) -> Dialog {
        Dialog {
            schema,
            state: state.into(),
            slots: vec![slot("number"), slot("city"), slot("mood")],
            turns: 4,
        }
    }

    fn rules(toml: &str) -> DialogRules {
        toml::from_str(toml).expect("reads")
    }

    #[test]
    fn what_can_be_read_is_left_alone() {
        let rules = DialogRules::default();
        for (schema, own, reads) in [(0, 2, vec![]), (2, 2, vec![]), (1, 2, vec![1]), (7, 0, vec![])] {
            assert_eq!(rules.fit(&dialog(schema, "s"), own, &reads), Fit::AsIs);
        }
    }

    #[test]
    fn a_migration_renames_states_and_slots() {
        let rules = rules(
            "[[migrate]]\nfrom = 1\nstates = { asking = 'waiting' }\nslots = { number = 'order', mood = '' }",
        );
        let Fit::Migrated(after) = rules.fit(&dialog(1, "asking"), 3, &[2]) else { panic!("migrates") };
        let names: Vec<_> = after.slots.iter().map(|slot| slot.name.as_str()).collect();
        assert_eq!((after.state.as_str(), after.schema, after.turns), ("waiting", 3, 4));
        assert_eq!(names, ["order", "city"]);
        let Fit::Migrated(after) = rules.fit(&dialog(1, "other"), 3, &[]) else { panic!("migrates") };
        assert_eq!(after.state, "other");
    }

    #[test]
    fn what_nothing_migrates_is_kept_until_it_is_over_or_restarted() {
        let keep = rules("on-other-schema = 'keep'\nends = ['done']");
        assert_eq!(keep.fit(&dialog(1, "asking"), 2, &[]), Fit::Kept);
        let anew = Dialog { turns: 4, ..Dialog::default() };
        assert_eq!(keep.fit(&dialog(1, "done"), 2, &[]), Fit::Restarted(anew.clone()));
        assert_eq!(DialogRules::default().fit(&dialog(1, "asking"), 2, &[]), Fit::Restarted(anew));
    }

    #[test]
    fn a_mapping_without_sense_is_refused() {
        assert!(rules("[[migrate]]\nfrom = 0").validate().is_err());
        assert!(rules("[[migrate]]\nfrom = 1\n[[migrate]]\nfrom = 1").validate().is_err());
        assert!(rules("[[migrate]]\nfrom = 1\n[[migrate]]\nfrom = 2").validate().is_ok());
    }
}
