//! `compress-courtesy`: drops what a prompt does not need to be understood (greetings, thanks, fillers, repeated
//! confirmations, vague tails) by the lists of `rules.toml`.
//!
//! What holds whatever the lists say:
//! - Every edit is a deletion of whole characters; what is left is the original with holes, so positions map back.
//! - Phrases are whole clauses, or stand at the edge of one. No phrase may hold a negation, a digit or a sign: such a rule
//!   file is refused.
//! - Code, quotations, JSON, URLs, quoted lines, protected spans, system and tool messages stay byte for byte, and the
//!   last message of the user too unless the rules allow its edges.
//! - A message never loses its last word. A prompt that is short, or within its budget already, is left alone.
//! - A prefix that the target has cached is not broken to save less than it costs.

pub mod clauses;
pub mod find;
pub mod guard;
pub mod phrases;
pub mod plan;
pub mod rules;
pub mod text;

use jackfield_sdk::compression::{Budget, Compressor, Part};
use jackfield_sdk::{Description, Edit, Policy, Role, Span, Turn};
use plan::{Candidate, Costs, broken_bytes, worthwhile};
use rules::{Config, EditedRole, LastMessage, Rules};
use std::ops::Range;

/// The policy, compiled from its rules.
pub struct CompressCourtesy {
    rules: Rules,
}

impl Policy for CompressCourtesy {
    type Config = Config;

    fn describe() -> Description {
        Description::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"))
            .with_config_schema(include_str!("../config.schema.json"))
    }

    fn configure(config: Config) -> Result<Self, String> {
        Ok(CompressCourtesy { rules: Rules::new(config)? })
    }
}

impl Compressor for CompressCourtesy {
    fn compress(&self, _turn: &Turn, parts: &[Part], budget: &Budget) -> Result<Vec<Edit>, String> {
        let when = &self.rules.when;
        if budget.prompt_tokens <= budget.keep_tokens || budget.prompt_tokens < when.least_prompt_tokens {
            return Ok(Vec::new());
        }
        let candidates = self.candidates(parts);
        let bytes: usize = parts.iter().map(|part| part.message.text.len()).sum();
        let costs = Costs {
            tokens_per_byte: f64::from(budget.prompt_tokens) / bytes.max(1) as f64,
            us_per_token: f64::from(budget.us_per_token),
            least_tokens: when.least_saved_tokens,
            least_us: when.least_saved_us,
        };
        let first = worthwhile(&candidates, &costs);
        Ok(candidates[first..].iter().map(edit).collect())
    }
}

impl CompressCourtesy {
    /// All deletions of a prompt, in its order.
    fn candidates(&self, parts: &[Part]) -> Vec<Candidate> {
        let last_user = parts.iter().rposition(|part| part.message.role == Role::User);
        let cached: Vec<usize> = parts.iter().map(|part| part.cached_bytes as usize).collect();
        let mut all = Vec::new();
        for (message, part) in parts.iter().enumerate() {
            let found = self.deletions(part, Some(message) == last_user);
            all.extend(found.into_iter().map(|at| {
                let breaks_bytes = broken_bytes(&cached, message, at.start);
                Candidate { message, at, breaks_bytes }
            }));
        }
        all
    }

    fn deletions(&self, part: &Part, last_user: bool) -> Vec<Range<usize>> {
        let role = match part.message.role {
            Role::User => EditedRole::User,
            Role::Assistant => EditedRole::Assistant,
            Role::System | Role::Tool => return Vec::new(),
        };
        if !self.rules.when.roles.contains(&role) {
            return Vec::new();
        }
        let protected: Vec<Range<usize>> = part.protected.iter().map(Span::range).collect();
        let text = &part.message.text;
        match (last_user, self.rules.when.last_user_message) {
            (true, LastMessage::Keep) => Vec::new(),
            (true, LastMessage::Edges) => find::edges(text, &find::deletions(&self.rules, text, &protected)),
            (false, _) => find::deletions(&self.rules, text, &protected),
        }
    }
}

fn edit(candidate: &Candidate) -> Edit {
    Edit {
        message: u32::try_from(candidate.message).unwrap_or(u32::MAX),
        at: Span::new(candidate.at.clone()),
        replacement: String::new(),
    }
}

jackfield_sdk::export_compressor!(CompressCourtesy);
