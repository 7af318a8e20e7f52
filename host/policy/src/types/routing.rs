//! What a router is given and answers.

use serde::{Deserialize, Serialize};

use super::{Field, Slot};

/// What is wanted of a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Text.
    Generate,
    /// A label, with early exit where the model has one.
    Classify,
    /// A vector.
    Embed,
}

/// A place where the turn could run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
pub struct Target {
    /// Unique in the fleet.
    pub model: String,
    /// What it can do.
    pub modes: Vec<Mode>,
    /// Requests waiting there.
    pub queue_depth: u32,
    /// KV blocks not in use.
    pub free_blocks: u32,
    /// Tokens of this prompt whose KV it holds.
    pub cached_tokens: u32,
    /// Median time to the first token, in milliseconds; 0 when not known.
    pub ttft_p50_ms: f32,
    /// Room to grow.
    pub attributes: Vec<Field>,
}

impl Default for Target {
    /// What a recorded case starts from: an idle target without a name, able to generate.
    fn default() -> Target {
        Target {
            model: String::new(),
            modes: vec![Mode::Generate],
            queue_depth: 0,
            free_blocks: 1000,
            cached_tokens: 0,
            ttft_p50_ms: 0.0,
            attributes: Vec::new(),
        }
    }
}

/// The request as it stands when it is routed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
pub struct RouteRequest {
    /// Length of the rendered prompt on the first target.
    pub prompt_tokens: u32,
    /// Number of messages.
    pub messages: u32,
    /// Text of the user's last message; empty when there is none.
    pub last_user_text: String,
    /// What is known of the dialog.
    pub slots: Vec<Slot>,
    /// The model named in the request.
    pub wanted_model: String,
    /// The client's limit on new tokens.
    pub max_tokens: Option<u32>,
    /// Room to grow.
    pub attributes: Vec<Field>,
}

/// Added to the logit of every token that a text begins with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bias {
    /// Not empty.
    pub text: String,
    /// -100 to 100.
    pub logit: f32,
}

/// What the answer must look like.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Grammar {
    /// A JSON Schema.
    JsonSchema(String),
    /// A regular expression.
    Regex(String),
    /// A Lark grammar.
    Lark(String),
}

/// Guidance of the sampler, run natively.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
pub struct Guidance {
    /// Texts that end the answer, beside the client's own.
    pub stop: Vec<String>,
    /// Logits to move.
    pub bias: Vec<Bias>,
    /// What the answer must look like.
    pub grammar: Option<Grammar>,
}

/// Where and how a turn runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Plan {
    /// The `model` of a target of the fleet.
    pub target: String,
    /// One that the target has.
    pub mode: Mode,
    /// The task, for models that have some.
    pub task: Option<String>,
    /// 0 is the most urgent.
    pub priority: u8,
    /// Give the turn up after this time.
    pub deadline_ms: Option<u32>,
    /// Upper bound on new tokens, beside the client's own.
    pub max_tokens: Option<u32>,
    /// Tokens a drafter may propose a step; none lets the host decide.
    pub draft_tokens: Option<u8>,
    /// Probability from which an early exit is taken.
    pub exit_threshold: Option<f32>,
    /// Share of the prompt's tokens to keep; none means no compression.
    pub compress_to: Option<f32>,
    /// Tokens and probabilities only.
    pub minimal_output: bool,
    /// Keep the KV at least so long, in seconds.
    pub keep_cache_s: Option<u32>,
    /// Guidance of the sampler.
    pub guidance: Option<Guidance>,
    /// Room to grow.
    #[serde(default)]
    pub attributes: Vec<Field>,
}

/// A refusal of the turn, as the client sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RefuseWith {
    /// HTTP status, 400 to 599.
    pub status: u16,
    /// Why.
    pub reason: String,
}

/// What a router decided.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Decision {
    /// Run so.
    Run(Plan),
    /// Do not run: this is the answer.
    Answer(String),
    /// Do not run: this is the refusal.
    Refuse(RefuseWith),
}
