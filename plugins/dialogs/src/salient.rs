//! What `compress-salient` would drop from what users say where no model can be asked: all that its lists let go.

use crate::figures::Figures;
use crate::{Dialog, shipped};
use compress_salient::rules::Config;
use compress_salient::{CompressSalient, Host};
use jackfield_sdk::compression::{Budget, Part};
use jackfield_sdk::imports::saliency::Scored;
use jackfield_sdk::{Message, Policy, Role};

/// The shipped rules, for prompts of any length.
pub fn policy() -> Result<CompressSalient, String> {
    let mut config: Config = shipped("compress-salient")?;
    config.when.least_prompt_tokens = 0;
    CompressSalient::configure(config)
}

/// A host without a model.
struct NoModel;

impl Host for NoModel {
    fn count(&self, text: &str) -> u32 {
        text.chars().count() as u32
    }

    fn score(&self, _: &str) -> Result<Vec<Scored>, String> {
        Err("no model".into())
    }
}

/// Counts what could go from each turn, said before another one.
pub fn drop_from(policy: &CompressSalient, dialog: &Dialog, figures: &mut Figures) -> Result<(), String> {
    for turn in &dialog.turns {
        let gone: Vec<_> = gone(policy, &turn.text);
        for stay in turn.must_stay()? {
            if gone.iter().any(|range| range.start < stay.end && stay.start < range.end) {
                figures.salient_lost(dialog, turn, &turn.text[stay]);
            }
        }
        let removed = gone.iter().map(|range| turn.text[range.clone()].chars().count()).sum();
        figures.salient_removed(dialog, removed);
    }
    Ok(())
}

fn gone(policy: &CompressSalient, text: &str) -> Vec<std::ops::Range<usize>> {
    let part = |text: &str| Part {
        message: Message { role: Role::User, text: text.into() },
        protected: vec![],
        cached_bytes: 0,
    };
    let parts = [part(text), part("?")];
    let budget = Budget { prompt_tokens: NoModel.count(text) + 1, keep_tokens: 0, us_per_token: 1000.0 };
    policy.edits(&NoModel, &parts, &budget).iter().map(|edit| edit.at.range()).collect()
}
