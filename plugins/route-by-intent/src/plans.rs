use jackfield_sdk::Field;
use jackfield_sdk::routing::{Grammar, Guidance, Mode, Plan, Target};

use crate::conditions::Facts;
use crate::config::{self, PlanFields};

/// A plan but for its target, which the fleet of the turn decides.
#[derive(Debug)]
pub(crate) struct PlanRule {
    rule: String,
    choice: Choice,
    mode: Mode,
    fields: PlanFields,
    guidance: Option<Guidance>,
}

#[derive(Debug)]
enum Choice {
    Named(String),
    LeastBusy,
    /// The model asked for, or else the host's own choice.
    Usual,
}

impl PlanRule {
    /// The rule's own fields, filled up from the defaults, and checked.
    pub(crate) fn new(rule: &str, own: PlanFields, default: &PlanFields) -> Result<PlanRule, String> {
        let fields = fill(own, default);
        check(&fields)?;
        let choice = match fields.target.as_deref() {
            None => Choice::Usual,
            Some("least-busy") => Choice::LeastBusy,
            Some(name) => Choice::Named(name.to_owned()),
        };
        let mode = match fields.mode {
            None | Some(config::Mode::Generate) => Mode::Generate,
            Some(config::Mode::Classify) => Mode::Classify,
            Some(config::Mode::Embed) => Mode::Embed,
        };
        let guidance = guidance(&fields);
        Ok(PlanRule { rule: rule.to_owned(), choice, mode, fields, guidance })
    }

    /// The plan for this turn; none where no target does what is asked.
    pub(crate) fn plan(&self, facts: &Facts<'_>, fleet: &[Target]) -> Option<Plan> {
        let mut able = fleet.iter().filter(|target| target.modes.contains(&self.mode));
        let target = match &self.choice {
            Choice::Named(name) => able.find(|target| target.model == *name),
            // Where queues are equal, the one that holds more of this prompt.
            Choice::LeastBusy => {
                able.min_by_key(|target| (target.queue_depth, std::cmp::Reverse(target.cached_tokens)))
            }
            Choice::Usual => {
                let first = able.clone().next();
                able.find(|target| target.model == facts.request.wanted_model).or(first)
            }
        }?;
        let fields = &self.fields;
        Some(Plan {
            mode: self.mode,
            task: fields.task.clone().or_else(|| facts.turn.task.clone()),
            priority: fields.priority.unwrap_or(100),
            deadline_ms: fields.deadline_ms,
            max_tokens: fields.max_tokens,
            draft_tokens: fields.draft_tokens,
            exit_threshold: fields.exit_threshold,
            compress_to: fields.compress_to,
            minimal_output: fields.minimal_output.unwrap_or(false),
            keep_cache_s: fields.keep_cache_s,
            guidance: self.guidance.clone(),
            attributes: vec![Field::new("rule", &self.rule)],
            ..Plan::on(target)
        })
    }
}

fn fill(own: PlanFields, default: &PlanFields) -> PlanFields {
    let default = default.clone();
    // An answer has one form: a rule's own takes the place of the default's, of whichever kind.
    let has_form = own.json_schema.is_some() || own.regex.is_some();
    PlanFields {
        target: own.target.or(default.target),
        mode: own.mode.or(default.mode),
        task: own.task.or(default.task),
        priority: own.priority.or(default.priority),
        deadline_ms: own.deadline_ms.or(default.deadline_ms),
        max_tokens: own.max_tokens.or(default.max_tokens),
        draft_tokens: own.draft_tokens.or(default.draft_tokens),
        exit_threshold: own.exit_threshold.or(default.exit_threshold),
        compress_to: own.compress_to.or(default.compress_to),
        minimal_output: own.minimal_output.or(default.minimal_output),
        keep_cache_s: own.keep_cache_s.or(default.keep_cache_s),
        stop: own.stop.or(default.stop),
        json_schema: own.json_schema.or(default.json_schema.filter(|_| !has_form)),
        regex: own.regex.or(default.regex.filter(|_| !has_form)),
    }
}

/// What the host would refuse in every turn is refused here, once.
fn check(fields: &PlanFields) -> Result<(), String> {
    let wrong = [
        (fields.deadline_ms == Some(0), "`deadline_ms` must not be 0"),
        (fields.max_tokens == Some(0), "`max_tokens` must not be 0"),
        (
            fields.compress_to.is_some_and(|share| !(share > 0.0 && share <= 1.0)),
            "`compress_to` must be above 0 and at most 1",
        ),
        (
            fields.exit_threshold.is_some_and(|threshold| !(0.0..=1.0).contains(&threshold)),
            "`exit_threshold` must be from 0 to 1",
        ),
        (
            fields.json_schema.is_some() && fields.regex.is_some(),
            "one of `json_schema` and `regex`, not both",
        ),
        (fields.stop.as_ref().is_some_and(|stop| stop.len() > 16), "`stop` may hold 16 texts at most"),
        (fields.stop.iter().flatten().any(String::is_empty), "`stop` must not hold an empty text"),
    ];
    wrong.iter().find(|(is_wrong, _)| *is_wrong).map_or(Ok(()), |(_, what)| Err((*what).to_owned()))
}

fn guidance(fields: &PlanFields) -> Option<Guidance> {
    let grammar = match (&fields.json_schema, &fields.regex) {
        (Some(schema), _) => Some(Grammar::JsonSchema(schema.clone())),
        (None, Some(regex)) => Some(Grammar::Regex(regex.clone())),
        (None, None) => None,
    };
    let stop = fields.stop.clone().unwrap_or_default();
    (grammar.is_some() || !stop.is_empty()).then_some(Guidance { stop, bias: Vec::new(), grammar })
}
