//! Answers of the API, streamed or whole, in one form; and what every stream must keep to.

use serde_json::{Value, json};

use crate::http::{Client, Events};

/// Chat.
pub const CHAT: &str = "/v1/chat/completions";
/// Raw completions.
pub const RAW: &str = "/v1/completions";

/// One of an answer's choices.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Choice {
    /// Its text.
    pub text: String,
    /// Its `finish_reason`.
    pub finish: String,
    /// One entry a token: as chat has them, or `[token, logprob, alternatives]` of a raw completion. Empty when not asked for.
    pub logprobs: Vec<Value>,
}

/// An answer, whichever way it came.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// In order of `index`.
    pub choices: Vec<Choice>,
    /// `prompt_tokens`.
    pub prompt_tokens: u64,
    /// `completion_tokens`.
    pub completion_tokens: u64,
}

/// A streamed answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Streamed {
    /// What its chunks add up to.
    pub answer: Answer,
    /// The text of each chunk that had some, with the choice that it was for.
    pub deltas: Vec<(usize, String)>,
}

/// A greedy chat of one user message, changed by `extra`.
pub fn chat(content: &str, extra: Value) -> Value {
    let body =
        json!({"model": "default", "temperature": 0, "messages": [{"role": "user", "content": content}]});
    with(body, extra)
}

/// A greedy raw completion, changed by `extra`.
pub fn raw(prompt: &str, extra: Value) -> Value {
    with(json!({"model": "default", "temperature": 0, "prompt": prompt}), extra)
}

/// An object with more fields, or others.
pub fn with(mut body: Value, extra: Value) -> Value {
    let (Value::Object(fields), Value::Object(extra)) = (&mut body, extra) else { panic!("two objects") };
    fields.extend(extra);
    body
}

/// Asks for a whole answer; panics when it is not a 200.
pub fn whole(api: &Client, path: &str, body: &Value) -> Answer {
    let reply = api.post(path, body);
    assert_eq!(reply.status, 200, "{body}: {}", reply.text());
    Answer::of_body(path, &reply.json())
}

/// Asks for a stream and reads it to its end; panics when it breaks a rule of streams.
pub fn streamed(api: &Client, path: &str, body: &Value) -> Streamed {
    read(path, open(api, path, body))
}

/// Opens a stream that ends with its usage.
pub fn open(api: &Client, path: &str, body: &Value) -> Events {
    let options = json!({"stream": true, "stream_options": {"include_usage": true}});
    let events = api.stream(path, &with(body.clone(), options));
    assert_eq!(events.status, 200, "{body}");
    events
}

/// Asks for the same twice, whole and streamed; panics when the two are not the same answer.
pub fn twin(api: &Client, path: &str, body: &Value) -> Streamed {
    let whole = whole(api, path, body);
    let streamed = streamed(api, path, body);
    assert_eq!(streamed.answer, whole, "streamed (left) and whole differ for {body}");
    streamed
}

impl Answer {
    /// From a body that came whole.
    pub fn of_body(path: &str, body: &Value) -> Answer {
        let choices = body["choices"].as_array().expect("choices");
        let choice = |(index, choice): (usize, &Value)| {
            assert_eq!(choice["index"], index, "{body}");
            let text = if path == CHAT { &choice["message"]["content"] } else { &choice["text"] };
            Choice {
                text: text.as_str().expect("a text").to_owned(),
                finish: choice["finish_reason"].as_str().expect("a reason").to_owned(),
                logprobs: logprobs(choice),
            }
        };
        Answer::new(choices.iter().enumerate().map(choice).collect(), &body["usage"])
    }

    fn new(choices: Vec<Choice>, usage: &Value) -> Answer {
        let count = |name: &str| usage[name].as_u64().unwrap_or_else(|| panic!("{name} in {usage}"));
        let answer = Answer {
            choices,
            prompt_tokens: count("prompt_tokens"),
            completion_tokens: count("completion_tokens"),
        };
        assert_eq!(count("total_tokens"), answer.prompt_tokens + answer.completion_tokens);
        answer
    }

    /// The text of the first choice.
    pub fn text(&self) -> &str {
        &self.choices[0].text
    }

    /// The `finish_reason` of the first choice.
    pub fn finish(&self) -> &str {
        &self.choices[0].finish
    }
}

/// Reads a stream that ends with its usage to its end. Panics unless each choice has exactly one reason, in its last chunk,
/// and the usage comes alone, after all of them.
pub fn read(path: &str, events: Events) -> Streamed {
    let mut chunks = events.rest();
    let last = chunks.pop().expect("a chunk of usage");
    assert_eq!(last["choices"], json!([]), "usage comes alone");
    let mut choices: Vec<Choice> = Vec::new();
    let mut deltas = Vec::new();
    for chunk in &chunks {
        assert_eq!(chunk.get("usage"), Some(&Value::Null), "usage comes last: {chunk}");
        assert_eq!(chunk["id"], last["id"]);
        let [choice] = chunk["choices"].as_array().expect("choices").as_slice() else { panic!("{chunk}") };
        let index = choice["index"].as_u64().expect("an index") as usize;
        choices.resize_with(choices.len().max(index + 1), Choice::default);
        let so_far = &mut choices[index];
        assert_eq!(so_far.finish, "", "nothing follows a reason: {chunk}");
        let text = if path == CHAT { &choice["delta"]["content"] } else { &choice["text"] };
        let text = text.as_str().unwrap_or_default();
        if !text.is_empty() {
            so_far.text += text;
            deltas.push((index, text.to_owned()));
        }
        so_far.logprobs.extend(logprobs(choice));
        match &choice["finish_reason"] {
            Value::Null => {}
            Value::String(reason) if !reason.is_empty() => so_far.finish.clone_from(reason),
            other => panic!("{other} is no reason"),
        }
    }
    assert!(choices.iter().all(|choice| !choice.finish.is_empty()), "a choice has no end: {choices:?}");
    Streamed { answer: Answer::new(choices, &last["usage"]), deltas }
}

fn logprobs(choice: &Value) -> Vec<Value> {
    let logprobs = &choice["logprobs"];
    if let Some(content) = logprobs["content"].as_array() {
        return content.clone();
    }
    let column = |name: &str| logprobs[name].as_array().cloned().unwrap_or_default();
    let rows = column("tokens").into_iter().zip(column("token_logprobs")).zip(column("top_logprobs"));
    rows.map(|((token, logprob), top)| json!([token, logprob, top])).collect()
}
