//! The recorded cases, run natively, and what must hold for any text.

use compress_courtesy::text::View;
use compress_courtesy::{CompressCourtesy, guard};
use jackfield_sdk::compression::{Budget, Compressor, Part};
use jackfield_sdk::{Edit, Instant, Message, Policy, Role, Span, Turn};
use serde_json::{Value as Json, json};
use std::ops::Range;
use std::path::Path;

fn folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn rules() -> String {
    std::fs::read_to_string(folder().join("rules.toml")).expect("rules.toml is there")
}

fn policy(rules: &str) -> CompressCourtesy {
    CompressCourtesy::configure(toml::from_str(rules).expect("rules.toml fits")).expect("rules.toml is valid")
}

fn turn() -> Turn {
    Turn {
        id: "test".into(),
        tenant: "test".into(),
        session: None,
        task: None,
        locale: String::new(),
        now: Instant { unix_ms: 0.0, utc_offset_minutes: 0 },
        seed: 0,
        headers: vec![],
        attributes: vec![],
    }
}

fn role(name: &str) -> Role {
    match name {
        "system" => Role::System,
        "assistant" => Role::Assistant,
        "tool" => Role::Tool,
        _ => Role::User,
    }
}

fn number(json: &Json, or: u64) -> u32 {
    json.as_u64().unwrap_or(or) as u32
}

fn part(json: &Json) -> Part {
    let spans = json["protected"].as_array().into_iter().flatten();
    Part {
        message: Message {
            role: role(json["role"].as_str().unwrap_or("user")),
            text: json["text"].as_str().expect("a text").into(),
        },
        protected: spans.map(|s| Span { start: number(&s["start"], 0), end: number(&s["end"], 0) }).collect(),
        cached_bytes: number(&json["cached-bytes"], 0),
    }
}

fn parts(input: &Json) -> Vec<Part> {
    match input["parts"].as_array() {
        Some(parts) => parts.iter().map(part).collect(),
        None => vec![part(input)],
    }
}

fn budget(json: &Json) -> Budget {
    Budget {
        keep_tokens: number(&json["keep-tokens"], 500),
        prompt_tokens: number(&json["prompt-tokens"], 1000),
        us_per_token: json["us-per-token"].as_f64().unwrap_or(5000.0) as f32,
    }
}

/// The texts after the edits; the host's checks on the way.
fn applied(parts: &[Part], edits: &[Edit]) -> Vec<String> {
    let mut texts: Vec<String> = parts.iter().map(|part| part.message.text.clone()).collect();
    let mut ends = vec![0u32; parts.len()];
    for edit in edits {
        let message = edit.message as usize;
        assert!(
            edit.at.start >= ends[message] && edit.at.start < edit.at.end,
            "edits rise and are not empty"
        );
        assert!(edit.replacement.is_empty());
        ends[message] = edit.at.end;
        for span in &parts[message].protected {
            assert!(edit.at.end <= span.start || span.end <= edit.at.start, "a protected span was touched");
        }
    }
    for edit in edits.iter().rev() {
        texts[edit.message as usize].replace_range(edit.at.range(), "");
    }
    texts
}

#[test]
fn all_recorded_cases_come_out_as_expected() {
    let policy = policy(&rules());
    let mut count = 0;
    let mut wrong = Vec::new();
    for file in std::fs::read_dir(folder().join("cases")).expect("cases/ is there") {
        let text = std::fs::read_to_string(file.expect("an entry").path()).expect("readable");
        for case in serde_json::from_str::<Vec<Json>>(&text).expect("an array of cases") {
            count += 1;
            let parts = parts(&case["input"]);
            let edits =
                policy.compress(&turn(), &parts, &budget(&case["input"]["budget"])).expect("no error");
            let shown = |e: &Edit| json!({ "message": e.message, "at": { "start": e.at.start, "end": e.at.end }, "replacement": e.replacement });
            let mut found = json!({ "texts": applied(&parts, &edits), "edits": edits.iter().map(shown).collect::<Vec<_>>() });
            found.as_object_mut().expect("an object").retain(|key, _| case["expect"].get(key).is_some());
            if found != case["expect"] {
                wrong.push(format!("{}\n  wanted {}\n  found  {found}", case["name"], case["expect"]));
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {count} cases:\n{}", wrong.len(), wrong.join("\n"));
    assert!(count >= 50, "{count} cases");
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
            "你好",
            "您好",
            "请问",
            "请问一下",
            "谢谢",
            "好的",
            "嗯嗯",
            "嗯",
            "那个",
            "麻烦您",
            "之类的",
            "不",
            "没",
            "别",
            "特别",
            "非常感谢",
            "订单",
            "上海",
            "３",
            "12",
            "1,000",
            "3.5",
            "，",
            "。",
            "！",
            "？",
            "、",
            " ",
            "　",
            "\n",
            "hello",
            "Hi",
            "thanks",
            "thank you",
            "please",
            "could you please",
            "not",
            "don't",
            "don’t",
            "never",
            "no",
            "um",
            "UM",
            "ok",
            "yes",
            "or something",
            ", ",
            ". ",
            "! ",
            "\"",
            "“",
            "”",
            "「",
            "」",
            "'",
            "`",
            "```",
            "{",
            "}",
            "[",
            "]",
            "https://a.b/c",
            "> ",
            "😀",
            "👨‍👩‍👧",
            "e\u{301}",
            "\u{feff}",
            "\0",
            "John",
            "kg",
            "...",
            "—",
            "~",
            ":",
        ];
        let pieces = self.below(30);
        (0..pieces)
            .map(|_| match self.below(12) {
                0 => char::from_u32(self.below(0x11_0000) as u32).unwrap_or('x').to_string(),
                _ => PIECES[self.below(PIECES.len())].to_owned(),
            })
            .collect()
    }
}

fn is_subsequence(short: &str, long: &str) -> bool {
    let mut rest = long.chars();
    short.chars().all(|c| rest.any(|d| d == c))
}

/// Bytes that no edit may touch: numbers, negations, quotations, code, JSON, URLs.
fn must_stay(text: &str) -> Vec<Range<usize>> {
    let view = View::new(text);
    let kept = guard::kept(&view, &[]);
    let single = |at: usize| view.bytes(&(at..at + 1));
    let signs = (0..view.len()).filter(|&at| kept[at] || view.raw(at).is_some_and(char::is_numeric));
    let negations = guard::negations(&view);
    signs.map(single).chain(negations.iter().map(|range| view.bytes(range))).collect()
}

fn negations(text: &str) -> Vec<String> {
    let view = View::new(text);
    guard::negations(&view).iter().map(|range| text[view.bytes(range)].to_owned()).collect()
}

#[test]
fn whatever_the_text_only_whole_characters_go_and_what_carries_meaning_stays() {
    let keep = policy(&rules());
    let edges = policy(&rules().replace("last_user_message = \"keep\"", "last_user_message = \"edges\""));
    let mut random = Random(7);
    let mut edited = 0;
    for round in 0..20_000 {
        let policy = if round % 2 == 0 { &keep } else { &edges };
        let roles = ["user", "assistant", "user", "system", "tool"];
        let mut parts: Vec<Part> = (0..2 + random.below(3))
            .map(|_| part(&json!({ "role": roles[random.below(roles.len())], "text": random.text() })))
            .collect();
        if let Some(first) = parts.first_mut()
            && random.below(3) == 0
        {
            first.cached_bytes = first.message.text.len() as u32;
        }
        let edits = policy.compress(&turn(), &parts, &budget(&json!({}))).expect("no error");
        edited += edits.len();
        for (message, (part, after)) in parts.iter().zip(applied(&parts, &edits)).enumerate() {
            let before = &part.message.text;
            assert!(is_subsequence(&after, before), "round {round}: {before:?} → {after:?}");
            let stay = must_stay(before);
            for edit in edits.iter().filter(|edit| edit.message as usize == message) {
                let gone = edit.at.range();
                let lost = stay.iter().find(|range| range.start < gone.end && gone.start < range.end);
                assert_eq!(lost, None, "round {round}: {before:?} lost {:?}", &before[gone]);
            }
            assert_eq!(negations(before), negations(&after), "round {round}: {before:?} → {after:?}");
            let words = |s: &str| s.chars().filter(|c| c.is_alphanumeric()).count();
            assert!(words(before) == 0 || words(&after) > 0, "round {round}: {before:?} lost its last word");
            if matches!(part.message.role, Role::System | Role::Tool) {
                assert_eq!(before, &after);
            }
        }
    }
    assert!(edited > 4_000, "{edited} edits: the texts are too tame");
}

#[test]
fn edges_of_the_last_message_go_only_when_the_rules_say_so() {
    let text = json!({ "text": "你好，请问一下，红的，谢谢，还是蓝的？谢谢！" });
    let after = |rules: &str| {
        let parts = parts(&text);
        let edits = policy(rules).compress(&turn(), &parts, &budget(&json!({}))).expect("no error");
        applied(&parts, &edits).remove(0)
    };
    assert_eq!(after(&rules()), "你好，请问一下，红的，谢谢，还是蓝的？谢谢！");
    let edges = rules().replace("last_user_message = \"keep\"", "last_user_message = \"edges\"");
    assert_eq!(after(&edges), "红的，谢谢，还是蓝的？");
}

#[test]
fn a_phrase_that_could_take_meaning_with_it_is_refused() {
    let worse = rules().replace("\"盼复\",", "\"盼复\", \"不好意思\",");
    let error = CompressCourtesy::configure(toml::from_str(&worse).expect("still TOML")).err();
    assert_eq!(error.as_deref(), Some("whole: `不好意思` holds a negation; it must not be dropped"));
}

#[test]
fn the_config_schema_names_every_section() {
    let schema: Json = serde_json::from_str(&CompressCourtesy::describe().config_schema).expect("JSON");
    let rules: Json = toml::from_str(&rules()).expect("TOML");
    for section in rules.as_object().expect("a table").keys() {
        assert!(schema["properties"].get(section).is_some(), "{section}");
    }
}
