//! The recorded cases, run natively: the same files that the host runs before it activates the policy.

use jackfield_sdk::slot_extraction::{Dialog, Next, SlotExtractor, Transition};
use jackfield_sdk::{Instant, Message, Policy, Role, Slot, Span, Turn, Value};
use serde_json::{Value as Json, json};
use slots_orders::SlotsOrders;
use slots_orders::civil::Day;
use std::path::Path;

fn folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn policy() -> SlotsOrders {
    let rules = std::fs::read_to_string(folder().join("rules.toml")).expect("rules.toml is there");
    SlotsOrders::configure(toml::from_str(&rules).expect("rules.toml fits")).expect("rules.toml is valid")
}

/// `2026-03-31T23:59:59+08:00`
fn instant(text: &str) -> Instant {
    let number = |at: std::ops::Range<usize>| text[at].parse::<i64>().expect("digits");
    let day = Day::of_civil(number(0..4), number(5..7) as u32, number(8..10) as u32).expect("a date").0;
    let offset = match &text[19..] {
        "Z" => 0,
        zone => {
            (zone[1..3].parse::<i64>().unwrap() * 60 + zone[4..6].parse::<i64>().unwrap())
                * if zone.starts_with('-') { -1 } else { 1 }
        }
    };
    let seconds = day * 86_400 + number(11..13) * 3600 + number(14..16) * 60 + number(17..19) - offset * 60;
    Instant { unix_ms: seconds as f64 * 1000.0, utc_offset_minutes: offset as i16 }
}

fn turn(case: &Json) -> Turn {
    let locale = case["turn"]["locale"].as_str().unwrap_or("");
    Turn {
        id: "test".into(),
        tenant: "test".into(),
        session: None,
        task: None,
        locale: locale.into(),
        now: instant(case["now"].as_str().unwrap_or("2026-01-01T12:00:00Z")),
        seed: 0,
        headers: vec![],
        attributes: vec![],
    }
}

fn messages(input: &Json) -> Vec<Message> {
    let one = |role: &str, text: &Json| Message {
        role: match role {
            "system" => Role::System,
            "assistant" => Role::Assistant,
            "tool" => Role::Tool,
            _ => Role::User,
        },
        text: text.as_str().expect("text").into(),
    };
    match input["recent"].as_array() {
        Some(recent) => {
            recent.iter().map(|m| one(m["role"].as_str().unwrap_or("user"), &m["text"])).collect()
        }
        None => vec![one("user", &input["text"])],
    }
}

fn value(json: &Json) -> Value {
    let (kind, value) = json.as_object().and_then(|o| o.iter().next()).expect("a variant");
    match (kind.as_str(), value) {
        ("number", n) => Value::Number(n.as_f64().expect("a number")),
        ("date", s) => Value::Date(s.as_str().expect("text").into()),
        ("choice", s) => Value::Choice(s.as_str().expect("text").into()),
        (_, s) => Value::Text(s.as_str().expect("text").into()),
    }
}

fn dialog(json: &Json) -> Dialog {
    let slots = json["slots"].as_array().into_iter().flatten().map(|slot| Slot {
        name: slot["name"].as_str().expect("a name").into(),
        value: value(&slot["value"]),
        source: None,
        confidence: 1.0,
    });
    Dialog {
        state: json["state"].as_str().unwrap_or("").into(),
        slots: slots.collect(),
        schema: json["schema"].as_u64().unwrap_or(0) as u32,
    }
}

fn value_json(value: &Value) -> Json {
    match value {
        Value::Text(s) => json!({ "text": s }),
        Value::Number(n) => json!({ "number": n }),
        Value::Boolean(b) => json!({ "boolean": b }),
        Value::Date(s) => json!({ "date": s }),
        Value::Choice(s) => json!({ "choice": s }),
    }
}

fn answer_json(transition: &Transition, before: &Dialog) -> Json {
    let span = |span: &Span| json!({ "start": span.start, "end": span.end });
    let set = transition.set.iter().map(
        |s| json!({ "name": s.name, "value": value_json(&s.value), "source": s.source.as_ref().map(span) }),
    );
    let kept = before.slots.iter().filter(|s| !transition.clear.contains(&s.name));
    let slots: serde_json::Map<_, _> =
        kept.chain(&transition.set).map(|s| (s.name.clone(), value_json(&s.value))).collect();
    let next = match &transition.next {
        Next::Model => json!("model"),
        Next::Answer(text) => json!({ "answer": text }),
        Next::Prompt(messages) => {
            json!({ "prompt": messages.iter().map(|m| json!({ "role": format!("{:?}", m.role).replace("Role::", "").to_lowercase(), "text": m.text })).collect::<Vec<_>>() })
        }
    };
    json!({ "state": transition.state, "set": set.collect::<Vec<_>>(), "clear": transition.clear, "slots": slots, "next": next })
}

/// Whether `wanted` is a part of `found`; `null` means absent.
fn within(wanted: &Json, found: &Json) -> bool {
    match (wanted, found) {
        (Json::Object(wanted), _) => {
            wanted.iter().all(|(key, value)| within(value, found.get(key).unwrap_or(&Json::Null)))
        }
        (Json::Array(wanted), Json::Array(found)) => {
            wanted.len() == found.len() && wanted.iter().zip(found).all(|(w, f)| within(w, f))
        }
        (Json::Number(wanted), Json::Number(found)) => wanted.as_f64() == found.as_f64(),
        _ => wanted == found,
    }
}

#[test]
fn all_recorded_cases_come_out_as_expected() {
    let policy = policy();
    let mut count = 0;
    let mut wrong = Vec::new();
    for file in std::fs::read_dir(folder().join("cases")).expect("cases/ is there") {
        let text = std::fs::read_to_string(file.expect("an entry").path()).expect("readable");
        for case in serde_json::from_str::<Vec<Json>>(&text).expect("an array of cases") {
            count += 1;
            let before = dialog(&case["input"]["dialog"]);
            let recent = messages(&case["input"]);
            let found = policy.extract(&turn(&case), &recent, &before).expect("no error");
            check(&found, &recent);
            let found = answer_json(&found, &before);
            if !within(&case["expect"], &found) {
                wrong.push(format!("{}\n  wanted {}\n  found  {found}", case["name"], case["expect"]));
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {count} cases:\n{}", wrong.len(), wrong.join("\n"));
    assert!(count >= 100, "{count} cases");
}

/// What the host checks of a transition.
fn check(transition: &Transition, recent: &[Message]) {
    let text = &recent.last().expect("an utterance").text;
    for (n, slot) in transition.set.iter().enumerate() {
        match &slot.source {
            Some(span) => assert!(
                text.get(span.range()).is_some_and(|found| !found.is_empty()),
                "{} of {text:?}",
                slot.name
            ),
            None => assert!(["language", "prompted", "told"].contains(&slot.name.as_str()), "{}", slot.name),
        }
        assert!(transition.set[..n].iter().all(|other| other.name != slot.name), "{} twice", slot.name);
        assert!(!transition.clear.contains(&slot.name), "{} set and cleared", slot.name);
    }
    if let Next::Answer(reply) = &transition.next {
        assert!(!reply.trim().is_empty());
    }
}

/// SplitMix64 (Steele, Lea, Flood 2014): the same numbers on every run.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % bound as u64) as usize
    }

    fn text(&mut self) -> String {
        const PIECES: &[&str] = &[
            "上",
            "下",
            "个",
            "月",
            "周",
            "星期",
            "日",
            "号",
            "天",
            "后",
            "前",
            "過",
            "年",
            "一",
            "三",
            "十",
            "百",
            "两",
            "〇",
            "2026",
            "3",
            "31",
            "０",
            "１２",
            "-",
            "－",
            "/",
            ".",
            ":",
            "：",
            "，",
            "。",
            "？",
            " ",
            "　",
            "\n",
            "点",
            "半",
            "早",
            "到",
            "明",
            "今",
            "晚上",
            "不",
            "别",
            "取消",
            "要",
            "吗",
            "能不能",
            "改到",
            "订单",
            "ＡＢ",
            "AB",
            "cancel",
            "don't",
            "don’t",
            "next",
            "Monday",
            "in",
            "days",
            "ago",
            "March",
            "may",
            "to",
            "+86",
            "138",
            "00138000",
            "(",
            ")",
            "上海",
            "南京",
            "路",
            "😀",
            "👨‍👩‍👧",
            "é",
            "e\u{301}",
            "\u{200d}",
            "\u{feff}",
            "\0",
            "yes",
            "no",
            "是的",
            "{",
            "}",
            "{order}",
            "8pm",
            "am",
            "个",
            "qty",
            "99999999999999999999",
            "第",
            "几",
            "一月二十三",
            "大",
            "\u{10ffff}",
            "İ",
            "ß",
        ];
        let pieces = self.below(24);
        (0..pieces)
            .map(|_| match self.below(8) {
                0 => char::from_u32(self.below(0x11_0000) as u32).unwrap_or('x').to_string(),
                _ => PIECES[self.below(PIECES.len())].to_owned(),
            })
            .collect()
    }
}

#[test]
fn any_text_at_any_time_gives_a_valid_transition() {
    let policy = policy();
    let mut random = Random(1);
    let states = [
        "",
        "idle",
        "need-order",
        "need-change",
        "confirm-cancel",
        "confirm-change",
        "answering",
        "unheard-of",
    ];
    let times = [
        0.0,
        1_774_972_799_000.0,
        -1e12,
        253_402_300_799_000.0,
        f64::NAN,
        f64::INFINITY,
        1e300,
        -62_135_596_800_000.0,
    ];
    for round in 0..30_000 {
        let recent = [Message { role: Role::User, text: random.text() }];
        let mut turn = turn(&json!({}));
        turn.now = Instant {
            unix_ms: times[random.below(times.len())],
            utc_offset_minutes: [0, 480, -720, i16::MIN, i16::MAX][random.below(5)],
        };
        let slot =
            |name: &str, value: Value| Slot { name: name.into(), value, source: None, confidence: 1.0 };
        let action = ["cancel", "change", "query", "nonsense"][random.below(4)];
        let mut slots = vec![slot("action", Value::Choice(action.into()))];
        if random.below(2) == 0 {
            slots.push(slot("order", Value::Text("AB-12345678".into())));
            slots.push(slot("date", Value::Boolean(true)));
        }
        let before = Dialog { state: states[random.below(states.len())].into(), slots, schema: 1 };
        let found = policy.extract(&turn, &recent, &before).unwrap_or_else(|e| panic!("round {round}: {e}"));
        check(&found, &recent);
        for slot in &found.set {
            if let Value::Date(date) = &slot.value {
                let days = date.split('/').map(|day| (day.len(), day.is_ascii())).collect::<Vec<_>>();
                assert!(days.iter().all(|d| *d == (10, true)) && days.len() <= 2, "{date}");
            }
        }
    }
}

#[test]
fn a_long_text_is_read_to_its_limit_only() {
    let text = "订".repeat(20_000) + "订单号12345678";
    let recent = [Message { role: Role::User, text }];
    let found = policy().extract(&turn(&json!({})), &recent, &dialog(&json!({}))).expect("no error");
    assert_eq!(found.set.len(), 0);
}

#[test]
fn a_rule_file_with_a_wrong_name_is_refused_and_the_name_told() {
    let rules = std::fs::read_to_string(folder().join("rules.toml")).expect("rules.toml is there");
    for (from, to, said) in [
        ("go = \"human\"", "go = \"hooman\"", "hooman"),
        ("topic = \"order\"", "topic = \"odrer\"", "odrer"),
        ("订单 {order} 的取消", "订单 {oder} 的取消", "oder"),
        ("action = \"to-human\"", "action = \"to-humans\"", "to-humans"),
        ("[A-Z]{2}-?[0-9]{6,12}", "[A-Z]{2}-*[0-9]", "`*`"),
        ("has = [\"order\"]", "has = [\"ordre\"]", "ordre"),
    ] {
        assert!(rules.contains(from), "{from}");
        let error =
            SlotsOrders::configure(toml::from_str(&rules.replacen(from, to, 1)).expect("still TOML")).err();
        assert!(error.as_deref().is_some_and(|e| e.contains(said)), "{to}: {error:?}");
    }
}

#[test]
fn the_config_schema_names_every_section() {
    let schema: Json = serde_json::from_str(&SlotsOrders::describe().config_schema).expect("JSON");
    let rules: Json =
        toml::from_str(&std::fs::read_to_string(folder().join("rules.toml")).expect("there")).expect("TOML");
    for section in rules.as_object().expect("a table").keys() {
        assert!(schema["properties"].get(section).is_some(), "{section}");
    }
}
