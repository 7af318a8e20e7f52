//! Chat templates: from messages to a prompt, as the model was trained to read it.
//!
//! A template is compiled once. Everything a conversation holds is marked before it is rendered (`guard`), and
//! the result is split into text and control tokens (`rendered`), so that no message can forge a turn.

mod error;
mod guard;
mod message;
mod python;
mod rendered;
#[cfg(test)]
mod tests;
mod time;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use minijinja::{Environment, Value as Jinja};
use serde_json::{Map, Value};

pub use error::TemplateError;
pub use message::{ChatMessage, Now, RenderOptions};
pub use rendered::{Rendered, Segment};

use guard::{Guard, Place, Strength};
use rendered::Splitter;

use crate::gguf::{Gguf, GgufError};
use crate::tokenizer::Tokenizer;

const NAME: &str = "chat";
const KEY: &str = "tokenizer.chat_template";

const CHATML: &str = "\
{%- for message in messages -%}
{{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\\n' -}}{%- endif -%}";

const PLAIN: &str = "\
{%- for message in messages -%}
{{- message.role | capitalize + ': ' + message.content + '\\n\\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- 'Assistant:' -}}{%- endif -%}";

/// A render may take this many instructions, and one more for each byte of the conversation.
const BASE_FUEL: u64 = 4_000_000;

/// All control tokens together; models have some kilobytes.
const MAX_CONTROL_BYTES: usize = 1 << 20;

/// Where a template came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TemplateSource {
    /// The model file.
    File,
    /// The file has none; its vocabulary has ChatML's control tokens.
    DefaultChatMl,
    /// The file has none and no ChatML: `User: …`, a blank line, `Assistant:`.
    DefaultPlain,
    /// The file's template does not compile: chats are refused with this message, raw completions work.
    Unusable(String),
}

/// A compiled chat template and the control tokens of its model.
pub struct ChatTemplate {
    env: Environment<'static>,
    source: TemplateSource,
    text: String,
    tokens: SpecialTokens,
    /// None when the template is unusable: nothing is rendered without them.
    shields: Option<(Guard, Splitter)>,
    knows_developer: bool,
}

/// The tokens that a template is told of.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SpecialTokens {
    /// `bos_token`, where the model has one.
    pub bos: Option<String>,
    /// `eos_token`, where the model has one.
    pub eos: Option<String>,
    /// The texts of all control tokens.
    pub control: Vec<String>,
}

impl SpecialTokens {
    pub(crate) fn of(tokenizer: &Tokenizer) -> Self {
        let text = |id: u32| tokenizer.token_text(id).to_owned();
        Self {
            bos: tokenizer.bos().map(text),
            eos: tokenizer.eos().map(text),
            control: tokenizer.control_texts().map(str::to_owned).collect(),
        }
    }
}

impl ChatTemplate {
    /// The template of a model file, or the default that suits its vocabulary. One that does not compile is
    /// kept as [`TemplateSource::Unusable`].
    pub fn from_gguf(gguf: &Gguf, tokenizer: &Tokenizer) -> Result<Self, GgufError> {
        let tokens = SpecialTokens::of(tokenizer);
        let has = |text: &str| tokens.control.iter().any(|control| control == text);
        Ok(match gguf.text(KEY)? {
            Some(text) => Self::new(text, TemplateSource::File, tokens),
            None if has("<|im_start|>") && has("<|im_end|>") => {
                Self::new(CHATML, TemplateSource::DefaultChatMl, tokens)
            }
            None => Self::new(PLAIN, TemplateSource::DefaultPlain, tokens),
        })
    }

    /// A template from its text, as if it came from a file with these tokens.
    pub fn from_text(text: &str, tokens: SpecialTokens) -> Self {
        Self::new(text, TemplateSource::File, tokens)
    }

    fn new(text: &str, source: TemplateSource, tokens: SpecialTokens) -> Self {
        let mut env = environment();
        let compiled = env.add_template_owned(NAME, without_generation_blocks(text));
        let shields = Some(&tokens.control)
            .filter(|control| control.iter().map(String::len).sum::<usize>() <= MAX_CONTROL_BYTES);
        let shields = shields.and_then(|control| Guard::new(control).zip(Splitter::new(control)));
        let source = match (compiled, &shields) {
            (Ok(()), Some(_)) => source,
            (Ok(()), None) => TemplateSource::Unusable("the model has too many control tokens".into()),
            (Err(e), _) => TemplateSource::Unusable(describe(&e)),
        };
        Self {
            env,
            source,
            text: text.to_owned(),
            shields,
            tokens,
            knows_developer: text.contains("developer"),
        }
    }

    /// Where the template came from, and whether it can be used.
    pub fn source(&self) -> &TemplateSource {
        &self.source
    }

    /// The template itself.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The prompt of a conversation.
    pub fn render(
        &self,
        messages: &[ChatMessage],
        options: &RenderOptions,
    ) -> Result<Rendered, TemplateError> {
        let (guard, splitter) = match (&self.source, &self.shields) {
            (TemplateSource::Unusable(message), _) => {
                return Err(TemplateError::Unusable { message: message.clone() });
            }
            (_, Some((guard, splitter))) => (guard, splitter),
            (_, None) => {
                return Err(TemplateError::Unusable { message: "its control tokens are unknown".into() });
            }
        };
        let outside = self.outside(messages, options)?;
        let holds = |c: char| self.text.contains(c) || outside.values().any(|value| holds(value, c));
        let mark = guard::absent_mark(holds).ok_or(TemplateError::NoMarker)?;
        let light = marked(guard, &outside, mark, Strength::Light);
        let strict = marked(guard, &outside, mark, Strength::Strict);
        let render = |variables| Ok(splitter.split(&self.render_marked(variables, options, mark)?, mark));
        if light == strict {
            return render(light);
        }
        let (light, strict) = (render(light)?, render(strict)?);
        Ok(if light.controls().eq(strict.controls()) { light } else { strict })
    }

    /// Everything that comes from outside, as the variables of the template.
    fn outside(
        &self,
        messages: &[ChatMessage],
        options: &RenderOptions,
    ) -> Result<Map<String, Value>, TemplateError> {
        if messages.is_empty() {
            return Err(TemplateError::NoMessages);
        }
        let mut outside = options.extra.clone();
        let messages = messages.iter().enumerate().map(|(i, m)| Ok(m.to_json(self.role(i, &m.role)?)));
        outside.insert("messages".into(), Value::Array(messages.collect::<Result<_, _>>()?));
        outside.insert("tools".into(), options.tools.clone().unwrap_or(Value::Null));
        outside.entry("documents").or_insert(Value::Null);
        Ok(outside)
    }

    fn role<'a>(&self, index: usize, role: &'a str) -> Result<&'a str, TemplateError> {
        match role {
            "developer" if !self.knows_developer => Ok("system"),
            "system" | "developer" | "user" | "assistant" | "tool" => Ok(role),
            other => Err(TemplateError::UnknownRole { index, role: other.to_owned() }),
        }
    }

    fn render_marked(
        &self,
        variables: Map<String, Value>,
        options: &RenderOptions,
        mark: char,
    ) -> Result<String, TemplateError> {
        let mut env = self.env.clone();
        env.set_fuel(Some(BASE_FUEL + variables.values().map(size).sum::<u64>()));
        let template = env.get_template(NAME).map_err(|e| failure(&e, mark))?;
        let mut context: Vec<(String, Jinja)> =
            variables.into_iter().map(|(name, value)| (name, Jinja::from(Serde(value)))).collect();
        context.push(("add_generation_prompt".into(), options.add_generation_prompt.into()));
        let special = [("bos_token", &self.tokens.bos), ("eos_token", &self.tokens.eos)];
        for (name, text) in special {
            if let Some(text) = text {
                context.push((name.into(), text.as_str().into()));
            }
        }
        if let Some(now) = options.now {
            let strftime = Jinja::from_function(move |format: String| time::strftime(now, &format));
            context.push(("strftime_now".into(), strftime));
        }
        template.render(Jinja::from_pairs(context)).map_err(|e| failure(&e, mark))
    }
}

fn environment() -> Environment<'static> {
    let mut env = Environment::new();
    // The settings that published templates are written for.
    if let Ok(syntax) = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build() {
        env.set_syntax(syntax);
    }
    python::install(&mut env);
    env
}

/// `{% generation %}` only tells trainers which text is the assistant's: here it is a block that is always taken.
fn without_generation_blocks(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(open) = rest.find("{%") {
        let (before, tag) = rest.split_at(open + 2);
        out.push_str(before);
        let sign = tag.len() - tag.trim_start_matches(['-', '+']).len();
        let name = tag[sign..].trim_start();
        let lead = tag.len() - name.len();
        let word =
            name.len() - name.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || c == '_').len();
        out.push_str(&tag[..lead]);
        match &name[..word] {
            "generation" => out.push_str("if true"),
            "endgeneration" => out.push_str("endif"),
            other => out.push_str(other),
        }
        rest = &name[word..];
    }
    out.push_str(rest);
    out
}

/// Everything with its marks, but for the roles: those are one of five words by now, and templates compare them.
fn marked(guard: &Guard, outside: &Map<String, Value>, mark: char, strength: Strength) -> Map<String, Value> {
    let one = |(name, value): (&String, &Value)| (name.clone(), mark_value(guard, value, mark, strength));
    let mut marked: Map<String, Value> = outside.iter().map(one).collect();
    let plain = outside.get("messages").and_then(Value::as_array).into_iter().flatten();
    let messages = marked.get_mut("messages").and_then(Value::as_array_mut).into_iter().flatten();
    for (message, plain) in messages.zip(plain) {
        message["role"] = plain["role"].clone();
    }
    marked
}

fn mark_value(guard: &Guard, value: &Value, mark: char, strength: Strength) -> Value {
    match value {
        Value::String(text) => Value::String(guard.mark(text, Place::Value, mark, strength)),
        Value::Array(items) => items.iter().map(|item| mark_value(guard, item, mark, strength)).collect(),
        Value::Object(fields) => {
            let name = |name: &str| guard.mark(name, Place::Key, mark, strength);
            let value = |value| mark_value(guard, value, mark, strength);
            Value::Object(fields.iter().map(|(k, v)| (name(k), value(v))).collect())
        }
        plain => plain.clone(),
    }
}

/// Whether any string below holds this character.
fn holds(value: &Value, c: char) -> bool {
    match value {
        Value::String(text) => text.contains(c),
        Value::Array(items) => items.iter().any(|item| holds(item, c)),
        Value::Object(fields) => fields.iter().any(|(name, value)| name.contains(c) || holds(value, c)),
        _ => false,
    }
}

/// Bytes of text below, roughly.
fn size(value: &Value) -> u64 {
    match value {
        Value::String(text) => text.len() as u64,
        Value::Array(items) => items.iter().map(|item| 8 + size(item)).sum(),
        Value::Object(fields) => fields.iter().map(|(name, value)| name.len() as u64 + size(value)).sum(),
        _ => 8,
    }
}

fn failure(error: &minijinja::Error, mark: char) -> TemplateError {
    let clean = |text: String| text.replace(mark, "");
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        if let Some(raised) = cause.downcast_ref::<python::Raised>() {
            return TemplateError::Raised { message: clean(raised.0.clone()) };
        }
        source = cause.source();
    }
    TemplateError::Failed { message: clean(describe(error)) }
}

fn describe(error: &minijinja::Error) -> String {
    let detail = error.detail().map_or_else(|| error.kind().to_string(), str::to_owned);
    match error.line() {
        Some(line) => format!("{detail}, line {line}"),
        None => detail,
    }
}
