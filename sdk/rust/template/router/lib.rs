//! Answers what has a fixed answer; everything else runs as the host would have it.

use jackfield_sdk::routing::{Decision, Request, Router, Target};
use jackfield_sdk::text::Folded;
use jackfield_sdk::{Description, Policy, Turn};

/// The shape of `rules.toml`.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
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
pub struct FixedReplies(Vec<(Folded, String)>);

impl Policy for FixedReplies {
    type Config = Config;

    fn describe() -> Description {
        Description::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"))
    }

    fn configure(config: Config) -> Result<Self, String> {
        let replies = config.reply.into_iter().map(|reply| (Folded::new(&reply.word), reply.text));
        Ok(FixedReplies(replies.collect()))
    }
}

impl Router for FixedReplies {
    fn route(&self, _turn: &Turn, request: &Request, fleet: &[Target]) -> Result<Decision, String> {
        let asked = Folded::new(&request.last_user_text);
        if let Some((_, text)) = self.0.iter().find(|(word, _)| asked.find(word).is_some()) {
            return Ok(Decision::Answer(text.clone()));
        }
        let target = fleet.first().ok_or("the fleet is empty")?;
        Ok(Decision::run_on(target))
    }
}

jackfield_sdk::export_router!(FixedReplies);
