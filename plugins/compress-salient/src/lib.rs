//! `compress-salient`: drops the words that a small model finds least surprising, until the prompt is within its budget.
//!
//! A word that the model would have guessed tells a reader little: its self-information, -log2 of its probability after what
//! precedes it, is small. Pruning prompts by it is the idea of Selective Context (Li, Dong, Guerin, Lin: "Compressing Context to
//! Enhance Inference Efficiency of Large Language Models", EMNLP 2023) and of LLMLingua (Jiang, Wu, Lin, Yang, Qiu: "LLMLingua:
//! Compressing Prompts for Accelerated Inference of Large Language Models", EMNLP 2023). Here the model's judgement decides
//! only the order; what may go at all is a matter of rules, so that no meaning is turned around.
//!
//! What holds whatever the lists say:
//! - Every edit is a deletion of whole characters as readers count them, and of whole words where words are known.
//! - System and tool messages, the last message of the user, code, JSON, quotations, links, addresses, numbers with their
//!   units, capitalised names and what the host protects stay byte for byte; so do negations with what they negate.
//! - Words go until the budget is met, and no further. A message never loses its last word.
//! - A prefix that the target has cached is not broken to save less than it costs.
//! - A prompt within its budget is left alone, and so is what comes of this policy under the same budget. (A message that the
//!   model has read in part is not always: when it is shorter, more of it is read.)
//!
//! The order of a message's words depends on nothing else in the prompt, but where the budget ends does: a dialog that
//! grows may be cut elsewhere in each turn, and the prefix cache then holds less of it.

pub mod cache;
pub mod draft;
pub mod glyphs;
pub mod guard;
pub mod lexicon;
pub mod pieces;
pub mod plan;
pub mod rules;
pub mod scope;
pub mod surprisal;
pub mod weave;

use cache::{Costs, Held};
use draft::Draft;
use jackfield_sdk::compression::{Budget, Compressor, Part};
use jackfield_sdk::imports::saliency::Scored;
use jackfield_sdk::imports::{saliency, tokens};
use jackfield_sdk::{Description, Edit, Policy, Role, Span, Turn};
use lexicon::Lexicon;
use plan::Plan;
use rules::{Config, EditedRole, Score, Weight, When};

/// What only the host's model knows.
pub trait Host {
    /// Number of tokens of a text.
    fn count(&self, text: &str) -> u32;

    /// Surprisal of each token of a text.
    ///
    /// # Errors
    /// A sentence where there is no model, no time, or too much text.
    fn score(&self, text: &str) -> Result<Vec<Scored>, String>;
}

/// The imports of the component.
pub struct Imports;

impl Host for Imports {
    fn count(&self, text: &str) -> u32 {
        tokens::count(text)
    }

    fn score(&self, text: &str) -> Result<Vec<Scored>, String> {
        saliency::score(text)
    }
}

/// The policy, compiled from its rules.
pub struct CompressSalient {
    when: When,
    score: Score,
    weight: Weight,
    lexicon: Lexicon,
}

impl Policy for CompressSalient {
    type Config = Config;

    fn describe() -> Description {
        Description::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"))
            .with_config_schema(include_str!("../config.schema.json"))
    }

    fn configure(config: Config) -> Result<Self, String> {
        config.validate()?;
        let lexicon = Lexicon::new(&config)?;
        let Config { when, score, weight, .. } = config;
        Ok(CompressSalient { when, score, weight, lexicon })
    }
}

impl Compressor for CompressSalient {
    fn compress(&self, _turn: &Turn, parts: &[Part], budget: &Budget) -> Result<Vec<Edit>, String> {
        Ok(self.edits(&Imports, parts, budget))
    }
}

impl CompressSalient {
    /// The edits, in the order of the prompt.
    pub fn edits(&self, host: &impl Host, parts: &[Part], budget: &Budget) -> Vec<Edit> {
        if budget.prompt_tokens <= budget.keep_tokens || budget.prompt_tokens < self.when.least_prompt_tokens
        {
            return Vec::new();
        }
        let mut plan = self.plan(host, parts, budget);
        plan.carry_out();
        plan.drafts.iter().flat_map(edits_of).collect()
    }

    fn plan<'a, 't, H: Host>(&'a self, host: &'a H, parts: &'t [Part], budget: &Budget) -> Plan<'a, 't, H> {
        let bytes: usize = parts.iter().map(|part| part.message.text.len()).sum();
        let tokens_per_byte = f64::from(budget.prompt_tokens) / bytes.max(1) as f64;
        let last_user = parts.iter().rposition(|part| part.message.role == Role::User);
        let drafts =
            parts.iter().enumerate().filter(|(at, part)| Some(*at) != last_user && self.may_edit(part));
        Plan {
            host,
            score: &self.score,
            weight: self.weight,
            drafts: drafts.map(|(at, part)| Draft::new(&self.lexicon, at, part, tokens_per_byte)).collect(),
            needed: f64::from(budget.prompt_tokens - budget.keep_tokens),
            held: Held::new(parts),
            costs: Costs { tokens_per_byte, us_per_token: f64::from(budget.us_per_token) },
        }
    }

    fn may_edit(&self, part: &Part) -> bool {
        let role = match part.message.role {
            Role::User => EditedRole::User,
            Role::Assistant => EditedRole::Assistant,
            Role::System | Role::Tool => return false,
        };
        self.when.roles.contains(&role)
    }
}

fn edits_of(draft: &Draft<'_>) -> Vec<Edit> {
    let message = u32::try_from(draft.message).unwrap_or(u32::MAX);
    let edit = |at| Edit { message, at: Span::new(at), replacement: String::new() };
    draft.deletions().into_iter().map(edit).collect()
}

jackfield_sdk::export_compressor!(CompressSalient);

#[cfg(test)]
mod tests {
    use super::*;
    use jackfield_sdk::Message;
    use std::cell::Cell;

    /// Counts what it is asked.
    #[derive(Default)]
    struct Counting(Cell<usize>);

    impl Host for Counting {
        fn count(&self, text: &str) -> u32 {
            self.0.set(self.0.get() + text.len());
            text.split(' ').count() as u32
        }

        fn score(&self, text: &str) -> Result<Vec<Scored>, String> {
            self.0.set(self.0.get() + text.len());
            let ends = text.match_indices(' ').map(|(at, _)| at as u32);
            Ok(ends.map(|end| Scored { end, surprisal_bits: (end % 13) as f32 }).collect())
        }
    }

    /// Looks at glyphs, and bytes that the host was given.
    fn work(policy: &CompressSalient, text: &str, keep: f64) -> usize {
        let part = |text: &str| Part {
            message: Message { role: Role::User, text: text.into() },
            protected: vec![],
            cached_bytes: 0,
        };
        let parts = [part(text), part("so?")];
        let prompt_tokens = text.split(' ').count() as u32 + 1;
        let keep_tokens = (f64::from(prompt_tokens) * keep) as u32;
        let host = Counting::default();
        let mut plan = policy.plan(&host, &parts, &Budget { keep_tokens, prompt_tokens, us_per_token: 1.0 });
        plan.carry_out();
        plan.drafts.iter().map(Draft::looks).sum::<usize>() + host.0.get()
    }

    #[test]
    fn the_work_grows_no_faster_than_the_text() {
        let rules: Config = toml::from_str(include_str!("../rules.toml")).expect("it fits");
        let policy = CompressSalient::configure(rules).expect("valid");
        let nasty = [
            "the blue box of the house ",
            "那个订单的颜色",
            "' 'a ",
            "“ ",
            "{ ",
            "a,b,c,",
            "not the ",
            "不",
            "一",
            "3点",
            "第一",
            "http:// ",
            "(((",
            ", ",
            "\n- the",
            "姓",
            "``",
            "a-",
            "a'",
            "um, ",
            "先生",
            "`` ` ",
        ];
        for piece in nasty {
            for keep in [0.0, 0.5, 0.9] {
                let once = work(&policy, &piece.repeat(400), keep);
                let eight = work(&policy, &piece.repeat(3200), keep);
                assert!(
                    eight > 0 && eight < once * 12,
                    "{piece:?} to {keep}: {once} looks, and {eight} at eight times the text"
                );
            }
        }
    }
}
