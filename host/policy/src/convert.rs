//! Between the contract's generated types and the plain ones. The only file that knows both.

use crate::{
    bindings::{
        compression::exports::jackfield::policy::compression as c,
        extraction::exports::jackfield::policy::slot_extraction as e,
        filtering::exports::jackfield::policy::output_filtering as f,
        routing::exports::jackfield::policy::routing as r, shared::jackfield::policy::types as t,
    },
    types::{
        Bias, Budget, Decision, Description, Dialog, Edit, Field, Grammar, Guidance, Hit, Instant, Interest,
        Message, Mode, Next, Part, Plan, RefuseWith, Replacement, Role, RouteRequest, Slot, Span, Target,
        TokenProbability, Transition, Turn, Value, Verdict, Watch, Window,
    },
};

// ---- to the guest ----

pub(crate) fn turn(turn: &Turn, wanted_headers: &[String]) -> t::Turn {
    let wanted = |field: &&Field| wanted_headers.contains(&field.name);
    t::Turn {
        id: turn.id.clone(),
        tenant: turn.tenant.clone(),
        session: turn.session.clone(),
        task: turn.task.clone(),
        locale: turn.locale.clone(),
        now: instant(turn.now),
        seed: turn.seed,
        headers: turn.headers.iter().filter(wanted).map(field).collect(),
        attributes: fields(&turn.attributes),
    }
}

fn instant(instant: Instant) -> t::Instant {
    t::Instant { unix_ms: instant.unix_ms as f64, utc_offset_minutes: instant.utc_offset_minutes }
}

fn field(field: &Field) -> t::Field {
    t::Field { name: field.name.clone(), value: field.value.clone() }
}

fn fields(all: &[Field]) -> Vec<t::Field> {
    all.iter().map(field).collect()
}

pub(crate) fn message(message: &Message) -> t::Message {
    t::Message {
        role: match message.role {
            Role::System => t::Role::System,
            Role::User => t::Role::User,
            Role::Assistant => t::Role::Assistant,
            Role::Tool => t::Role::Tool,
        },
        text: message.text.clone(),
    }
}

fn span(span: Span) -> t::Span {
    t::Span { start: span.start, end: span.end }
}

fn value(value: &Value) -> t::Value {
    match value {
        Value::Text(text) => t::Value::Text(text.clone()),
        Value::Number(number) => t::Value::Number(*number),
        Value::Boolean(boolean) => t::Value::Boolean(*boolean),
        Value::Date(date) => t::Value::Date(date.clone()),
        Value::Choice(choice) => t::Value::Choice(choice.clone()),
    }
}

fn slot(slot: &Slot) -> t::Slot {
    t::Slot {
        name: slot.name.clone(),
        value: value(&slot.value),
        source: slot.source.map(span),
        confidence: slot.confidence,
    }
}

pub(crate) fn dialog(dialog: &Dialog) -> e::Dialog {
    e::Dialog {
        state: dialog.state.clone(),
        slots: dialog.slots.iter().map(|held| slot(&held.into())).collect(),
        schema: dialog.schema,
    }
}

pub(crate) fn request(request: &RouteRequest) -> r::Request {
    r::Request {
        prompt_tokens: request.prompt_tokens,
        messages: request.messages,
        last_user_text: request.last_user_text.clone(),
        slots: request.slots.iter().map(slot).collect(),
        wanted_model: request.wanted_model.clone(),
        max_tokens: request.max_tokens,
        attributes: fields(&request.attributes),
    }
}

fn mode(mode: Mode) -> r::Mode {
    match mode {
        Mode::Generate => r::Mode::Generate,
        Mode::Classify => r::Mode::Classify,
        Mode::Embed => r::Mode::Embed,
    }
}

pub(crate) fn target(target: &Target) -> r::Target {
    r::Target {
        model: target.model.clone(),
        modes: target.modes.iter().copied().map(mode).collect(),
        queue_depth: target.queue_depth,
        free_blocks: target.free_blocks,
        cached_tokens: target.cached_tokens,
        ttft_p50_ms: target.ttft_p50_ms,
        attributes: fields(&target.attributes),
    }
}

pub(crate) fn part(part: &Part) -> c::Part {
    c::Part {
        message: message(&part.message),
        protected: part.protected.iter().copied().map(span).collect(),
        cached_bytes: part.cached_bytes,
    }
}

pub(crate) fn budget(budget: &Budget) -> c::Budget {
    c::Budget {
        keep_tokens: budget.keep_tokens,
        prompt_tokens: budget.prompt_tokens,
        us_per_token: budget.us_per_token,
    }
}

/// The parts of windows that have to be rewritten, for [`windows`] to point at.
pub(crate) struct WindowParts {
    hits: Vec<f::Hit>,
    tokens: Vec<f::Token>,
}

pub(crate) fn window_parts(window: &Window) -> WindowParts {
    WindowParts {
        hits: window.hits.iter().map(hit).collect(),
        tokens: window.tokens.iter().map(token).collect(),
    }
}

pub(crate) fn windows<'a>(windows: &'a [Window], parts: &'a [WindowParts]) -> Vec<f::Window<'a>> {
    let window = |(window, parts): (&'a Window, &'a WindowParts)| f::Window {
        stream_id: window.stream_id,
        sent_tail: &window.sent_tail,
        pending: &window.pending,
        hits: &parts.hits,
        tokens: &parts.tokens,
        final_: window.is_final,
    };
    windows.iter().zip(parts).map(window).collect()
}

fn hit(hit: &Hit) -> f::Hit {
    f::Hit { watch: hit.watch, at: span(hit.at), cut: hit.cut }
}

fn token(token: &TokenProbability) -> f::Token {
    f::Token { end: token.end, probability: token.probability }
}

// ---- from the guest ----

fn from_span(span: t::Span) -> Span {
    Span::new(span.start, span.end)
}

fn from_fields(fields: Vec<t::Field>) -> Vec<Field> {
    let from = |field: t::Field| Field { name: field.name, value: field.value };
    fields.into_iter().map(from).collect()
}

pub(crate) fn from_description(description: t::Description) -> Description {
    Description {
        name: description.name,
        version: description.version,
        config_schema: description.config_schema,
        dialog_schema: description.dialog_schema,
        reads_dialog_schemas: description.reads_dialog_schemas,
        attributes: from_fields(description.attributes),
    }
}

fn from_message(message: t::Message) -> Message {
    Message {
        role: match message.role {
            t::Role::System => Role::System,
            t::Role::User => Role::User,
            t::Role::Assistant => Role::Assistant,
            t::Role::Tool => Role::Tool,
        },
        text: message.text,
    }
}

fn from_slot(slot: t::Slot) -> Slot {
    Slot {
        name: slot.name,
        value: match slot.value {
            t::Value::Text(text) => Value::Text(text),
            t::Value::Number(number) => Value::Number(number),
            t::Value::Boolean(boolean) => Value::Boolean(boolean),
            t::Value::Date(date) => Value::Date(date),
            t::Value::Choice(choice) => Value::Choice(choice),
        },
        source: slot.source.map(from_span),
        confidence: slot.confidence,
    }
}

pub(crate) fn from_transition(transition: e::Transition) -> Transition {
    Transition {
        state: transition.state,
        set: transition.set.into_iter().map(from_slot).collect(),
        clear: transition.clear,
        next: match transition.next {
            e::Next::Model => Next::Model,
            e::Next::Prompt(messages) => Next::Prompt(messages.into_iter().map(from_message).collect()),
            e::Next::Answer(text) => Next::Answer(text),
        },
        attributes: from_fields(transition.attributes),
    }
}

pub(crate) fn from_decision(decision: r::Decision) -> Decision {
    match decision {
        r::Decision::Run(plan) => Decision::Run(from_plan(plan)),
        r::Decision::Answer(text) => Decision::Answer(text),
        r::Decision::Refuse(refusal) => {
            Decision::Refuse(RefuseWith { status: refusal.status, reason: refusal.reason })
        }
    }
}

fn from_plan(plan: r::Plan) -> Plan {
    Plan {
        target: plan.target,
        mode: match plan.mode {
            r::Mode::Generate => Mode::Generate,
            r::Mode::Classify => Mode::Classify,
            r::Mode::Embed => Mode::Embed,
        },
        task: plan.task,
        priority: plan.priority,
        deadline_ms: plan.deadline_ms,
        max_tokens: plan.max_tokens,
        draft_tokens: plan.draft_tokens,
        exit_threshold: plan.exit_threshold,
        compress_to: plan.compress_to,
        minimal_output: plan.minimal_output,
        keep_cache_s: plan.keep_cache_s,
        guidance: plan.guidance.map(from_guidance),
        attributes: from_fields(plan.attributes),
    }
}

fn from_guidance(guidance: r::Guidance) -> Guidance {
    let from_bias = |bias: r::Bias| Bias { text: bias.text, logit: bias.logit };
    Guidance {
        stop: guidance.stop,
        bias: guidance.bias.into_iter().map(from_bias).collect(),
        grammar: guidance.grammar.map(|grammar| match grammar {
            r::Grammar::JsonSchema(text) => Grammar::JsonSchema(text),
            r::Grammar::Regex(text) => Grammar::Regex(text),
            r::Grammar::Lark(text) => Grammar::Lark(text),
        }),
    }
}

pub(crate) fn from_edit(edit: t::Edit) -> Edit {
    Edit { message: edit.message, at: from_span(edit.at), replacement: edit.replacement }
}

pub(crate) fn from_interest(interest: f::Interest) -> Interest {
    let from_watch = |watch: f::Watch| Watch { name: watch.name, regex: watch.regex };
    Interest {
        watches: interest.watches.into_iter().map(from_watch).collect(),
        sent_tail_bytes: interest.sent_tail_bytes,
        token_probabilities: interest.token_probabilities,
        attributes: from_fields(interest.attributes),
    }
}

pub(crate) fn from_verdict(verdict: f::Verdict) -> Verdict {
    let from_replacement =
        |replacement: f::Replacement| Replacement { at: from_span(replacement.at), text: replacement.text };
    Verdict {
        window: verdict.window,
        replace: verdict.replace.into_iter().map(from_replacement).collect(),
        hold_bytes: verdict.hold_bytes,
        stop: verdict.stop,
    }
}
