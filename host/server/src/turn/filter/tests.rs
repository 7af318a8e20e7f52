//! Filters that are written here, over texts cut at every byte.

use jackfield_policy::watch::Watches;
use jackfield_policy::{Called, Fault, Replacement, Verdict, Watch, Window};

use super::batch::{Desk, Review};
use super::*;

const SECRET: &str = r"SECRET-\d{4}";

fn watches(regex: &str) -> Arc<Watches> {
    let watch = Watch { name: "w".into(), regex: regex.into() };
    Watches::compile(&[watch], 64).unwrap()
}

fn no_watches() -> Arc<Watches> {
    Watches::compile(&[], 64).unwrap()
}

fn filter(watches: Arc<Watches>, closed: bool, review: Review) -> Arc<Filter> {
    Arc::new(Filter {
        policy: "test@1".into(),
        closed,
        sent_tail_bytes: 8,
        probabilities: false,
        watches,
        desk: Seat::at(Desk::open(review)),
        witness: None,
    })
}

fn answers(verdicts: Vec<Verdict>) -> Result<Called<Vec<Verdict>>, Fault> {
    Ok(Called { answer: verdicts, micros: 1 })
}

/// Replaces each hit.
fn mask(windows: &[Window]) -> Result<Called<Vec<Verdict>>, Fault> {
    let verdict = |(index, window): (usize, &Window)| Verdict {
        window: index as u32,
        replace: window.hits.iter().map(|hit| Replacement { at: hit.at, text: "[hidden]".into() }).collect(),
        ..Verdict::default()
    };
    answers(windows.iter().enumerate().map(verdict).collect())
}

/// Replaces `ab` wherever it is, and holds a final `a` by itself: a policy that wants to see everything.
fn hold_a(windows: &[Window]) -> Result<Called<Vec<Verdict>>, Fault> {
    let verdict = |(index, window): (usize, &Window)| Verdict {
        window: index as u32,
        replace: window
            .pending
            .match_indices("ab")
            .map(|(at, _)| Replacement { at: Span::new(at as u32, at as u32 + 2), text: "X".into() })
            .collect(),
        hold_bytes: u32::from(window.pending.ends_with('a') && !window.is_final),
        stop: None,
    };
    answers(windows.iter().enumerate().map(verdict).collect())
}

fn fails(_: &[Window]) -> Result<Called<Vec<Verdict>>, Fault> {
    Err(Fault::Deadline { limit_ms: 50 })
}

use jackfield_policy::Span;

fn tokens(text: &str) -> Vec<Token> {
    if text.is_empty() {
        return Vec::new();
    }
    vec![Token { bytes: text.as_bytes().to_vec(), logprob: -0.5, top: Vec::new() }]
}

/// Sends `parts` one after the other and returns what came out: text, tokens, stop.
async fn run(
    filters: &[Arc<Filter>],
    parts: &[&str],
) -> Result<(String, Vec<String>, Option<String>), FilterFault> {
    let mut chain = Chain::new(filters, 1);
    let (mut text, mut shown) = (String::new(), Vec::new());
    for (index, part) in parts.iter().enumerate() {
        let passed = chain.push((*part).to_owned(), tokens(part), index + 1 == parts.len()).await?;
        text.push_str(&passed.text);
        shown.extend(passed.tokens.into_iter().map(|shown| String::from_utf8(shown.token.bytes).unwrap()));
        if passed.stop.is_some() {
            return Ok((text, shown, passed.stop));
        }
    }
    Ok((text, shown, None))
}

fn cuts(text: &str) -> impl Iterator<Item = Vec<&str>> {
    (0..=text.len()).filter(|at| text.is_char_boundary(*at)).map(|at| vec![&text[..at], &text[at..]])
}

#[tokio::test]
async fn a_secret_cut_anywhere_never_leaves_in_text_or_tokens() {
    let filters = [filter(watches(SECRET), true, Arc::new(mask))];
    let text = "你好 SECRET-0000😀 end";
    for parts in cuts(text) {
        let (sent, shown, _) = run(&filters, &parts).await.unwrap();
        assert_eq!(sent, "你好 [hidden]😀 end", "{parts:?}");
        assert!(shown.iter().all(|token| !token.contains("SECRET") && !token.contains("00")), "{shown:?}");
    }
    let each: Vec<_> = text.char_indices().map(|(at, c)| &text[at..at + c.len_utf8()]).collect();
    let (sent, shown, _) = run(&filters, &each).await.unwrap();
    assert_eq!(sent, "你好 [hidden]😀 end");
    assert_eq!(shown.concat(), "你好 😀 end");
}

/// Holds a window that is `id` and no more, and hides `id` when there is more.
fn hold_id(windows: &[Window]) -> Result<Called<Vec<Verdict>>, Fault> {
    let verdict = |(index, window): (usize, &Window)| match window.pending.as_str() {
        "id" => Verdict { window: index as u32, hold_bytes: 2, ..Verdict::default() },
        _ => Verdict {
            window: index as u32,
            replace: vec![Replacement { at: Span::new(0, 2), text: "[x]".into() }],
            ..Verdict::default()
        },
    };
    answers(windows.iter().enumerate().map(verdict).collect())
}

#[tokio::test]
async fn what_a_policy_holds_stays_while_the_host_holds_all_that_is_new() {
    let mut chain = Chain::new(&[filter(watches(r"id|zz\d"), true, Arc::new(hold_id))], 1);
    // `z` may become `zz0`, so it is not shown to the policy yet, and the policy's `id` must wait with it.
    for part in ["id", "z"] {
        let passed = chain.push(part.to_owned(), tokens(part), false).await.unwrap();
        assert_eq!(passed.text, "", "after {part:?}");
    }
    assert_eq!(chain.push("q".to_owned(), tokens("q"), true).await.unwrap().text, "[x]zq");
}

#[tokio::test]
async fn the_end_is_looked_at_too() {
    let filters = [filter(watches(SECRET), true, Arc::new(mask))];
    for parts in cuts("x SECRET-0000") {
        assert_eq!(run(&filters, &parts).await.unwrap().0, "x [hidden]", "{parts:?}");
    }
    assert_eq!(run(&filters, &["x SECRET-00", ""]).await.unwrap().0, "x SECRET-00", "no match is no secret");
}

#[tokio::test]
async fn text_that_cannot_match_is_sent_at_once() {
    let filters = [filter(watches(SECRET), true, Arc::new(fails))];
    let mut chain = Chain::new(&filters, 1);
    for part in ["plain ", "words, ", "SECR"] {
        let passed = chain.push(part.to_owned(), [], false).await.unwrap();
        assert_eq!(passed.text, if part == "SECR" { "" } else { part });
    }
    assert_eq!(chain.push("ED".into(), [], false).await.unwrap().text, "SECRED");
}

#[tokio::test]
async fn a_policy_may_hold_by_itself() {
    let filters = [filter(no_watches(), true, Arc::new(hold_a))];
    for parts in cuts("cab aab a") {
        assert_eq!(run(&filters, &parts).await.unwrap().0, "cX aX a", "{parts:?}");
    }
}

#[tokio::test]
async fn filters_in_a_row_see_each_others_text() {
    let shout: Review = Arc::new(|windows: &[Window]| {
        let verdict = |(index, window): (usize, &Window)| Verdict {
            window: index as u32,
            replace: window
                .hits
                .iter()
                .map(|hit| Replacement {
                    at: hit.at,
                    text: hit.at.of(&window.pending).unwrap().to_uppercase(),
                })
                .collect(),
            ..Verdict::default()
        };
        answers(windows.iter().enumerate().map(verdict).collect())
    });
    let filters = [filter(watches(SECRET), true, Arc::new(mask)), filter(watches("hidden]!"), true, shout)];
    for parts in cuts("a SECRET-0000! b") {
        assert_eq!(run(&filters, &parts).await.unwrap().0, "a [HIDDEN]! b", "{parts:?}");
    }
}

#[tokio::test]
async fn a_stop_sends_what_stands_before_and_nothing_after() {
    let stop: Review = Arc::new(|windows: &[Window]| {
        let verdict = |(index, window): (usize, &Window)| Verdict {
            window: index as u32,
            hold_bytes: (window.pending.len() - window.hits[0].at.start as usize) as u32,
            stop: Some("forbidden".into()),
            ..Verdict::default()
        };
        answers(windows.iter().enumerate().map(verdict).collect())
    });
    let filters = [filter(watches("bad"), true, stop), filter(watches(SECRET), true, Arc::new(mask))];
    for parts in cuts("fine SECRET-0000 bad more") {
        let (sent, _, reason) = run(&filters, &parts).await.unwrap();
        assert_eq!((sent.as_str(), reason.as_deref()), ("fine [hidden] ", Some("forbidden")), "{parts:?}");
    }
}

#[tokio::test]
async fn a_fault_lets_nothing_pass_unless_the_policy_is_open() {
    let closed = [filter(watches(SECRET), true, Arc::new(fails))];
    assert_eq!(run(&closed, &["a SECRET-0000", ""]).await.unwrap_err().policy, "test@1");
    let open = [filter(watches(SECRET), false, Arc::new(fails))];
    assert_eq!(run(&open, &["a SECRET-0000", ""]).await.unwrap().0, "a SECRET-0000");
}

#[tokio::test]
async fn windows_carry_probabilities_where_they_were_asked_for() {
    let look: Review = Arc::new(|windows: &[Window]| {
        let ends: Vec<_> = windows[0].tokens.iter().map(|token| token.end).collect();
        assert_eq!(ends, [2, 4]);
        assert!((windows[0].tokens[0].probability - 0.606_53).abs() < 1e-4);
        answers(Vec::new())
    });
    let mut with = filter(no_watches(), true, look);
    Arc::get_mut(&mut with).unwrap().probabilities = true;
    let mut chain = Chain::new(&[with], 1);
    let both = tokens("ab").into_iter().chain(tokens("cd"));
    assert_eq!(chain.push("abcd".into(), both, true).await.unwrap().text, "abcd");
}

#[tokio::test]
async fn tokens_of_held_text_come_again_at_their_new_place() {
    let hold_c: Review = Arc::new(|windows: &[Window]| {
        let window = &windows[0];
        let ends: Vec<_> = window.tokens.iter().map(|token| token.end).collect();
        let expected = if window.pending == "abc" { [2, 3] } else { [1, 2] };
        assert_eq!(ends, expected, "{:?}", window.pending);
        let hold_bytes = u32::from(!window.is_final);
        answers(vec![Verdict { hold_bytes, ..Verdict::default() }])
    });
    let mut with = filter(no_watches(), true, hold_c);
    Arc::get_mut(&mut with).unwrap().probabilities = true;
    let mut chain = Chain::new(&[with], 1);
    let both = tokens("ab").into_iter().chain(tokens("c"));
    assert_eq!(chain.push("abc".into(), both, false).await.unwrap().text, "ab");
    assert_eq!(chain.push("d".into(), tokens("d"), true).await.unwrap().text, "cd");
}
