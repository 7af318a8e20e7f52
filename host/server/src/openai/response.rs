//! What the API answers with: whole bodies and stream chunks, for chat and for raw completions.

use serde_json::{Value, json};

/// Which endpoint's shapes to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    Chat,
    Completion,
}

/// What is the same in every chunk of one answer.
#[derive(Debug, Clone)]
pub(crate) struct Head {
    pub(crate) dialect: Dialect,
    /// `chatcmpl-…` or `cmpl-…`.
    pub(crate) id: String,
    pub(crate) created_unix_s: u64,
    pub(crate) model: String,
    pub(crate) fingerprint: String,
    /// Log-probabilities were asked for, with this many alternatives.
    pub(crate) logprobs: Option<u8>,
}

/// Why an answer ended, as the API says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reason {
    Stop,
    Length,
    ContentFilter,
}

impl Reason {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Reason::Stop => "stop",
            Reason::Length => "length",
            Reason::ContentFilter => "content_filter",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Usage {
    pub(crate) prompt_tokens: usize,
    pub(crate) completion_tokens: usize,
    pub(crate) cached_tokens: usize,
}

/// A token that may be shown, with its alternatives, best first.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ShownToken {
    pub(crate) bytes: Vec<u8>,
    /// Where its text begins in the answer, in characters.
    pub(crate) offset_chars: usize,
    pub(crate) logprob: f32,
    pub(crate) top: Vec<(Vec<u8>, f32)>,
}

/// One complete answer.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Choice {
    pub(crate) text: String,
    pub(crate) tokens: Vec<ShownToken>,
    pub(crate) reason: Option<Reason>,
}

impl Head {
    /// The body of an answer that is not streamed.
    pub(crate) fn whole(&self, choices: &[Choice], usage: Usage) -> Value {
        let object = match self.dialect {
            Dialect::Chat => "chat.completion",
            Dialect::Completion => "text_completion",
        };
        let choices =
            choices.iter().enumerate().map(|(index, choice)| self.whole_choice(index, choice)).collect();
        self.envelope(object, choices, Some(usage_body(usage)))
    }

    /// The first chunk of one choice: who speaks. Raw completions have none.
    pub(crate) fn opening(&self, index: u32, with_usage: bool) -> Option<Value> {
        let delta = json!({"role": "assistant", "content": "", "refusal": null});
        match self.dialect {
            Dialect::Chat => Some(self.chunk(
                json!({
                    "index": index, "delta": delta, "logprobs": null, "finish_reason": null
                }),
                with_usage,
            )),
            Dialect::Completion => None,
        }
    }

    /// More text of one choice.
    pub(crate) fn delta(&self, index: u32, text: &str, tokens: &[ShownToken], with_usage: bool) -> Value {
        let logprobs = self.logprobs_body(tokens);
        let choice = match self.dialect {
            Dialect::Chat => json!({
                "index": index, "delta": {"content": text}, "logprobs": logprobs, "finish_reason": null
            }),
            Dialect::Completion => json!({
                "index": index, "text": text, "logprobs": logprobs, "finish_reason": null
            }),
        };
        self.chunk(choice, with_usage)
    }

    /// The last chunk of one choice.
    pub(crate) fn finish(&self, index: u32, reason: Reason, with_usage: bool) -> Value {
        let reason = reason.as_str();
        let choice = match self.dialect {
            Dialect::Chat => json!({"index": index, "delta": {}, "logprobs": null, "finish_reason": reason}),
            Dialect::Completion => {
                json!({"index": index, "text": "", "logprobs": null, "finish_reason": reason})
            }
        };
        self.chunk(choice, with_usage)
    }

    /// The chunk after all choices, when usage was asked for.
    pub(crate) fn usage(&self, usage: Usage) -> Value {
        self.envelope(self.chunk_object(), Vec::new(), Some(usage_body(usage)))
    }

    fn chunk_object(&self) -> &'static str {
        match self.dialect {
            Dialect::Chat => "chat.completion.chunk",
            Dialect::Completion => "text_completion",
        }
    }

    /// When usage is to come, every chunk before it says `"usage": null`, as strict clients expect.
    fn chunk(&self, choice: Value, with_usage: bool) -> Value {
        self.envelope(self.chunk_object(), vec![choice], with_usage.then_some(Value::Null))
    }

    fn envelope(&self, object: &str, choices: Vec<Value>, usage: Option<Value>) -> Value {
        let mut body = json!({
            "id": self.id,
            "object": object,
            "created": self.created_unix_s,
            "model": self.model,
            "system_fingerprint": self.fingerprint,
            "choices": choices,
        });
        if let Some(usage) = usage {
            body["usage"] = usage;
        }
        body
    }

    fn whole_choice(&self, index: usize, choice: &Choice) -> Value {
        let logprobs = self.logprobs_body(&choice.tokens);
        let reason = choice.reason.map(Reason::as_str);
        match self.dialect {
            Dialect::Chat => json!({
                "index": index,
                "message": {"role": "assistant", "content": choice.text, "refusal": null, "annotations": []},
                "logprobs": logprobs,
                "finish_reason": reason,
            }),
            Dialect::Completion => json!({
                "index": index, "text": choice.text, "logprobs": logprobs, "finish_reason": reason
            }),
        }
    }

    fn logprobs_body(&self, tokens: &[ShownToken]) -> Value {
        match (self.logprobs, self.dialect) {
            (None, _) => Value::Null,
            (Some(_), Dialect::Chat) => {
                json!({"content": tokens.iter().map(chat_logprob).collect::<Vec<_>>(), "refusal": null})
            }
            (Some(_), Dialect::Completion) => legacy_logprobs(tokens),
        }
    }
}

fn usage_body(usage: Usage) -> Value {
    json!({
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "total_tokens": usage.prompt_tokens + usage.completion_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cached_tokens},
    })
}

/// JSON has no infinity; a token without any probability is given the least that clients know.
fn logprob(value: f32) -> Value {
    if value.is_finite() { json!(value) } else { json!(-9999.0) }
}

fn chat_logprob(token: &ShownToken) -> Value {
    let top: Vec<Value> = token.top.iter().map(|(bytes, value)| one_logprob(bytes, *value)).collect();
    let mut body = one_logprob(&token.bytes, token.logprob);
    body["top_logprobs"] = json!(top);
    body
}

fn one_logprob(bytes: &[u8], value: f32) -> Value {
    json!({"token": String::from_utf8_lossy(bytes), "logprob": logprob(value), "bytes": bytes})
}

fn legacy_logprobs(tokens: &[ShownToken]) -> Value {
    let texts: Vec<_> = tokens.iter().map(|token| String::from_utf8_lossy(&token.bytes)).collect();
    let top: Vec<Value> = tokens
        .iter()
        .map(|token| {
            let pairs = token.top.iter().map(|(b, v)| (String::from_utf8_lossy(b).into_owned(), logprob(*v)));
            Value::Object(pairs.collect())
        })
        .collect();
    json!({
        "tokens": texts,
        "token_logprobs": tokens.iter().map(|token| logprob(token.logprob)).collect::<Vec<_>>(),
        "top_logprobs": top,
        "text_offset": tokens.iter().map(|token| token.offset_chars).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(dialect: Dialect) -> Head {
        Head {
            dialect,
            id: "x-1".into(),
            created_unix_s: 7,
            model: "m".into(),
            fingerprint: "fp".into(),
            logprobs: None,
        }
    }

    #[test]
    fn a_usage_chunk_has_no_choices_and_the_others_null_usage() {
        let head = head(Dialect::Chat);
        let usage = Usage { prompt_tokens: 3, completion_tokens: 4, cached_tokens: 2 };
        let chunk = head.usage(usage);
        assert_eq!(chunk["choices"], json!([]));
        assert_eq!(chunk["usage"]["total_tokens"], 7);
        assert_eq!(chunk["usage"]["prompt_tokens_details"]["cached_tokens"], 2);
        assert_eq!(head.delta(0, "a", &[], true).get("usage"), Some(&Value::Null));
        assert_eq!(head.delta(0, "a", &[], false).get("usage"), None);
    }

    #[test]
    fn only_the_last_chunk_of_a_choice_has_a_reason() {
        for dialect in [Dialect::Chat, Dialect::Completion] {
            let head = head(dialect);
            assert_eq!(head.delta(0, "a", &[], false)["choices"][0]["finish_reason"], Value::Null);
            assert_eq!(head.finish(2, Reason::Length, false)["choices"][0]["finish_reason"], "length");
            assert_eq!(head.finish(2, Reason::Length, false)["choices"][0]["index"], 2);
        }
    }

    #[test]
    fn chat_logprobs_have_bytes_and_alternatives() {
        let mut head = head(Dialect::Chat);
        head.logprobs = Some(1);
        let token = ShownToken {
            bytes: vec![0xe9, 0xbe],
            offset_chars: 0,
            logprob: f32::NEG_INFINITY,
            top: vec![(b"a".to_vec(), -0.5)],
        };
        let content = &head.delta(0, "", &[token], false)["choices"][0]["logprobs"]["content"][0];
        assert_eq!(content["bytes"], json!([0xe9, 0xbe]));
        assert_eq!(content["logprob"], -9999.0);
        assert_eq!(content["top_logprobs"][0], json!({"token": "a", "logprob": -0.5, "bytes": [97]}));
    }

    #[test]
    fn legacy_logprobs_are_columns() {
        let mut head = head(Dialect::Completion);
        head.logprobs = Some(0);
        let token = ShownToken { bytes: b"hi".to_vec(), offset_chars: 4, logprob: -0.25, top: Vec::new() };
        let choice = Choice { text: "hi".into(), tokens: vec![token], reason: Some(Reason::Stop) };
        let body = head.whole(&[choice], Usage::default());
        assert_eq!(
            body["choices"][0]["logprobs"],
            json!({"tokens": ["hi"], "token_logprobs": [-0.25], "top_logprobs": [{}], "text_offset": [4]})
        );
    }
}
