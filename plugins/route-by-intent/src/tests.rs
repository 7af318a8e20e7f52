use jackfield_sdk::routing::{Decision, Grammar, Mode, Plan, Request, Router, Target};
use jackfield_sdk::{Instant, Policy, Slot, Span, Turn, Value};

use crate::{Config, RouteByIntent};

fn policy(config: &str) -> Result<RouteByIntent, String> {
    let config: Config = serde_json::from_str(config).map_err(|error| error.to_string())?;
    RouteByIntent::configure(config)
}

fn turn() -> Turn {
    Turn {
        id: "t".into(),
        tenant: "vip-7".into(),
        session: None,
        task: None,
        locale: String::new(),
        now: Instant { unix_ms: 0.0, utc_offset_minutes: 0 },
        seed: 0,
        headers: Vec::new(),
        attributes: Vec::new(),
    }
}

fn request(text: &str) -> Request {
    Request {
        prompt_tokens: 100,
        messages: 1,
        last_user_text: text.into(),
        slots: Vec::new(),
        wanted_model: "big".into(),
        max_tokens: None,
        attributes: Vec::new(),
    }
}

fn target(model: &str, queue_depth: u32, cached_tokens: u32) -> Target {
    let modes = vec![Mode::Generate];
    Target {
        model: model.into(),
        modes,
        queue_depth,
        free_blocks: 10,
        cached_tokens,
        ttft_p50_ms: 0.0,
        attributes: Vec::new(),
    }
}

fn plan(policy: &RouteByIntent, turn: &Turn, request: &Request, fleet: &[Target]) -> Plan {
    match policy.route(turn, request, fleet) {
        Ok(Decision::Run(plan)) => plan,
        other => panic!("expected a plan, got {other:?}"),
    }
}

fn rule_of(policy: &RouteByIntent, turn: &Turn, request: &Request) -> String {
    plan(policy, turn, request, &[target("small", 3, 0)]).attributes[0].value.clone()
}

/// A policy with one rule of these conditions.
fn when(conditions: &str) -> RouteByIntent {
    policy(&format!(r#"{{"rule": [{{"name": "hit", "when": {conditions}, "plan": {{}}}}]}}"#))
        .expect("a rule")
}

fn fits(conditions: &str, turn: &Turn, request: &Request) -> bool {
    rule_of(&when(conditions), turn, request) == "hit"
}

#[test]
fn words_are_found_in_both_languages_and_widths() {
    let turn = turn();
    let any = r#"{"any": ["退款", "Refund", "AB-12"]}"#;
    for text in ["我要退款！", "a REFUND, please", "ｒｅｆｕｎｄ", "编号ＡＢ－１２呢"] {
        assert!(fits(any, &turn, &request(text)), "{text}");
    }
    for text in ["退 款", "refunds", "AB-123", ""] {
        assert!(!fits(any, &turn, &request(text)), "{text}");
    }
    let both = r#"{"all": ["退款", "订单"], "none": ["不"]}"#;
    assert!(fits(both, &turn, &request("订单要退款")));
    assert!(!fits(both, &turn, &request("订单")));
    assert!(!fits(both, &turn, &request("订单不退款")));
}

#[test]
fn names_match_whole_or_by_their_beginning() {
    let turn = turn();
    let request = request("x");
    assert!(fits(r#"{"tenant": ["other", "vip-*"]}"#, &turn, &request));
    assert!(!fits(r#"{"tenant": ["vip"]}"#, &turn, &request));
    assert!(fits(r#"{"model": ["big"]}"#, &turn, &request));
    assert!(!fits(r#"{"task": ["*"]}"#, &turn, &request));
    let named = Turn { task: Some("分类".into()), locale: "zh-CN".into(), ..turn };
    assert!(fits(r#"{"task": ["分类"], "locale": ["zh*"]}"#, &named, &request));
}

#[test]
fn bounds_include_both_ends() {
    let turn = turn();
    let request = request("x");
    for (conditions, expected) in [
        (r#"{"prompt_tokens": {"min": 100, "max": 100}}"#, true),
        (r#"{"prompt_tokens": {"min": 101}}"#, false),
        (r#"{"prompt_tokens": {"max": 99}}"#, false),
        (r#"{"messages": {"max": 1}}"#, true),
        (r#"{"queue": {"min": 3}}"#, true),
        (r#"{"queue": {"min": 4}}"#, false),
    ] {
        assert_eq!(fits(conditions, &turn, &request), expected, "{conditions}");
    }
}

#[test]
fn slots_are_known_unknown_or_of_a_value() {
    let slot = |name: &str, value| Slot::found(name, value, Span::new(0..1));
    let mut request = request("x");
    request.slots = vec![
        slot("order", Value::Text("AB-1".into())),
        slot("count", Value::Number(3.0)),
        slot("urgent", Value::Boolean(false)),
    ];
    for (conditions, expected) in [
        (r#"{"slots": {"order": true}}"#, true),
        (r#"{"slots": {"order": false}}"#, false),
        (r#"{"slots": {"city": false}}"#, true),
        (r#"{"slots": {"order": "AB-1", "count": 3}}"#, true),
        (r#"{"slots": {"order": "AB-2"}}"#, false),
        (r#"{"slots": {"urgent": true}}"#, false),
        (r#"{"slots": {"urgent": false}}"#, true),
    ] {
        assert_eq!(fits(conditions, &turn(), &request), expected, "{conditions}");
    }
}

#[test]
fn the_target_is_named_least_busy_or_the_one_asked_for() {
    let fleet = [target("small", 2, 0), target("warm", 2, 50), target("big", 5, 0)];
    let chosen = |fields: &str, wanted: &str| {
        let policy = policy(&format!(r#"{{"default": {{{fields}}}}}"#)).expect("a policy");
        let request = Request { wanted_model: wanted.into(), ..request("x") };
        plan(&policy, &turn(), &request, &fleet).target
    };
    assert_eq!(chosen("", "big"), "big");
    assert_eq!(chosen("", "nobody's"), "small");
    assert_eq!(chosen(r#""target": "least-busy""#, "big"), "warm");
    assert_eq!(chosen(r#""target": "warm""#, "big"), "warm");
}

#[test]
fn a_rule_whose_target_is_missing_or_unable_is_passed_over() {
    let config = r#"{"rule": [
        {"name": "a", "plan": {"target": "gone"}},
        {"name": "b", "plan": {"mode": "embed"}},
        {"name": "c", "plan": {"target": "small"}}
    ]}"#;
    assert_eq!(rule_of(&policy(config).expect("a policy"), &turn(), &request("x")), "c");
    let embeds = policy(r#"{"default": {"mode": "embed"}}"#).expect("a policy");
    let error = embeds.route(&turn(), &request("x"), &[target("small", 0, 0)]).expect_err("nobody embeds");
    assert!(error.contains("[default]"), "{error}");
}

#[test]
fn a_plan_takes_from_the_defaults_what_its_rule_leaves_out() {
    let config = r#"{
        "default": {"priority": 90, "max_tokens": 5, "stop": ["。"], "regex": "[0-9]+"},
        "rule": [{"name": "a", "plan": {"max_tokens": 7, "json_schema": "{}"}}]
    }"#;
    let plan = plan(&policy(config).expect("a policy"), &turn(), &request("x"), &[target("small", 0, 0)]);
    assert_eq!((plan.priority, plan.max_tokens), (90, Some(7)));
    let guidance = plan.guidance.expect("guidance");
    assert_eq!(guidance.stop, ["。"]);
    assert_eq!(guidance.grammar, Some(Grammar::JsonSchema("{}".into())));
}

#[test]
fn words_are_said_in_the_language_of_the_turn() {
    let policy =
        policy(r#"{"rule": [{"name": "a", "answer": {"zh": "好", "en": "ok"}}]}"#).expect("a policy");
    let said = |locale: &str, text: &str| {
        let turn = Turn { locale: locale.into(), ..turn() };
        policy.route(&turn, &request(text), &[target("small", 0, 0)])
    };
    assert_eq!(said("", "你好"), Ok(Decision::Answer("好".into())));
    assert_eq!(said("", "hello"), Ok(Decision::Answer("ok".into())));
    assert_eq!(said("zh-TW", "hello"), Ok(Decision::Answer("好".into())));
    assert_eq!(said("en-GB", "你好"), Ok(Decision::Answer("ok".into())));
}

#[test]
fn rules_that_can_never_be_right_are_refused_by_name() {
    for (rule, part) in [
        (r#"{"name": "a"}"#, "needs one of"),
        (r#"{"name": "a", "plan": {}, "answer": "x"}"#, "needs one of"),
        (r#"{"name": "a", "answer": " "}"#, "empty text"),
        (r#"{"name": "a", "refuse": {"status": 200, "reason": "x"}}"#, "status 200"),
        (r#"{"name": "a", "plan": {"max_tokens": 0}}"#, "`max_tokens`"),
        (r#"{"name": "a", "plan": {"compress_to": 1.5}}"#, "`compress_to`"),
        (r#"{"name": "a", "plan": {"stop": [""]}}"#, "`stop`"),
        (r#"{"name": "a", "plan": {}, "when": {"any": [""]}}"#, "empty word"),
        (r#"{"name": "a", "plan": {}, "when": {"tenant": []}}"#, "empty list"),
        (r#"{"name": "a", "plan": {}, "when": {"queue": {"min": 2, "max": 1}}}"#, "`queue`"),
    ] {
        let error = policy(&format!(r#"{{"rule": [{rule}]}}"#)).expect_err(rule);
        assert!(error.starts_with("rule `a`: ") && error.contains(part), "{error}");
    }
}
