//! Refuses what is too long and answers what has a fixed answer; everything else runs as the host would have it.

use jackfield_sdk::routing::{Decision, Refusal, Request, Router, Target};
use jackfield_sdk::text::Folded;
use jackfield_sdk::{Description, Policy, Turn};

/// The shape of `rules.toml`.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Longer prompts are refused.
    max_prompt_tokens: Option<u32>,
    /// Tried in order.
    #[serde(default)]
    reply: Vec<Reply>,
}

/// A word, and what is answered to it.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reply {
    word: String,
    text: String,
}

/// The policy: words folded once, texts beside them.
pub struct FixedReplies {
    max_prompt_tokens: u32,
    replies: Vec<(Folded, String)>,
}

impl Policy for FixedReplies {
    type Config = Config;

    fn describe() -> Description {
        Description::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"))
            .with_config_schema(include_str!("../config.schema.json"))
    }

    fn configure(config: Config) -> Result<Self, String> {
        let replies = config.reply.into_iter().map(|reply| (Folded::new(&reply.word), reply.text)).collect();
        Ok(FixedReplies { max_prompt_tokens: config.max_prompt_tokens.unwrap_or(u32::MAX), replies })
    }
}

impl Router for FixedReplies {
    fn route(&self, _turn: &Turn, request: &Request, fleet: &[Target]) -> Result<Decision, String> {
        let (tokens, max) = (request.prompt_tokens, self.max_prompt_tokens);
        if tokens > max {
            let reason = format!("the prompt has {tokens} tokens, more than {max}");
            return Ok(Decision::Refuse(Refusal { status: 413, reason }));
        }
        let asked = Folded::new(&request.last_user_text);
        if let Some((_, text)) = self.replies.iter().find(|(word, _)| asked.find(word).is_some()) {
            return Ok(Decision::Answer(text.clone()));
        }
        let target = fleet.first().ok_or("the fleet is empty")?;
        Ok(Decision::run_on(target))
    }
}

jackfield_sdk::export_router!(FixedReplies);
