//! What goes and what stays when everything that may go does, and in which order it goes.

mod common;

use common::{Words, applied, before_question, nothing_left, part, policy, prompt_tokens};
use jackfield_sdk::compression::Budget;
use jackfield_sdk::{Role, Span};

/// The first message, when all that may go does.
fn left(text: &str) -> String {
    let parts = before_question(text);
    let edits = policy().edits(&Words::default(), &parts, &nothing_left(&parts));
    applied(&parts, &edits).remove(0)
}

fn all(cases: &[(&str, &str)]) {
    let wrong: Vec<String> = cases
        .iter()
        .filter(|(text, expected)| left(text) != *expected)
        .map(|(text, expected)| format!("{text:?}\n  wanted {expected:?}\n  found  {:?}", left(text)))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn names_numbers_times_negations_and_verbs_stay() {
    all(&[
        (
            "Well, I really want to return the red shoes from Berlin",
            "I really want to return the from Berlin",
        ),
        ("The parcel weighs about 12.5 kg and costs $1,200.50", "weighs about 12.5 kg and costs $1,200.50"),
        ("It was shipped on March 3rd at 8:30 pm, I think", "It was shipped on March 3rd at 8:30 pm, think"),
        ("The box is not really damaged at all", "is not really damaged at all"),
        ("Please don't just cancel the whole thing", "don't just cancel the"),
        ("it shouldn’t ever happen with the blue ones", "it shouldn’t ever with"),
        ("a case without any visible scratches", "without any visible"),
    ]);
}

#[test]
fn what_is_no_prose_stays() {
    all(&[
        ("well, see the file src/main.rs and a@b.example please", "see the src/main.rs and a@b.example"),
        ("the snake_case name, the f(x) and the a=b", "the snake_case, the f(x) and the a=b"),
        ("the value of `the x of it` is wrong", "of `the x of it`"),
        ("really the\n```\nthe a of it\n```\nreally the", "really the\n```\nthe a of it\n```\nreally the"),
        ("so the {\"a\": \"the of\"} thing", "so {\"a\": \"the of\"}"),
        ("in the words “the of a” of the author", "in “the of a” of"),
        ("see https://example.com/the/of?a=the for the rest", "see https://example.com/the/of?a=the for"),
    ]);
}

#[test]
fn what_completes_a_verb_and_what_leads_to_a_number_stays() {
    all(&[
        ("the people want it, and the garage will look into it", "want it, and will into it"),
        ("a bench for two in the garden of Ann", "for two in of Ann"),
        ("four is a good number, 3 is enough", "four is, 3 is"),
        ("just two of the boxes, just boxes", "just two of, just"),
        ("帮我修改一下颜色，再试一试，看看窗户", "帮我修改一下，试一试，看看"),
        ("那个，那个订单买贵了，哈密瓜呀，苹果", "那个订单买贵了，哈密"),
        ("要是明天的话就不去呢", "要是明天的话就不去呢"),
    ]);
}

#[test]
fn nothing_is_left_over_where_words_went() {
    all(&[
        ("I want, I mean, 12 kg, please.", "want, 12 kg."),
        ("Thanks! Send the box (the blue one, please) to Ann.", "Send the (one) to Ann."),
        ("Send it (please) to Ann", "Send it to Ann"),
        ("Really? Well... Send it! Thanks.", "Really? Send it!"),
        ("Thanks.\n\nSend it to Ann.\n\nThe rest is fine.\n\nKeep Bob.", "Send it to Ann.\n\nKeep Bob."),
        ("- the blue thing\n- Send it\n- a box", "- Send it"),
        ("## The end\nSend it", "## end\nSend it"),
        ("Send Ann — please — the box", "Send Ann"),
    ]);
}

#[test]
fn chinese_goes_in_words_and_characters_without_spaces() {
    all(&[
        ("那个，我昨天的订单就是想要退货，麻烦了", "我昨天的想要退货"),
        ("麻烦您帮我查一下，３个苹果和两箱梨什么时候发货", "我查一下，３个和两箱发货"),
        ("我不是很喜欢这个颜色", "我不是很喜"),
        ("我姓王小明的，住在南京路", "我姓王小明的，在南京路"),
        ("他说“的了吧”了", "他说“的了吧”了"),
        ("下午三点半到，第一批货", "下午三点半到，第一"),
        ("Cat的Dog", "Cat的Dog"),
        ("三的十", "三的十"),
    ]);
}

#[test]
fn a_character_is_never_cut() {
    let family = "👨‍👩‍👧";
    all(&[
        (&format!("买好看{family}的了"), &format!("买好{family}的了")[..]),
        (&format!("{family}的👩‍👧 Ann"), &format!("{family}的👩‍👧 Ann")[..]),
        ("send a cafe\u{301} thing to Zoe\u{301} 🇫🇷", "send a to Zoe\u{301} 🇫🇷"),
    ]);
}

#[test]
fn a_message_keeps_its_last_word() {
    assert!(!left("the of a").is_empty());
    assert!(!left("谢谢").is_empty());
    assert_eq!(left(""), "");
    assert_eq!(left(" \n "), " \n ");
}

#[test]
fn the_least_surprising_goes_first_and_no_more_than_needed() {
    // Bits are a function of the word: alpha 5.2, gravel 12.0, ... found by the order in which they go.
    let parts = before_question("alpha gravel basket lemon copper window");
    let before = prompt_tokens(&parts);
    let mut last = applied(&parts, &[]).remove(0);
    for keep_tokens in (before - 5..before).rev() {
        let budget = Budget { keep_tokens, prompt_tokens: before, us_per_token: 2000.0 };
        let edits = policy().edits(&Words::default(), &parts, &budget);
        let text = applied(&parts, &edits).remove(0);
        assert_eq!(Words::ends(&text).len(), Words::ends(&last).len() - 1, "{last:?} → {text:?}");
        assert!(text.split(' ').all(|word| last.contains(word)), "{last:?} → {text:?}");
        last = text;
    }
    assert_eq!(last.split(' ').count(), 1);
}

#[test]
fn fillers_go_without_a_question_to_the_model() {
    let parts = before_question("Well, um, I would like the blue box of course");
    let budget = Budget { keep_tokens: prompt_tokens(&parts) - 2, ..nothing_left(&parts) };
    let host = Words::default();
    let edits = policy().edits(&host, &parts, &budget);
    assert!(!edits.is_empty());
    assert!(host.scored.borrow().is_empty());
}

#[test]
fn without_the_model_only_the_lists_speak() {
    let parts = before_question("Well, the blue box is in the old garage");
    let host = Words { refuses: true, ..Words::default() };
    let edits = policy().edits(&host, &parts, &nothing_left(&parts));
    assert_eq!(applied(&parts, &edits)[0], "blue box is in old garage");
    let keep = common::rules().replace("when_unavailable = \"rules\"", "when_unavailable = \"keep\"");
    let keep = common::configured(&keep.replace("least_prompt_tokens = 64", "least_prompt_tokens = 0"));
    let keep = keep.expect("valid");
    let long = before_question(
        "Well, the blue box is in the old garage behind the long house near quiet wooden windows",
    );
    assert_eq!(keep.edits(&host, &long, &nothing_left(&long)), []);
}

#[test]
fn the_model_is_asked_once_of_each_message_and_no_more_after_a_refusal() {
    let text = "the blue box lies in old garage corners behind long wooden house walls ";
    let parts =
        vec![part(Role::User, text), part(Role::Assistant, &text.repeat(30)), part(Role::User, "so?")];
    let host = Words::default();
    policy().edits(&host, &parts, &nothing_left(&parts));
    let asked: Vec<usize> = host.scored.borrow().iter().map(String::len).collect();
    assert_eq!(asked.len(), 2);
    assert!((1000..=1024).contains(&asked[0]) && asked[1] == text.len(), "{asked:?}");
    let host = Words { refuses: true, ..Words::default() };
    policy().edits(&host, &parts, &nothing_left(&parts));
    assert_eq!(host.scored.borrow().len(), 1);
}

#[test]
fn system_tool_and_the_question_stay() {
    let text = "Well, the blue box is in the old garage";
    let roles = [Role::System, Role::Tool, Role::User, Role::Assistant, Role::User];
    let parts: Vec<_> = roles.iter().map(|role| part(*role, text)).collect();
    let edits = policy().edits(&Words::default(), &parts, &nothing_left(&parts));
    let changed: Vec<bool> = applied(&parts, &edits).iter().map(|after| after != text).collect();
    assert_eq!(changed, [false, false, true, true, false]);
}

#[test]
fn what_the_host_protects_stays() {
    let mut parts = before_question("the blue box of the old house");
    parts[0].protected = vec![Span::new(4..12), Span::new(16..17)];
    let edits = policy().edits(&Words::default(), &parts, &nothing_left(&parts));
    assert_eq!(applied(&parts, &edits)[0], "blue box of the");
}

#[test]
fn a_cached_prefix_is_left_alone_while_words_behind_it_are_enough() {
    let text = "the blue box of the old house with the long wall";
    let mut parts = vec![part(Role::User, text), part(Role::Assistant, text), part(Role::User, "so?")];
    parts[0].cached_bytes = text.len() as u32;
    let budget = Budget { keep_tokens: prompt_tokens(&parts) - 4, ..nothing_left(&parts) };
    let edits = policy().edits(&Words::default(), &parts, &budget);
    assert!(!edits.is_empty() && edits.iter().all(|edit| edit.message == 1), "{edits:?}");
    // All of it may go: more than is read again.
    let edits = policy().edits(&Words::default(), &parts, &nothing_left(&parts));
    assert!(edits.iter().any(|edit| edit.message == 0), "{edits:?}");
    // What must be read again is more than what goes.
    parts[0] = part(Role::User, "the Alpha, Beta, Gamma, Delta, Epsilon and Zeta of Kappa");
    parts[0].cached_bytes = parts[0].message.text.len() as u32;
    let edits = policy().edits(&Words::default(), &parts, &nothing_left(&parts));
    assert!(edits.iter().all(|edit| edit.message == 1), "{edits:?}");
    // A token that costs nothing pays for nothing.
    parts[0] = part(Role::User, text);
    parts[0].cached_bytes = text.len() as u32;
    let free = Budget { us_per_token: 0.0, ..nothing_left(&parts) };
    assert!(policy().edits(&Words::default(), &parts, &free).iter().all(|edit| edit.message == 1));
}

#[test]
fn a_cut_within_the_cached_message_stays_behind_the_cut() {
    let text = "the Alpha Box, of the old house with the long wall";
    let mut parts = before_question(text);
    parts[0].cached_bytes = 14;
    let edits = policy().edits(&Words::default(), &parts, &nothing_left(&parts));
    assert!(edits.iter().all(|edit| edit.at.start >= 14), "{edits:?}");
    assert_eq!(applied(&parts, &edits)[0], "the Alpha Box, of with");
}

#[test]
fn within_the_budget_nothing_is_edited() {
    let parts = before_question("Well, the blue box is in the old garage");
    let budget = nothing_left(&parts);
    let fits = Budget { keep_tokens: budget.prompt_tokens, ..budget };
    assert_eq!(policy().edits(&Words::default(), &parts, &fits), []);
    assert_eq!(policy().edits(&Words::default(), &[], &budget), []);
    let shipped = common::configured(&common::rules()).expect("valid");
    let short = Budget { prompt_tokens: 63, ..budget };
    assert_eq!(shipped.edits(&Words::default(), &parts, &short), []);
}

#[test]
fn rules_that_could_take_meaning_with_them_are_refused() {
    let refused = |from: &str, to: &str| {
        let rules = common::rules();
        assert!(rules.contains(from), "{from}");
        common::configured(&rules.replace(from, to)).err().unwrap_or_default()
    };
    let error = refused("\"怎么说呢\"", "\"没关系\"");
    assert_eq!(error, "filler: `没关系` holds the negation `没`; it must not be dropped");
    assert!(refused("\"kindly\"", "\"no worries\"").contains("negation `no`"));
    assert!(refused("\"kindly\"", "\"i don't know\"").contains("negation `n't`"));
    assert!(refused("\"kindly\"", "\"24 hours\"").contains("digit"));
    assert_eq!(refused("\"kindly\"", "\"But\""), "keep: `but` is in filler, too; leave it in one of them");
    assert!(refused("\"kindly\"", "\"you know\"").contains("each word of it"));
    assert!(refused("content = 1.0", "content = nan").contains("weight.content"));
}

#[test]
fn the_config_schema_names_every_section() {
    let schema = <compress_salient::CompressSalient as jackfield_sdk::Policy>::describe().config_schema;
    let schema: serde_json::Value = serde_json::from_str(&schema).expect("JSON");
    let rules: serde_json::Value = toml::from_str(&common::rules()).expect("TOML");
    for section in rules.as_object().expect("a table").keys() {
        assert!(schema["properties"].get(section).is_some(), "{section}");
    }
}
