//! From a request and a plan to a job for the engine.

use std::time::Duration;

use jackfield_engine::{Engine, InvalidJob, Job, Sampling, SubmitError};
use jackfield_model::Tokenizer;
use jackfield_policy::{Bias, Plan};

use super::ask::Ask;
use crate::error::ApiError;

/// What a router's absence means.
pub(crate) const DEFAULT_PRIORITY: u8 = 4;

/// What the engine needs to know beside the request.
pub(crate) struct Needs<'a> {
    pub(crate) engine: &'a Engine,
    pub(crate) ask: &'a Ask,
    pub(crate) plan: Option<&'a Plan>,
    pub(crate) salt: [u8; 32],
    /// An output filter wants to know how likely each token was.
    pub(crate) probabilities: bool,
    /// For how long its blocks are to be kept, once it is done.
    pub(crate) keep_for: Option<Duration>,
}

/// Puts a job together.
///
/// # Errors
/// 400 `context_length_exceeded` when prompt and answer do not fit.
pub(crate) fn job(needs: &Needs<'_>, prompt: Vec<u32>) -> Result<Job, ApiError> {
    let (ask, plan) = (needs.ask, needs.plan);
    let guidance = plan.and_then(|plan| plan.guidance.as_ref());
    let max_new_tokens = max_new_tokens(ask, plan, prompt.len(), needs.engine.model().context)?;
    let mut stop = ask.common.stop.clone();
    stop.extend(guidance.into_iter().flat_map(|guidance| guidance.stop.iter().cloned()));
    let bias = guidance.map_or(&[][..], |guidance| &guidance.bias);
    Ok(Job {
        prompt,
        n: ask.common.n,
        max_new_tokens,
        priority: plan.map_or(DEFAULT_PRIORITY, |plan| plan.priority),
        salt: needs.salt,
        sampling: sampling(needs, bias),
        stop,
        stop_tokens: ask.common.stop_tokens.clone(),
        keep_for: needs.keep_for,
    })
}

fn max_new_tokens(ask: &Ask, plan: Option<&Plan>, prompt: usize, context: usize) -> Result<usize, ApiError> {
    let room = context.saturating_sub(prompt);
    if room == 0 {
        let wanted = ask.max_tokens.unwrap_or(1);
        return Err(ApiError::context_overflow(prompt, wanted, context, ask.prompt_field()));
    }
    if let Some(wanted) = ask.max_tokens.filter(|wanted| *wanted > room) {
        return Err(ApiError::context_overflow(prompt, wanted, context, ask.max_tokens_field));
    }
    let planned = plan.and_then(|plan| plan.max_tokens).map_or(room, |most| most as usize);
    Ok(ask.max_tokens.or(ask.usual_tokens).unwrap_or(room).min(room).min(planned).max(1))
}

fn sampling(needs: &Needs<'_>, bias: &[Bias]) -> Sampling {
    let wanted = &needs.ask.common.sampling;
    let logprobs = needs.ask.logprobs.map(u32::from).or(needs.probabilities.then_some(0));
    Sampling {
        temperature: wanted.temperature,
        top_k: wanted.top_k,
        top_p: wanted.top_p,
        min_p: wanted.min_p,
        seed: wanted.seed,
        presence_penalty: wanted.presence_penalty,
        frequency_penalty: wanted.frequency_penalty,
        repetition_penalty: wanted.repetition_penalty,
        logit_bias: merged(&wanted.logit_bias, bias, needs.engine.tokenizer()),
        logprobs,
        ignore_end: wanted.ignore_end,
    }
}

/// The client's biases by token and the router's by text: the latter move every token that the text begins with.
fn merged(client: &[(u32, f32)], router: &[Bias], tokenizer: &Tokenizer) -> Vec<(u32, f32)> {
    let mut biases: std::collections::BTreeMap<u32, f32> = client.iter().copied().collect();
    let vocab = u32::try_from(tokenizer.vocab_size()).unwrap_or(u32::MAX);
    for bias in router {
        let text = bias.text.as_bytes();
        let begins = |id: &u32| {
            let token = tokenizer.decode_bytes(*id);
            !token.is_empty() && text.starts_with(token)
        };
        for id in (0..vocab).filter(begins) {
            *biases.entry(id).or_default() += bias.logit;
        }
    }
    biases.into_iter().map(|(id, logit)| (id, logit.clamp(-1000.0, 1000.0))).collect()
}

/// The trust group of a tenant for the prefix cache: derived here, never taken from a client.
pub(crate) fn salt(tenant: &str, fingerprint: &[u8; 32]) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new_derive_key("jackfield 2026 prefix cache trust group");
    hasher.update(fingerprint);
    hasher.update(tenant.as_bytes());
    *hasher.finalize().as_bytes()
}

pub(crate) fn submit_error(error: SubmitError, ask: &Ask) -> ApiError {
    match error {
        SubmitError::QueueFull { .. } => ApiError::overloaded("The engine's queue is full"),
        SubmitError::TooLong { prompt_tokens, limit } => {
            ApiError::context_overflow(prompt_tokens, ask.max_tokens.unwrap_or(1), limit, ask.prompt_field())
        }
        SubmitError::Invalid(InvalidJob { field, problem }) => {
            let param = request_field(field, ask);
            ApiError::invalid(param, "invalid_value", format!("`{param}` {problem}"))
        }
        SubmitError::Down => ApiError::unavailable("engine_down", "The engine is down"),
    }
}

/// What the client calls a field of a job.
fn request_field(field: &'static str, ask: &Ask) -> &'static str {
    match field {
        "prompt" => ask.prompt_field(),
        "max_new_tokens" => ask.max_tokens_field,
        same => same,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::openai::{Bounds, request};

    fn ask(extra: &str) -> Ask {
        let body = format!(r#"{{"model":"m","messages":[{{"role":"user","content":"x"}}]{extra}}}"#);
        Ask::from(request::chat(body.as_bytes(), Bounds { vocab: 10 }).unwrap())
    }

    fn raw(extra: &str) -> Ask {
        let body = format!(r#"{{"model":"m","prompt":"x"{extra}}}"#);
        Ask::from(request::completion(body.as_bytes(), Bounds { vocab: 10 }).unwrap())
    }

    #[test]
    fn a_raw_answer_has_few_tokens_unless_the_client_wants_more() {
        assert_eq!(max_new_tokens(&raw(""), None, 50, 100), Ok(16));
        assert_eq!(max_new_tokens(&raw(r#","max_tokens":40"#), None, 50, 100), Ok(40));
    }

    #[test]
    fn what_the_client_did_not_send_is_not_refused() {
        for room in 1..16 {
            assert_eq!(max_new_tokens(&raw(""), None, 100 - room, 100), Ok(room));
        }
        let error = max_new_tokens(&raw(""), None, 100, 100).unwrap_err();
        assert_eq!((error.code, error.param.as_deref()), ("context_length_exceeded", Some("prompt")));
        let error = max_new_tokens(&raw(r#","max_tokens":16"#), None, 90, 100).unwrap_err();
        assert_eq!((error.code, error.param.as_deref()), ("context_length_exceeded", Some("max_tokens")));
    }

    #[test]
    fn what_the_engine_refuses_is_named_as_the_client_named_it() {
        let newer = r#","max_completion_tokens":3"#;
        let invalid = |field| SubmitError::Invalid(InvalidJob { field, problem: "is wrong".into() });
        let cases = [
            (invalid("prompt"), raw(""), "prompt"),
            (invalid("prompt"), ask(""), "messages"),
            (invalid("max_new_tokens"), ask(newer), "max_completion_tokens"),
            (invalid("top_p"), ask(""), "top_p"),
        ];
        for (error, ask, param) in cases {
            let told = submit_error(error, &ask);
            assert_eq!((told.status.as_u16(), told.param.as_deref()), (400, Some(param)));
            assert_eq!(told.message, format!("`{param}` is wrong"));
        }
        for (ask, param) in [(raw(""), "prompt"), (ask(""), "messages")] {
            let told = submit_error(SubmitError::TooLong { prompt_tokens: 9, limit: 9 }, &ask);
            assert_eq!((told.code, told.param.as_deref()), ("context_length_exceeded", Some(param)));
        }
    }

    #[test]
    fn an_answer_has_the_room_that_is_left_unless_someone_wants_less() {
        assert_eq!(max_new_tokens(&ask(""), None, 90, 100), Ok(10));
        assert_eq!(max_new_tokens(&ask(r#","max_tokens":3"#), None, 90, 100), Ok(3));
        assert_eq!(max_new_tokens(&ask(r#","max_tokens":10"#), None, 90, 100), Ok(10));
    }

    #[test]
    fn what_does_not_fit_is_told_with_both_numbers() {
        let error = max_new_tokens(&ask(r#","max_tokens":11"#), None, 90, 100).unwrap_err();
        assert_eq!((error.code, error.param.as_deref()), ("context_length_exceeded", Some("max_tokens")));
        assert!(error.message.contains("100 tokens") && error.message.contains("90 in the prompt, 11"));
        let error = max_new_tokens(&ask(""), None, 100, 100).unwrap_err();
        assert_eq!((error.code, error.param.as_deref()), ("context_length_exceeded", Some("messages")));
    }

    #[test]
    fn tenants_and_models_never_share_a_salt() {
        let salts = [salt("a", &[0; 32]), salt("b", &[0; 32]), salt("a", &[1; 32])];
        assert_eq!(salts.iter().collect::<std::collections::HashSet<_>>().len(), 3);
        assert_eq!(salt("a", &[0; 32]), salts[0]);
    }
}
