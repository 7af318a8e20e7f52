//! Picks the plan of a turn by an author's rules: the first that fits decides. A rule runs the turn, answers it, or
//! refuses it.

mod conditions;
mod config;
mod plans;

pub use config::{Bounds, Config, Mode, PlanFields, Refuse, Rule, SlotIs, When, Words};

use jackfield_sdk::routing::{Decision, Refusal, Request, Router, Target};
use jackfield_sdk::{Description, Policy, Turn};

use conditions::{Conditions, Facts};
use plans::PlanRule;

/// The policy.
#[derive(Debug)]
pub struct RouteByIntent {
    rules: Vec<(Conditions, Outcome)>,
    otherwise: PlanRule,
}

#[derive(Debug)]
enum Outcome {
    Run(Box<PlanRule>),
    Answer(Words),
    Refuse(Refuse),
}

impl Policy for RouteByIntent {
    type Config = Config;

    fn describe() -> Description {
        Description::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"))
            .with_config_schema(include_str!("../config.schema.json"))
    }

    fn configure(config: Config) -> Result<Self, String> {
        let otherwise = PlanRule::new("default", PlanFields::default(), &config.default)
            .map_err(|error| format!("[default]: {error}"))?;
        let mut rules = Vec::with_capacity(config.rule.len());
        for rule in config.rule {
            let name = rule.name.clone();
            rules.push(compile(rule, &config.default).map_err(|error| format!("rule `{name}`: {error}"))?);
        }
        Ok(RouteByIntent { rules, otherwise })
    }
}

fn compile(rule: Rule, default: &PlanFields) -> Result<(Conditions, Outcome), String> {
    let outcome = match (rule.plan, rule.answer, rule.refuse) {
        (Some(plan), None, None) => Outcome::Run(Box::new(PlanRule::new(&rule.name, plan, default)?)),
        (None, Some(answer), None) if answer.are_said() => Outcome::Answer(answer),
        (None, None, Some(refuse)) if refuse.reason.are_said() => match refuse.status {
            400..=599 => Outcome::Refuse(refuse),
            status => return Err(format!("status {status} is no refusal: 400 to 599")),
        },
        (None, Some(_), None) | (None, None, Some(_)) => return Err("an empty text".into()),
        _ => return Err("needs one of [rule.plan], `answer` and `refuse`, and no more".into()),
    };
    Ok((Conditions::new(rule.when)?, outcome))
}

impl Router for RouteByIntent {
    fn route(&self, turn: &Turn, request: &Request, fleet: &[Target]) -> Result<Decision, String> {
        let facts = Facts::new(turn, request, fleet);
        let decision =
            self.rules.iter().filter(|(conditions, _)| conditions.fit(&facts)).find_map(|(_, outcome)| {
                match outcome {
                    Outcome::Run(rule) => rule.plan(&facts, fleet).map(Decision::Run),
                    Outcome::Answer(words) => Some(Decision::Answer(words.pick(&facts).to_owned())),
                    Outcome::Refuse(Refuse { status, reason }) => Some(Decision::Refuse(Refusal {
                        status: *status,
                        reason: reason.pick(&facts).to_owned(),
                    })),
                }
            });
        if let Some(decision) = decision {
            return Ok(decision);
        }
        let plan = self.otherwise.plan(&facts, fleet).map(Decision::Run);
        plan.ok_or_else(|| "no target of the fleet does what [default] asks for".to_owned())
    }
}

impl Words {
    fn are_said(&self) -> bool {
        match self {
            Words::One(text) => !text.trim().is_empty(),
            Words::Both { zh, en } => !zh.trim().is_empty() && !en.trim().is_empty(),
        }
    }

    fn pick(&self, facts: &Facts<'_>) -> &str {
        match self {
            Words::One(text) => text,
            Words::Both { zh, en } => {
                if facts.in_chinese() {
                    zh
                } else {
                    en
                }
            }
        }
    }
}

jackfield_sdk::export_router!(RouteByIntent);

#[cfg(test)]
mod tests;
