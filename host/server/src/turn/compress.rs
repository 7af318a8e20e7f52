//! Compressors one after the other, and what is taken of what they propose.

use std::sync::Arc;

use jackfield_policy::{Budget, Kind, Member, apply_edits};

use super::parts::{parts, shown_messages};
use super::prepare::{Preparing, did, name};
use super::verify::{self, Verdict};
use crate::error::ApiError;
use crate::openai::Message;

/// A prompt on its way through the compressors.
struct Stage {
    messages: Vec<Message>,
    prompt: Vec<u32>,
    /// Leading tokens that need not be computed.
    held: usize,
    /// Who made it of the one before, and how many tokens shorter; none for the original.
    made_by: Option<(Arc<Member>, usize)>,
}

impl Stage {
    /// Tokens that have to be computed.
    fn to_read(&self) -> usize {
        self.prompt.len().saturating_sub(self.held)
    }

    /// Tokens that were computed for it and that the prompt which is used does not have as well.
    fn read_beside(&self, used: &Stage) -> usize {
        let shared = self.prompt.iter().zip(&used.prompt).take_while(|(own, other)| own == other).count();
        self.prompt.len().saturating_sub(self.held.max(shared))
    }
}

impl Preparing<'_> {
    /// The prompt that the turn runs with, where compressors are asked to keep the share `keep` of it. What does not make it
    /// shorter is not used, nor what breaks more of a cached prefix than it saves, nor, where that is verified, what changes
    /// what the model would say.
    pub(super) fn compress(
        &mut self,
        messages: Vec<Message>,
        (prompt, held): (Vec<u32>, usize),
        keep: f32,
    ) -> Result<Vec<u32>, ApiError> {
        let keep_tokens = (prompt.len() as f32 * keep).ceil() as u32;
        let mut stages = vec![Stage { messages, prompt, held, made_by: None }];
        let lineup = self.lineup;
        for member in lineup.of_kind(Kind::Compressor) {
            let Some(last) = stages.last() else { break };
            if let Some(next) = self.shortened(member, last, keep_tokens)? {
                stages.push(next);
            }
        }
        self.settle_stages(&mut stages);
        for (member, saved) in stages.iter().filter_map(|stage| stage.made_by.as_ref()) {
            member.policy().saved(*saved);
        }
        Ok(stages.pop().map(|stage| stage.prompt).unwrap_or_default())
    }

    /// What a compressor makes of the prompt; none when that is not to be used.
    fn shortened(
        &mut self,
        member: &Arc<Member>,
        last: &Stage,
        keep_tokens: u32,
    ) -> Result<Option<Stage>, ApiError> {
        let parts = parts(self.engine(), &last.messages, last.prompt.len(), last.held);
        let budget = Budget {
            keep_tokens,
            prompt_tokens: last.prompt.len() as u32,
            us_per_token: self.app.us_per_token(),
        };
        let called = member.compress(self.turn, &parts, &budget);
        let Some(edits) = self.settle(member, called, |edits| did::edits(edits))? else { return Ok(None) };
        if edits.is_empty() {
            return Ok(None);
        }
        let messages = shown_messages(&last.messages, apply_edits(&parts, &edits));
        let prompt = self.prompt(&messages)?;
        let held = self.held(&prompt, self.engine().fetch(&prompt, &self.salt));
        let saved = last.prompt.len().saturating_sub(prompt.len());
        let next = Stage { messages, prompt, held, made_by: Some((Arc::clone(member), saved)) };
        let (before, after) = (last.to_read(), next.to_read());
        let mut note = format!("{} -> {} tokens", last.prompt.len(), next.prompt.len());
        if after > before {
            note += &format!(": original kept, of which only {before} are to be read, not {after}");
        } else if saved == 0 {
            note += ": original kept";
        }
        self.trace.note(&name(member.policy()), Kind::Compressor.world(), note, 0);
        Ok((saved > 0 && after <= before).then_some(next))
    }

    /// Where this turn is one that is verified: goes back, stage by stage, to one after which the model would say what it
    /// would after the original.
    fn settle_stages(&mut self, stages: &mut Vec<Stage>) {
        let config = self.app.config.verify;
        if stages.len() < 2 || !verify::is_drawn(self.turn.seed, config.share) {
            return;
        }
        let (mut original, mut dropped) = (None, Vec::new());
        while let [first, .., last] = stages.as_slice() {
            let verdict = verify::hold(self.engine(), &self.salt, &mut original, &first.prompt, &last.prompt);
            let by = last.made_by.as_ref().map_or_else(String::new, |(member, _)| name(member.policy()));
            let taken = matches!(verdict, Verdict::Diverges(by) if by <= config.most_divergence);
            self.trace.note(&by, "verification", verdict.note(taken), 0);
            self.app.metrics.verified(verdict.outcome(taken));
            if taken {
                break;
            }
            dropped.extend(stages.pop());
        }
        self.app.metrics.read_to_verify(read_to_verify(stages, &dropped));
    }
}

/// Tokens that were computed to compare alone: of the original, unless the turn goes back to it, and of what was `dropped`.
/// The last of `stages` is used; those between it and the original were not read.
fn read_to_verify(stages: &[Stage], dropped: &[Stage]) -> usize {
    let Some((used, before)) = stages.split_last() else { return 0 };
    before.first().into_iter().chain(dropped).map(|stage| stage.read_beside(used)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stage(prompt: &[u32], held: usize) -> Stage {
        Stage { messages: Vec::new(), prompt: prompt.to_vec(), held, made_by: None }
    }

    #[test]
    fn only_what_the_turn_does_not_need_is_the_cost_of_comparing() {
        let original = || stage(&[1, 2, 3, 4, 5, 6], 1);
        let rules = || stage(&[1, 2, 4, 5, 6], 1);
        let salient = || stage(&[1, 4, 6], 1);
        assert_eq!(read_to_verify(&[original(), rules()], &[]), 4, "3 4 5 6 of the original");
        assert_eq!(read_to_verify(&[original()], &[rules()]), 3, "4 5 6: the turn needs the original");
        assert_eq!(read_to_verify(&[original()], &[salient(), rules()]), 2 + 3);
        assert_eq!(read_to_verify(&[original(), rules()], &[salient()]), 4 + 2);
        assert_eq!(read_to_verify(&[original(), rules(), salient()], &[]), 5, "the rules' was not read");
        assert_eq!(read_to_verify(&[stage(&[1, 2, 3], 3), stage(&[1, 3], 1)], &[]), 0, "was cached");
    }
}
