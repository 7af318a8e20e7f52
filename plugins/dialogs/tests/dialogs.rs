//! What the shipped rules must reach on the dialogs. `cargo test --release -p dialogs figures -- --nocapture` prints the figures,
//! and of the half that rules are written by all that went wrong and what courtesy rules leave of each text.

use dialogs::figures::{Figures, measure};
use dialogs::{Lang, Split, load};
use std::collections::BTreeSet;

fn measured() -> Figures {
    measure().expect("dialogs and rules can be read")
}

#[test]
fn figures_tell_of_every_language_and_nothing_of_the_texts_they_are_reported_on() {
    let figures = measured();
    println!("{}\n\n{figures}", figures.notes.join("\n"));
    let table = figures.to_string();
    for group in ["Rules Zh", "Rules En", "Rules Mixed", "Report Zh", "Report En", "Report Mixed"] {
        assert!(table.contains(group), "{group} is missing in\n{table}");
    }
    let reported = load().expect("dialogs can be read").into_iter().filter(|d| d.split == Split::Report);
    for dialog in reported {
        assert!(!figures.notes.iter().any(|note| note.starts_with(&dialog.id)), "{} is told of", dialog.id);
    }
}

#[test]
fn slots_are_read_as_a_person_reads_them() {
    let figures = measured();
    for split in [Split::Rules, Split::Report] {
        let counts = figures.half(split);
        assert!(counts.right >= 150, "{split:?}: {} slots are too few to say anything", counts.right);
        assert!(counts.precision() >= 0.98, "{split:?}: precision {:.3}\n{figures}", counts.precision());
        assert!(counts.recall() >= 0.98, "{split:?}: recall {:.3}\n{figures}", counts.recall());
    }
}

#[test]
fn courtesy_goes_and_nothing_that_must_stay() {
    let figures = measured();
    for split in [Split::Rules, Split::Report] {
        let counts = figures.half(split);
        assert_eq!(counts.lost, 0, "{split:?}: words that must stay would go\n{}", figures.notes.join("\n"));
        let share = counts.removed as f64 / counts.characters as f64;
        assert!(share >= 0.08, "{split:?}: only {:.1} % of the characters go\n{figures}", 100.0 * share);
    }
}

#[test]
fn the_lists_of_salient_let_nothing_go_that_must_stay() {
    let figures = measured();
    for split in [Split::Rules, Split::Report] {
        let counts = figures.half(split);
        assert_eq!(
            counts.salient_lost,
            0,
            "{split:?}: words that must stay would go\n{}",
            figures.notes.join("\n")
        );
        let share = counts.salient_removed as f64 / counts.characters as f64;
        assert!(share >= 0.05, "{split:?}: only {:.1} % of the characters go\n{figures}", 100.0 * share);
    }
}

#[test]
fn what_is_answered_without_a_model_is_the_rules_to_answer() {
    let figures = measured();
    for split in [Split::Rules, Split::Report] {
        let counts = figures.half(split);
        assert!(
            counts.answered_share() >= 0.35,
            "{split:?}: {:.3} answered\n{figures}",
            counts.answered_share()
        );
        let too_much = counts.answered_too_much as f64 / counts.turns as f64;
        assert!(too_much <= 0.02, "{split:?}: {} answered too much\n{figures}", counts.answered_too_much);
    }
}

#[test]
fn the_halves_are_of_one_kind() {
    let dialogs = load().expect("dialogs can be read");
    assert!(dialogs.len() >= 120, "{} dialogs", dialogs.len());
    let of = |split, lang| dialogs.iter().filter(|d| d.split == split && d.lang == lang).count();
    for lang in [Lang::Zh, Lang::En, Lang::Mixed] {
        assert_eq!(of(Split::Rules, lang), of(Split::Report, lang), "{lang:?}");
    }
    // No text in both halves, but for bare answers and thanks.
    let texts = |split| -> BTreeSet<&str> {
        let turns = dialogs.iter().filter(|d| d.split == split).flat_map(|d| &d.turns);
        turns.filter(|turn| !turn.slots.is_empty()).map(|turn| turn.text.as_str()).collect()
    };
    let (rules, report) = (texts(Split::Rules), texts(Split::Report));
    let both: Vec<_> = rules.intersection(&report).collect();
    assert!(both.is_empty(), "{both:?}");
}

#[test]
fn what_is_wrong_in_a_dialog_is_told() {
    let read = |turn: &str| {
        let dialog = format!(
            r#"{{"id":"x","lang":"en","split":"rules","now":"2026-03-31T10:00:00+08:00","task":"t","goal":{{}},"turns":[{turn}]}}"#
        );
        serde_json::from_str::<dialogs::Dialog>(&dialog)
    };
    let unknown = read(r#"{"text":"hi","alone":true,"mood":1}"#).expect_err("an unknown field");
    assert!(unknown.to_string().contains("mood"), "{unknown}");
    let untyped =
        read(r#"{"text":"3","alone":true,"slots":[{"name":"quantity","value":{"number":"3"},"span":"3"}]}"#);
    assert!(untyped.is_err());
    let dialog = read(r#"{"text":"a b a","alone":true,"keep":["b","b"],"slots":[{"name":"n","value":{"text":"a"},"span":"a","nth":2}]}"#)
        .expect("the format");
    assert_eq!(dialog.turns[0].slots[0].bytes("a b a"), Some(4..5));
    assert_eq!(dialog.turns[0].must_stay(), Err("keep: `b` is not there".into()));
}
