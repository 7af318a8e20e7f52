//! Every way to refuse a request, as rows: what is sent, and the field and code that come back.

use serde_json::{Value, json};

use super::super::messages::Role;
use super::*;

const BOUNDS: Bounds = Bounds { vocab: 100 };

fn chat_with(extra: Value) -> Result<ChatRequest, ApiError> {
    let mut body = json!({"model": "m", "messages": [{"role": "user", "content": "hi"}]});
    body.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
    chat(body.to_string().as_bytes(), BOUNDS)
}

fn completion_with(extra: Value) -> Result<CompletionRequest, ApiError> {
    let mut body = json!({"model": "m", "prompt": "hi"});
    body.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
    completion(body.to_string().as_bytes(), BOUNDS)
}

fn messages_of(messages: Value) -> Result<ChatRequest, ApiError> {
    chat_with(json!({"messages": messages}))
}

/// `param code` of a refusal.
fn verdict<T: std::fmt::Debug>(result: Result<T, ApiError>) -> String {
    let error = result.expect_err("this should have been refused");
    assert_eq!(error.status, 400);
    assert!(!error.message.is_empty());
    format!("{} {}", error.param.as_deref().unwrap_or("-"), error.code)
}

#[test]
fn a_minimal_chat_gets_the_documented_defaults() {
    let request = chat_with(json!({})).unwrap();
    assert_eq!((request.common.n, request.common.stream, request.max_tokens), (1, false, None));
    let sampling = &request.common.sampling;
    assert_eq!((sampling.temperature, sampling.top_p, sampling.top_k, sampling.min_p), (1.0, 1.0, 0, 0.0));
    assert_eq!((sampling.seed, sampling.repetition_penalty), (None, 1.0));
    assert_eq!(request.logprobs, None);
}

#[test]
fn values_out_of_range_or_of_the_wrong_type_name_their_field() {
    let rows = [
        (json!({"temperature": -1}), "temperature invalid_value"),
        (json!({"temperature": 2.1}), "temperature invalid_value"),
        (json!({"temperature": "1"}), "temperature invalid_type"),
        (json!({"top_p": 0}), "top_p invalid_value"),
        (json!({"top_p": 1.01}), "top_p invalid_value"),
        (json!({"top_k": -2}), "top_k invalid_value"),
        (json!({"top_k": 1.5}), "top_k invalid_type"),
        (json!({"min_p": 1.5}), "min_p invalid_value"),
        (json!({"presence_penalty": 2.5}), "presence_penalty invalid_value"),
        (json!({"frequency_penalty": -2.5}), "frequency_penalty invalid_value"),
        (json!({"repetition_penalty": 0}), "repetition_penalty invalid_value"),
        (json!({"n": 0}), "n invalid_value"),
        (json!({"n": 9}), "n invalid_value"),
        (json!({"n": "2"}), "n invalid_type"),
        (json!({"max_tokens": 0}), "max_tokens invalid_value"),
        (json!({"max_tokens": -1}), "max_tokens invalid_value"),
        (json!({"max_tokens": 2_147_483_648u64}), "max_tokens invalid_value"),
        (json!({"max_tokens": "5"}), "max_tokens invalid_type"),
        (json!({"max_tokens": 5.5}), "max_tokens invalid_type"),
        (json!({"max_completion_tokens": 0}), "max_completion_tokens invalid_value"),
        (json!({"seed": "x"}), "seed invalid_type"),
        (json!({"seed": 1.5}), "seed invalid_type"),
        (json!({"seed": u64::MAX}), "seed invalid_value"),
        (json!({"stop": ""}), "stop invalid_value"),
        (json!({"stop": [""]}), "stop invalid_value"),
        (json!({"stop": ["a", 1]}), "stop[1] invalid_type"),
        (json!({"stop": vec!["x"; 1000]}), "stop invalid_value"),
        (json!({"stop": "x".repeat(2000)}), "stop invalid_value"),
        (json!({"stop": {"a": 1}}), "stop invalid_type"),
        (json!({"stop_token_ids": [100]}), "stop_token_ids[0] invalid_value"),
        (json!({"logit_bias": {"hello": 1}}), "logit_bias.hello invalid_value"),
        (json!({"logit_bias": {"100": 1}}), "logit_bias.100 invalid_value"),
        (json!({"logit_bias": {"007": 1}}), "logit_bias.007 invalid_value"),
        (json!({"logit_bias": {"": 1}}), "logit_bias. invalid_value"),
        (json!({"logit_bias": {"99999999999999999999": 1}}), "logit_bias.99999999999999999999 invalid_value"),
        (json!({"logit_bias": {"7": 101}}), "logit_bias.7 invalid_value"),
        (json!({"logit_bias": {"7": "1"}}), "logit_bias.7 invalid_type"),
        (json!({"logit_bias": [7]}), "logit_bias invalid_type"),
        (json!({"stream": "yes"}), "stream invalid_type"),
        (json!({"stream_options": {"include_usage": true}}), "stream_options invalid_value"),
        (
            json!({"stream": true, "stream_options": {"include_usage": 1}}),
            "stream_options.include_usage invalid_type",
        ),
        (json!({"logprobs": 1}), "logprobs invalid_type"),
        (json!({"top_logprobs": 1}), "top_logprobs invalid_value"),
        (json!({"logprobs": true, "top_logprobs": 21}), "top_logprobs invalid_value"),
        (json!({"user": 1}), "user invalid_type"),
        (json!({"session": 1}), "session invalid_type"),
        (json!({"session": "s", "recall": 1}), "recall invalid_type"),
        (json!({"session": "s", "recall": " "}), "recall invalid_value"),
        (json!({"recall": true}), "recall invalid_value"),
        (json!({"recall": "the trip"}), "recall invalid_value"),
        (json!({"metadata": {"a": 1}}), "metadata.a invalid_type"),
        (json!({"metadata": []}), "metadata invalid_type"),
        (
            json!({"metadata": (0..17).map(|i| (i.to_string(), json!("x"))).collect::<serde_json::Map<_, _>>()}),
            "metadata invalid_value",
        ),
        (json!({"service_tier": "gold"}), "service_tier invalid_value"),
        (json!({"model": null}), "model missing_required_parameter"),
        (json!({"model": 1}), "model invalid_type"),
    ];
    for (extra, expected) in rows {
        assert_eq!(verdict(chat_with(extra.clone())), expected, "{extra}");
    }
}

#[test]
fn fields_that_ask_for_what_is_not_done_are_named() {
    let rows = [
        json!({"tools": [{"type": "function"}]}),
        json!({"tool_choice": "required"}),
        json!({"parallel_tool_calls": false}),
        json!({"functions": [{}]}),
        json!({"function_call": {"name": "f"}}),
        json!({"response_format": {"type": "json_schema"}}),
        json!({"response_format": {"type": "json_object"}}),
        json!({"modalities": ["text", "audio"]}),
        json!({"audio": {"voice": "x"}}),
        json!({"prediction": {"type": "content"}}),
        json!({"store": true}),
        json!({"reasoning_effort": "high"}),
        json!({"web_search_options": {}}),
        json!({"best_of": 3}),
        json!({"echo": true}),
        json!({"guided_json": {}}),
        json!({"min_tokens": 3}),
    ];
    for extra in rows {
        let name = extra.as_object().unwrap().keys().next().unwrap().clone();
        assert_eq!(verdict(chat_with(extra)), format!("{name} unsupported_parameter"));
    }
    assert_eq!(verdict(completion_with(json!({"suffix": "x"}))), "suffix unsupported_parameter");
    assert_eq!(verdict(completion_with(json!({"recall": true}))), "recall unsupported_parameter");
    assert_eq!(verdict(completion_with(json!({"n": 2, "best_of": 3}))), "best_of unsupported_parameter");
}

#[test]
fn defaults_nulls_and_unknown_fields_pass() {
    let rows = [
        json!({"tools": [], "tool_choice": "none", "parallel_tool_calls": true, "functions": null}),
        json!({"response_format": {"type": "text"}, "modalities": ["text"], "store": false, "audio": null}),
        json!({"stop": null, "n": null, "max_tokens": null, "temperature": null, "logit_bias": null}),
        json!({"service_tier": "auto", "user": "u", "metadata": {"a": "b"}, "best_of": 1, "safety_identifier": "s"}),
        json!({"something_new": {"deep": [1, 2, 3]}, "top_k": -1, "repetition_penalty": 1.1, "ignore_eos": true}),
        json!({"stream": true, "stream_options": {"include_usage": true, "include_obfuscation": false}}),
        json!({"temperature": 0.0001, "seed": -1, "stop": ["a", "b"], "logprobs": true, "top_logprobs": 5}),
    ];
    for extra in rows {
        chat_with(extra.clone()).unwrap_or_else(|error| panic!("{extra}: {error}"));
    }
    assert!(completion_with(json!({"suffix": "", "n": 2, "best_of": 2})).is_ok());
}

#[test]
fn a_temperature_that_leaves_one_token_a_chance_is_greedy() {
    assert_eq!(chat_with(json!({"temperature": 1e-5})).unwrap().common.sampling.temperature, 0.0);
    assert_eq!(chat_with(json!({"temperature": 1e-4})).unwrap().common.sampling.temperature, 1e-4);
}

#[test]
fn the_newer_length_field_wins() {
    let request = chat_with(json!({"max_tokens": 5, "max_completion_tokens": 7})).unwrap();
    assert_eq!((request.max_tokens, request.max_tokens_field), (Some(7), "max_completion_tokens"));
}

#[test]
fn messages_that_cannot_be_used_name_their_place() {
    let call = json!({"id": "1", "type": "function", "function": {"name": "f"}});
    let rows = [
        (json!([]), "messages invalid_value"),
        (json!("hi"), "messages invalid_type"),
        (json!(["hi"]), "messages[0] invalid_type"),
        (json!([{}]), "messages[0].role missing_required_parameter"),
        (json!([{"role": "System", "content": "x"}]), "messages[0].role invalid_value"),
        (json!([{"role": "assistent", "content": "x"}]), "messages[0].role invalid_value"),
        (json!([{"role": "", "content": "x"}]), "messages[0].role invalid_value"),
        (json!([{"role": "function", "content": "x", "name": "f"}]), "messages[0].role invalid_value"),
        (json!([{"role": "user"}]), "messages[0].content invalid_type"),
        (json!([{"role": "user", "content": null}]), "messages[0].content invalid_type"),
        (json!([{"role": "user", "content": 5}]), "messages[0].content invalid_type"),
        (json!([{"role": "user", "content": []}]), "messages[0].content invalid_value"),
        (json!([{"role": "assistant", "content": null}]), "messages[0].content invalid_type"),
        (
            json!([{"role": "assistant", "content": null, "tool_calls": []}]),
            "messages[0].content invalid_type",
        ),
        (
            json!([{"role": "assistant", "tool_calls": [call]}]),
            "messages[0].tool_calls[0].function.arguments missing_required_parameter",
        ),
        (
            json!([{"role": "assistant", "content": "x", "audio": {"id": "1"}}]),
            "messages[0].audio unsupported_parameter",
        ),
        (json!([{"role": "tool", "content": "x"}]), "messages[0].tool_call_id missing_required_parameter"),
        (
            json!([{"role": "user", "content": [{"type": "image_url"}]}]),
            "messages[0].content[0].type unsupported_value",
        ),
        (
            json!([{"role": "user", "content": [{"type": "text"}]}]),
            "messages[0].content[0].text missing_required_parameter",
        ),
        (json!([{"role": "user", "content": "x", "name": 1}]), "messages[0].name invalid_type"),
    ];
    for (messages, expected) in rows {
        assert_eq!(verdict(messages_of(messages.clone())), expected, "{messages}");
    }
}

#[test]
fn a_developer_is_a_system_and_parts_are_one_text() {
    let request = messages_of(json!([
        {"role": "developer", "content": "PLUM"},
        {"role": "user", "content": [{"type": "text", "text": "<|im_"}, {"type": "text", "text": "end|>"}]},
    ]));
    let messages = request.unwrap().messages;
    assert_eq!((messages[0].role, messages[0].text()), (Role::System, "PLUM"));
    assert_eq!(messages[1].text(), "<|im_end|>");
}

#[test]
fn a_tool_turn_is_read() {
    let call = json!({"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}});
    let request = messages_of(json!([
        {"role": "assistant", "content": null, "tool_calls": [call]},
        {"role": "tool", "content": "42", "tool_call_id": "1"},
    ]));
    let messages = request.unwrap().messages;
    assert_eq!(messages[0].content, None);
    assert_eq!(messages[0].tool_calls, Some(json!([call])));
    assert_eq!(messages[1].tool_call_id.as_deref(), Some("1"));
}

#[test]
fn prompts_of_a_raw_completion() {
    let read = |prompt: Value| completion_with(json!({"prompt": prompt})).map(|request| request.prompt);
    assert_eq!(read(json!("a")), Ok(Prompt::Text("a".into())));
    assert_eq!(read(json!(["a"])), Ok(Prompt::Text("a".into())));
    assert_eq!(read(json!([1, 2])), Ok(Prompt::Tokens(vec![1, 2])));
    assert_eq!(read(json!([[1, 2]])), Ok(Prompt::Tokens(vec![1, 2])));
    for prompt in [json!(""), json!([""]), json!([]), json!([[]]), json!(["a", "b"]), json!([[1], [2]])] {
        assert_eq!(verdict(read(prompt.clone())), "prompt invalid_value", "{prompt}");
    }
    assert_eq!(verdict(read(json!(5))), "prompt invalid_type");
    assert_eq!(verdict(read(json!([100]))), "prompt[0] invalid_value");
    assert_eq!(verdict(read(json!([1, "a"]))), "prompt[1] invalid_type");
    assert_eq!(verdict(read(json!(null))), "prompt missing_required_parameter");
}

#[test]
fn tokenizer_requests() {
    assert_eq!(detokenize(br#"{"tokens": [1, 99]}"#, BOUNDS), Ok(vec![1, 99]));
    assert_eq!(verdict(detokenize(br#"{"tokens": [100]}"#, BOUNDS)), "tokens[0] invalid_value");
    assert_eq!(verdict(detokenize(br#"{"tokens": "x"}"#, BOUNDS)), "tokens invalid_type");
    assert_eq!(tokenize(br#"{"prompt": ""}"#).unwrap().input, TokenizeInput::Text(String::new()));
    assert_eq!(tokenize(br#"{"content": "x"}"#).unwrap().input, TokenizeInput::Text("x".into()));
    assert_eq!(verdict(tokenize(b"{}")), "prompt missing_required_parameter");
    assert_eq!(verdict(tokenize(br#"{"prompt": "x", "messages": []}"#)), "messages invalid_value");
}

#[test]
fn a_request_says_whether_its_turn_goes_back_and_to_what() {
    let recall = |extra: Value| chat_with(extra).map(|request| request.common.recall);
    assert_eq!(recall(json!({"session": "s"})), Ok(None));
    assert_eq!(recall(json!({"recall": false})), Ok(Some(Recall::Never)));
    assert_eq!(recall(json!({"session": "s", "recall": true})), Ok(Some(Recall::Said)));
    let about = Some(Recall::About("the trip".into()));
    assert_eq!(recall(json!({"session": "s", "recall": "the trip"})), Ok(about));
}
