//! Chat templates against what transformers renders: see golden/README.md.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use jackfield_model::{
    ChatMessage, ChatTemplate, Now, RenderOptions, SpecialTokens, TemplateError, TemplateSource,
};
use serde::Deserialize;
use serde_json::Value;

/// The clock of the references, 2025-03-04T15:09:26, as a moment in UTC.
const NOW: Now = Now { unix_s: 1_741_100_966, utc_offset_s: 0 };

#[derive(Deserialize)]
struct Conversation {
    add_generation_prompt: bool,
    tools: Option<Value>,
    messages: Vec<Message>,
}

#[derive(Deserialize)]
struct Message {
    role: String,
    content: Option<String>,
    name: Option<String>,
    tool_calls: Option<Value>,
    tool_call_id: Option<String>,
}

#[derive(Deserialize)]
struct Expected {
    now: String,
    templates: BTreeMap<String, Template>,
}

#[derive(Deserialize)]
struct Template {
    bos_token: Option<String>,
    eos_token: Option<String>,
    control: Vec<String>,
    cases: BTreeMap<String, Case>,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Case {
    Text(String),
    Error(String),
}

#[test]
fn published_templates_render_as_transformers_renders_them() {
    let expected: Expected = read("expected.json");
    let conversations: BTreeMap<String, Conversation> = read("conversations.json");
    assert_eq!(expected.now, "2025-03-04T15:09:26");

    let mut compared = 0;
    let mut wrong = Vec::new();
    for (name, template) in &expected.templates {
        let compiled = compile(name, template);
        assert_eq!(*compiled.source(), TemplateSource::File, "{name} does not compile");
        for (case, wanted) in &template.cases {
            compared += 1;
            if let Err(difference) = compare(&compiled, &conversations[case], wanted) {
                wrong.push(format!("{name}, {case}: {difference}"));
            }
        }
    }
    assert_eq!(compared, expected.templates.len() * conversations.len());
    assert!(expected.templates.len() >= 10 && conversations.len() >= 5);
    assert!(wrong.is_empty(), "{} of {compared} differ:\n{}", wrong.len(), wrong.join("\n"));
}

fn compile(name: &str, template: &Template) -> ChatTemplate {
    let text = fs::read_to_string(folder().join(format!("{name}.jinja"))).expect("the template is stored");
    let tokens = SpecialTokens {
        bos: template.bos_token.clone(),
        eos: template.eos_token.clone(),
        control: template.control.clone(),
    };
    ChatTemplate::from_text(&text, tokens)
}

/// Texts are equal, or both sides refuse; a refusal in the template's own words has the same words.
fn compare(template: &ChatTemplate, conversation: &Conversation, wanted: &Case) -> Result<(), String> {
    let messages: Vec<ChatMessage> = conversation.messages.iter().map(message).collect();
    let options = RenderOptions {
        add_generation_prompt: conversation.add_generation_prompt,
        tools: conversation.tools.clone(),
        now: Some(NOW),
        ..RenderOptions::default()
    };
    match (template.render(&messages, &options), wanted) {
        (Ok(rendered), Case::Text(text)) if rendered.text() == *text => Ok(()),
        (Ok(rendered), Case::Text(text)) => Err(difference(&rendered.text(), text)),
        (Ok(_), Case::Error(error)) => Err(format!("renders, but transformers says: {error}")),
        (Err(TemplateError::Raised { message }), Case::Error(error))
            if error == &format!("TemplateError: {message}") =>
        {
            Ok(())
        }
        (Err(error), Case::Error(wanted)) => Err(format!("`{error}` instead of `{wanted}`")),
        (Err(error), Case::Text(_)) => Err(error.to_string()),
    }
}

fn message(it: &Message) -> ChatMessage {
    ChatMessage {
        role: it.role.clone(),
        content: it.content.clone(),
        name: it.name.clone(),
        tool_calls: it.tool_calls.clone(),
        tool_call_id: it.tool_call_id.clone(),
    }
}

/// Where two texts part, with a little around it.
fn difference(ours: &str, theirs: &str) -> String {
    let same = ours.chars().zip(theirs.chars()).take_while(|(a, b)| a == b).count();
    let near = |text: &str| text.chars().skip(same.saturating_sub(30)).take(90).collect::<String>();
    format!("parts at character {same}: ours {:?}, theirs {:?}", near(ours), near(theirs))
}

fn read<T: for<'a> Deserialize<'a>>(file: &str) -> T {
    let text = fs::read_to_string(folder().join(file)).expect("the reference is stored");
    serde_json::from_str(&text).expect("the reference has this shape")
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("golden/templates")
}
