//! What `compress-courtesy` would drop from what users say.

use crate::figures::Figures;
use crate::{Dialog, shipped};
use compress_courtesy::find::deletions;
use compress_courtesy::rules::Rules;

/// The shipped rules.
pub fn rules() -> Result<Rules, String> {
    Rules::new(shipped("compress-courtesy")?)
}

/// Counts what could go from each turn, whether or not a prompt is long enough for it to be worth an edit.
pub fn drop_from(rules: &Rules, dialog: &Dialog, figures: &mut Figures) -> Result<(), String> {
    for turn in &dialog.turns {
        let gone = deletions(rules, &turn.text, &[]);
        for stay in turn.must_stay()? {
            if gone.iter().any(|range| range.start < stay.end && stay.start < range.end) {
                figures.lost(dialog, turn, &turn.text[stay]);
            }
        }
        let removed = gone.iter().map(|range| turn.text[range.clone()].chars().count()).sum();
        let mut rest = turn.text.clone();
        for range in gone.into_iter().rev() {
            rest.replace_range(range, "");
        }
        figures.removed(dialog, turn, removed, &rest);
    }
    Ok(())
}
