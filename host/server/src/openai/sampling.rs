//! What chat and raw completions have in common: choices, length, sampling, stops, streaming.

use std::collections::BTreeMap;

use serde_json::Value;

use super::fields::{Fields, Range, array, integer, invalid, number, text, wrong_type};
use crate::error::ApiError;

/// Answers that one request may ask for.
pub const MOST_CHOICES: u32 = 8;
/// Stop strings and stop tokens that one request may name, each.
pub const MOST_STOPS: usize = 16;
/// Bytes of one stop string.
pub const MOST_STOP_BYTES: usize = 1024;
/// Alternatives that may be reported per token.
pub const MOST_ALTERNATIVES: u8 = 20;
/// Entries of `logit_bias`.
pub const MOST_BIASES: usize = 1024;
/// Below this temperature the most likely token is taken: the division would leave nothing else a chance.
const GREEDY_BELOW: f64 = 1e-4;

/// What decoding has to know of the model.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// Token ids are below this.
    pub vocab: usize,
}

/// The validated part that both endpoints share.
#[derive(Debug, Clone, PartialEq)]
pub struct Common {
    /// The model asked for, as written.
    pub model: String,
    /// Answers wanted, 1 to [`MOST_CHOICES`].
    pub n: u32,
    /// Whether to answer as server-sent events.
    pub stream: bool,
    /// Whether a stream ends with a usage chunk.
    pub include_usage: bool,
    /// How tokens are chosen.
    pub sampling: Sampling,
    /// Strings that end an answer.
    pub stop: Vec<String>,
    /// Token ids that end an answer.
    pub stop_tokens: Vec<u32>,
    /// The dialog this turn belongs to, unchecked but for its type.
    pub session: Option<String>,
    /// Whether this turn goes back to an earlier topic of its dialog; none leaves that to the host.
    pub recall: Option<Recall>,
    /// Up to 16 pairs that the caller attached.
    pub metadata: BTreeMap<String, String>,
}

/// What a request says of going back to an earlier topic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Recall {
    /// It does not.
    Never,
    /// To what the message speaks of.
    Said,
    /// To this.
    About(String),
}

/// Sampling as a request gives it, in range.
#[derive(Debug, Clone, PartialEq)]
pub struct Sampling {
    /// 0 to 2; 0 takes the most likely token.
    pub temperature: f32,
    /// More than 0, at most 1.
    pub top_p: f32,
    /// 0 is off.
    pub top_k: u32,
    /// 0 to 1; 0 is off.
    pub min_p: f32,
    /// Any 64 bits; none draws a fresh one.
    pub seed: Option<u64>,
    /// -2 to 2.
    pub presence_penalty: f32,
    /// -2 to 2.
    pub frequency_penalty: f32,
    /// 0.1 to 10; 1 is off.
    pub repetition_penalty: f32,
    /// Token id and what to add to its logit, -100 to 100.
    pub logit_bias: Vec<(u32, f32)>,
    /// Go on past the model's end-of-text token.
    pub ignore_end: bool,
}

pub(super) fn common(fields: &Fields<'_>, bounds: Bounds) -> Result<Common, ApiError> {
    let model = text(fields.required("model")?, "model")?.to_owned();
    let n = fields.integer("n", 1..=MOST_CHOICES)?.unwrap_or(1);
    let stream = fields.flag("stream")?.unwrap_or(false);
    for name in ["user", "safety_identifier", "prompt_cache_key", "prompt_cache_retention"] {
        fields.text(name)?;
    }
    Ok(Common {
        model,
        n,
        stream,
        include_usage: include_usage(fields, stream)?,
        sampling: sampling(fields, bounds)?,
        stop: stops(fields)?,
        stop_tokens: stop_tokens(fields, bounds)?,
        session: fields.text("session")?.map(str::to_owned),
        recall: recall(fields)?,
        metadata: metadata(fields)?,
    })
}

/// `true`, `false`, or what to go back to.
fn recall(fields: &Fields<'_>) -> Result<Option<Recall>, ApiError> {
    match fields.get("recall") {
        None => Ok(None),
        Some(Value::Bool(false)) => Ok(Some(Recall::Never)),
        Some(Value::Bool(true)) => Ok(Some(Recall::Said)),
        Some(Value::String(text)) if text.trim().is_empty() => Err(invalid("recall", "is an empty text")),
        Some(Value::String(text)) => Ok(Some(Recall::About(text.clone()))),
        Some(other) => Err(wrong_type("recall", "true, false or a string", other)),
    }
}

fn include_usage(fields: &Fields<'_>, stream: bool) -> Result<bool, ApiError> {
    let Some(options) = fields.object("stream_options")? else { return Ok(false) };
    if !stream {
        return Err(invalid("stream_options", "is only allowed with `stream: true`"));
    }
    if options.flag("include_obfuscation")? == Some(true) {
        return Err(ApiError::unsupported("stream_options.include_obfuscation"));
    }
    Ok(options.flag("include_usage")?.unwrap_or(false))
}

fn sampling(fields: &Fields<'_>, bounds: Bounds) -> Result<Sampling, ApiError> {
    const PENALTY: Range = Range::closed(-2.0, 2.0);
    let or =
        |name, range: &Range, default| Ok::<f64, ApiError>(fields.number(name, range)?.unwrap_or(default));
    let temperature = or("temperature", &Range::closed(0.0, 2.0), 1.0)?;
    let top_p = or("top_p", &Range::above(0.0, 1.0), 1.0)?;
    Ok(Sampling {
        temperature: if temperature < GREEDY_BELOW { 0.0 } else { temperature as f32 },
        top_p: (top_p as f32).max(f32::MIN_POSITIVE),
        top_k: top_k(fields)?,
        min_p: or("min_p", &Range::closed(0.0, 1.0), 0.0)? as f32,
        seed: fields.integer("seed", i64::MIN..=i64::MAX)?.map(i64::cast_unsigned),
        presence_penalty: or("presence_penalty", &PENALTY, 0.0)? as f32,
        frequency_penalty: or("frequency_penalty", &PENALTY, 0.0)? as f32,
        repetition_penalty: or("repetition_penalty", &Range::closed(0.1, 10.0), 1.0)? as f32,
        logit_bias: logit_bias(fields, bounds)?,
        ignore_end: fields.flag("ignore_eos")?.unwrap_or(false),
    })
}

/// Both 0 and -1 turn it off: clients were written against servers of either habit.
fn top_k(fields: &Fields<'_>) -> Result<u32, ApiError> {
    let wanted = fields.integer("top_k", -1..=i64::from(i32::MAX))?.unwrap_or(0);
    Ok(u32::try_from(wanted).unwrap_or(0))
}

fn logit_bias(fields: &Fields<'_>, bounds: Bounds) -> Result<Vec<(u32, f32)>, ApiError> {
    let Some(object) = fields.object("logit_bias")? else { return Ok(Vec::new()) };
    let mut biases = Vec::new();
    for (key, value) in object.entries() {
        let path = object.path(&crate::error::shorten(key));
        let id = token_key(key).filter(|id| (*id as usize) < bounds.vocab).ok_or_else(|| {
            invalid(&path, format!("is not a token id; keys are whole numbers below {}", bounds.vocab))
        })?;
        if biases.len() == MOST_BIASES {
            return Err(invalid("logit_bias", format!("has more than {MOST_BIASES} entries")));
        }
        biases.push((id, number(value, &path, &Range::closed(-100.0, 100.0))? as f32));
    }
    biases.sort_unstable_by_key(|(id, _)| *id);
    Ok(biases)
}

/// Digits only, without leading zeros, so that no two keys of one object mean the same token.
fn token_key(key: &str) -> Option<u32> {
    let plain = key.bytes().all(|byte| byte.is_ascii_digit()) && (key.len() == 1 || !key.starts_with('0'));
    plain.then(|| key.parse().ok()).flatten()
}

fn stops(fields: &Fields<'_>) -> Result<Vec<String>, ApiError> {
    let values = match fields.get("stop") {
        None => return Ok(Vec::new()),
        Some(Value::String(one)) => vec![one.as_str()],
        Some(many) => array(many, "stop")?
            .iter()
            .enumerate()
            .map(|(index, value)| text(value, &format!("stop[{index}]")))
            .collect::<Result<_, _>>()?,
    };
    if values.len() > MOST_STOPS {
        return Err(invalid(
            "stop",
            format!("has {} strings; at most {MOST_STOPS} are allowed", values.len()),
        ));
    }
    if values.iter().any(|stop| stop.is_empty()) {
        return Err(invalid("stop", "has an empty string, which would end every answer at once"));
    }
    if values.iter().any(|stop| stop.len() > MOST_STOP_BYTES) {
        return Err(invalid("stop", format!("has a string of more than {MOST_STOP_BYTES} bytes")));
    }
    Ok(values.into_iter().map(str::to_owned).collect())
}

fn stop_tokens(fields: &Fields<'_>, bounds: Bounds) -> Result<Vec<u32>, ApiError> {
    let values = fields.array("stop_token_ids")?.unwrap_or_default();
    if values.len() > MOST_STOPS {
        return Err(invalid("stop_token_ids", format!("has more than {MOST_STOPS} ids")));
    }
    token_ids(values, "stop_token_ids", bounds)
}

/// An array of token ids, each below the size of the vocabulary.
pub(super) fn token_ids(values: &[Value], path: &str, bounds: Bounds) -> Result<Vec<u32>, ApiError> {
    let last = u32::try_from(bounds.vocab.saturating_sub(1)).unwrap_or(u32::MAX);
    let id = |(index, value)| integer(value, &format!("{path}[{index}]"), 0..=last);
    values.iter().enumerate().map(id).collect()
}

/// Up to 16 pairs; keys up to 64 characters, values up to 512.
fn metadata(fields: &Fields<'_>) -> Result<BTreeMap<String, String>, ApiError> {
    let Some(object) = fields.object("metadata")? else { return Ok(BTreeMap::new()) };
    let mut pairs = BTreeMap::new();
    for (key, value) in object.entries() {
        let path = object.path(&crate::error::shorten(key));
        let value = text(value, &path)?;
        if key.chars().count() > 64 || value.chars().count() > 512 {
            return Err(invalid(&path, "is too long; keys have at most 64 characters, values 512"));
        }
        if pairs.len() == 16 {
            return Err(invalid("metadata", "has more than 16 pairs"));
        }
        pairs.insert(key.clone(), value.to_owned());
    }
    Ok(pairs)
}
