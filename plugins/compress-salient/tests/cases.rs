//! The recorded cases, run natively: imports answer what the case says, and nothing else.

mod common;

use common::{applied, configured, folder, rules};
use compress_salient::Host;
use jackfield_sdk::compression::{Budget, Part};
use jackfield_sdk::imports::saliency::Scored;
use jackfield_sdk::{Message, Role, Span};
use serde_json::{Value as Json, json};

/// The `imports` of a case.
struct Recorded<'a>(&'a [Json]);

impl Recorded<'_> {
    fn answer(&self, import: &str, text: &str) -> &Json {
        let found = self.0.iter().find(|answer| answer["import"] == import && answer["text"] == text);
        found.unwrap_or_else(|| panic!("{import} of {text:?} is not recorded"))
    }
}

impl Host for Recorded<'_> {
    fn count(&self, text: &str) -> u32 {
        number(&self.answer("count", text)["tokens"], 0)
    }

    fn score(&self, text: &str) -> Result<Vec<Scored>, String> {
        let scored = &self.answer("score", text)["scored"];
        let one = |token: &Json| Scored {
            end: number(&token["end"], 0),
            surprisal_bits: token["surprisal_bits"].as_f64().expect("a number") as f32,
        };
        match scored["Ok"].as_array() {
            Some(tokens) => Ok(tokens.iter().map(one).collect()),
            None => Err(scored["Err"].as_str().expect("a sentence").into()),
        }
    }
}

fn number(json: &Json, or: u64) -> u32 {
    json.as_u64().unwrap_or(or) as u32
}

fn part(json: &Json) -> Part {
    let spans = json["protected"].as_array().into_iter().flatten();
    let role = match json["role"].as_str() {
        Some("system") => Role::System,
        Some("assistant") => Role::Assistant,
        Some("tool") => Role::Tool,
        _ => Role::User,
    };
    Part {
        message: Message { role, text: json["text"].as_str().expect("a text").into() },
        protected: spans.map(|s| Span { start: number(&s["start"], 0), end: number(&s["end"], 0) }).collect(),
        cached_bytes: number(&json["cached-bytes"], 0),
    }
}

fn budget(json: &Json) -> Budget {
    Budget {
        keep_tokens: number(&json["keep-tokens"], 500),
        prompt_tokens: number(&json["prompt-tokens"], 1000),
        us_per_token: json["us-per-token"].as_f64().unwrap_or(5000.0) as f32,
    }
}

#[test]
fn all_recorded_cases_come_out_as_expected() {
    let policy = configured(&rules()).expect("valid");
    let mut count = 0;
    let mut wrong = Vec::new();
    for file in std::fs::read_dir(folder().join("cases")).expect("cases/ is there") {
        let text = std::fs::read_to_string(file.expect("an entry").path()).expect("readable");
        for case in serde_json::from_str::<Vec<Json>>(&text).expect("an array of cases") {
            count += 1;
            let parts: Vec<Part> =
                case["input"]["parts"].as_array().expect("parts").iter().map(part).collect();
            let imports = case["imports"].as_array().expect("a case says what its imports answer");
            let edits = policy.edits(&Recorded(imports), &parts, &budget(&case["input"]["budget"]));
            let found = json!({ "texts": applied(&parts, &edits) });
            if found != case["expect"] {
                wrong.push(format!("{}\n  wanted {}\n  found  {found}", case["name"], case["expect"]));
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {count} cases:\n{}", wrong.len(), wrong.join("\n"));
    assert!(count >= 15, "{count} cases");
}
