//! Dialogs that another version of a policy has written: migrated, left to the earlier version, or begun anew.

mod kit;

use jackfield_guests::{Guest, World};
use jackfield_policy::{Dialog, DialogRules, Kind, Next, Registry, Turn, Upload};
use kit::{registry, upload};

/// A slot extractor of a dialog schema, which says a text.
fn speaker(schema: u32, text: &str, rules: &str) -> Upload {
    let mut guest = Guest::new(World::SlotExtractor);
    guest.dialog_schema(schema);
    guest.work = guest.say(text);
    let mut upload = upload(&guest);
    upload.manifest.dialog = toml::from_str::<DialogRules>(rules).expect("rules");
    upload
}

fn asking(schema: u32) -> Dialog {
    Dialog { state: "asking".into(), schema, turns: 3, ..Dialog::default() }
}

/// What this dialog is answered, by whom it fits, and what was done to it.
fn answered(registry: &Registry, dialog: &mut Dialog) -> (String, Option<String>) {
    let turn = Turn { tenant: "t".into(), ..Turn::default() };
    let lineup = registry.current().lineup(&turn, "m");
    let [member] = lineup.of_kind(Kind::SlotExtractor) else { panic!("one extractor") };
    let fitted = member.fit(dialog);
    let member = fitted.instead.as_ref().unwrap_or(member);
    let recent = [jackfield_policy::Message::new(jackfield_policy::Role::User, "hello")];
    let called = member.extract(&turn, &recent, dialog).expect("an answer");
    let Next::Answer(text) = called.answer.next else { panic!("{:?}", called.answer) };
    (text, fitted.did)
}

#[test]
fn a_dialog_stays_with_the_version_that_wrote_it_until_it_is_over() {
    let registry = registry();
    registry.put(speaker(1, "old", "")).expect("taken");
    registry.put(speaker(2, "new", "on-other-schema = 'keep'\nends = ['done']")).expect("taken");
    let (text, did) = answered(&registry, &mut asking(1));
    assert_eq!(text, "old");
    assert!(did.is_some_and(|did| did.contains("left to")));
    assert_eq!(answered(&registry, &mut Dialog::default()).0, "new", "a new dialog is the new version's");
    assert_eq!(answered(&registry, &mut asking(2)), ("new".into(), None));
    let mut over = Dialog { state: "done".into(), ..asking(1) };
    let (text, did) = answered(&registry, &mut over);
    assert_eq!((text.as_str(), over.schema, over.turns), ("new", 0, 3));
    assert!(did.is_some_and(|did| did.contains("restarted")));
    let (text, did) = answered(&registry, &mut asking(7));
    assert_eq!(text, "new", "no version that is held reads it");
    assert!(did.is_some_and(|did| did.contains("nothing reads its schema 7")));
}

#[test]
fn a_dialog_is_migrated_where_the_manifest_says_how() {
    let registry = registry();
    registry.put(speaker(1, "old", "")).expect("taken");
    let rules = "[[migrate]]\nfrom = 1\nstates = { asking = 'waiting' }";
    registry.put(speaker(2, "new", rules)).expect("taken");
    let mut dialog = asking(1);
    let (text, did) = answered(&registry, &mut dialog);
    assert_eq!((text.as_str(), dialog.state.as_str(), dialog.schema), ("new", "waiting", 2));
    assert_eq!(did.as_deref(), Some("dialog migrated from schema 1 to 2"));
}

#[test]
fn a_dialog_of_a_later_schema_is_no_trouble_after_a_rollback() {
    let registry = registry();
    registry.put(speaker(1, "old", "")).expect("taken");
    registry.put(speaker(2, "new", "")).expect("taken");
    registry.rollback("guest").expect("goes back");
    let mut dialog = asking(2);
    let (text, did) = answered(&registry, &mut dialog);
    assert_eq!((text.as_str(), dialog.state.as_str()), ("old", ""));
    assert!(did.is_some_and(|did| did.contains("restarted")));
}
