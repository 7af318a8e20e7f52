//! The answer of a router.

use super::{Checked, at_most, attributes, not_empty, reason, share};
use crate::types::{Decision, Guidance, Plan, Target};

const MAX_STOPS: usize = 16;
const MAX_BIASES: usize = 1024;
const MAX_LOGIT: f32 = 100.0;

pub(crate) fn decision(decision: &Decision, fleet: &[Target]) -> Checked {
    match decision {
        Decision::Run(plan) => self::plan(plan, fleet),
        Decision::Answer(answer) => not_empty("the answer", answer),
        Decision::Refuse(refusal) => {
            if !(400..=599).contains(&refusal.status) {
                let status = refusal.status;
                return Err(format!("the refusal's status is {status}, not within 400 to 599"));
            }
            reason("the refusal's reason", &refusal.reason)
        }
    }
}

fn plan(plan: &Plan, fleet: &[Target]) -> Checked {
    let target = fleet
        .iter()
        .find(|target| target.model == plan.target)
        .ok_or_else(|| format!("the plan's target {:?} is not in the fleet", plan.target))?;
    if !target.modes.contains(&plan.mode) {
        let mode = plan.mode;
        return Err(format!("target `{}` has no mode {mode:?}", plan.target));
    }
    not_zero("deadline-ms", plan.deadline_ms)?;
    not_zero("max-tokens", plan.max_tokens)?;
    if let Some(threshold) = plan.exit_threshold {
        share("exit-threshold", threshold)?;
    }
    match plan.compress_to {
        Some(0.0) => return Err("compress-to is 0: nothing would be left".into()),
        Some(to) => share("compress-to", to)?,
        None => {}
    }
    if let Some(guidance) = &plan.guidance {
        self::guidance(guidance)?;
    }
    attributes(&plan.attributes)
}

fn not_zero(what: &str, value: Option<u32>) -> Checked {
    match value {
        Some(0) => Err(format!("{what} is 0")),
        _ => Ok(()),
    }
}

fn guidance(guidance: &Guidance) -> Checked {
    at_most("stop", guidance.stop.len(), MAX_STOPS, "texts")?;
    for stop in &guidance.stop {
        not_empty("a stop text", stop)?;
    }
    at_most("bias", guidance.bias.len(), MAX_BIASES, "entries")?;
    for bias in &guidance.bias {
        not_empty("the text of a bias", &bias.text)?;
        if !(-MAX_LOGIT..=MAX_LOGIT).contains(&bias.logit) {
            let logit = bias.logit;
            return Err(format!("bias {:?}: {logit} is not within -100 to 100", bias.text));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::{Bias, Mode, RefuseWith};

    fn fleet() -> Vec<Target> {
        vec![Target { model: "small".into(), ..Target::default() }]
    }

    fn plan() -> Plan {
        Plan {
            target: "small".into(),
            mode: Mode::Generate,
            task: None,
            priority: 0,
            deadline_ms: Some(1),
            max_tokens: Some(1),
            draft_tokens: Some(0),
            exit_threshold: Some(1.0),
            compress_to: Some(0.5),
            minimal_output: false,
            keep_cache_s: Some(0),
            guidance: None,
            attributes: vec![],
        }
    }

    #[test]
    fn a_good_plan_passes() {
        assert_eq!(decision(&Decision::Run(plan()), &fleet()), Ok(()));
    }

    #[test]
    fn each_rule_of_a_plan_is_held() {
        let broken = |change: fn(&mut Plan)| {
            let mut plan = plan();
            change(&mut plan);
            decision(&Decision::Run(plan), &fleet()).expect_err("broken")
        };
        assert!(broken(|p| p.target = "large".into()).contains("large"));
        assert!(broken(|p| p.mode = Mode::Embed).contains("Embed"));
        assert!(broken(|p| p.deadline_ms = Some(0)).contains("deadline-ms"));
        assert!(broken(|p| p.max_tokens = Some(0)).contains("max-tokens"));
        assert!(broken(|p| p.exit_threshold = Some(f32::NAN)).contains("exit-threshold"));
        assert!(broken(|p| p.compress_to = Some(0.0)).contains("compress-to"));
        assert!(broken(|p| p.compress_to = Some(1.5)).contains("compress-to"));
        let guided = |guidance: Guidance| {
            let mut plan = plan();
            plan.guidance = Some(guidance);
            decision(&Decision::Run(plan), &fleet()).expect_err("broken")
        };
        let stop = vec![String::new()];
        assert!(guided(Guidance { stop, ..Guidance::default() }).contains("stop"));
        let bias = vec![Bias { text: "a".into(), logit: f32::INFINITY }];
        assert!(guided(Guidance { bias, ..Guidance::default() }).contains("inf"));
    }

    #[test]
    fn refusals_carry_a_status_of_errors_and_a_reason() {
        let refuse = |status, reason: &str| {
            let with = RefuseWith { status, reason: reason.into() };
            decision(&Decision::Refuse(with), &fleet())
        };
        assert_eq!(refuse(429, "busy"), Ok(()));
        assert!(refuse(200, "fine").is_err());
        assert!(refuse(600, "?").is_err());
        assert!(refuse(400, "").is_err());
        assert!(refuse(400, &"x".repeat(5000)).is_err());
        assert!(decision(&Decision::Answer(String::new()), &fleet()).is_err());
    }
}
