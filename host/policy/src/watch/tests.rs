use proptest::prelude::*;
use regex_automata::meta;

use super::{build::ascii_words, *};

fn watch(regex: &str) -> Watch {
    Watch { name: "w".into(), regex: regex.into() }
}

fn watches(patterns: &[&str], bound: usize) -> Arc<Watches> {
    let patterns: Vec<Watch> = patterns.iter().map(|p| watch(p)).collect();
    Watches::compile(&patterns, bound).expect("compiles")
}

/// What an independent matcher finds in the whole text.
fn whole(pattern: &str, text: &str) -> Vec<(usize, usize)> {
    let hir = ascii_words(regex_syntax::parse(pattern).expect("parses"));
    let regex = meta::Builder::new().build_from_hir(&hir).expect("builds");
    regex.find_iter(text).map(|m| (m.start(), m.end())).collect()
}

/// Hits in the coordinates of the whole text, from a stream whose decided bytes are sent at once.
fn streamed(set: &Arc<Watches>, deltas: &[&str]) -> (Vec<Found>, String) {
    let mut watcher = Watcher::new(set.clone());
    let (mut hits, mut sent) = (Vec::new(), String::new());
    for delta in deltas {
        watcher.feed(delta);
        send(&mut watcher, &mut hits, &mut sent);
    }
    watcher.finish();
    send(&mut watcher, &mut hits, &mut sent);
    (hits, sent)
}

fn send(watcher: &mut Watcher, hits: &mut Vec<Found>, sent: &mut String) {
    let decided = watcher.decided_bytes();
    let offset = sent.len();
    hits.extend(watcher.found().into_iter().map(|found| Found {
        start: found.start + offset,
        end: found.end + offset,
        ..found
    }));
    sent.push_str(&watcher.pending()[..decided]);
    watcher.release(decided);
}

fn of_watch(hits: &[Found], watch: usize) -> Vec<(usize, usize)> {
    let of = hits.iter().filter(|hit| hit.watch == watch && !hit.cut);
    of.map(|hit| (hit.start, hit.end)).collect()
}

fn boundaries(text: &str) -> impl Iterator<Item = usize> + '_ {
    text.char_indices().map(|(at, _)| at).chain([text.len()])
}

/// Every way to cut the text in two, and one scalar at a time.
fn all_cuts(text: &str) -> Vec<Vec<&str>> {
    let mut cuts: Vec<Vec<&str>> = boundaries(text).map(|at| vec![&text[..at], &text[at..]]).collect();
    cuts.push(text.char_indices().map(|(at, c)| &text[at..at + c.len_utf8()]).collect());
    cuts
}

fn check_all_cuts(patterns: &[&str], text: &str) {
    let set = watches(patterns, 1 << 20);
    for deltas in all_cuts(text) {
        let (hits, sent) = streamed(&set, &deltas);
        assert_eq!(sent, text, "{deltas:?}");
        for (index, pattern) in patterns.iter().enumerate() {
            let found = of_watch(&hits, index);
            assert_eq!(found, whole(pattern, text), "{pattern} in {deltas:?}");
        }
        assert!(hits.iter().all(|hit| !hit.cut));
    }
}

#[test]
fn a_text_cut_anywhere_gives_the_matches_of_the_whole() {
    let patterns = [
        r"SECRET-\d{4}",
        r"\b\d{16}\b",
        r"[\w.+-]+@[\w-]+\.[a-z]{2,}",
        r"(?i)token[:：]\s*\S+",
        r"(a|aa)+$",
        r"^hello",
        r"(?m)^- .*$",
        r"密码.{1,3}?[。！]",
        r"x.*?y",
        r"ab|abcd|bc",
        r"[０-９0-9]{11}",
        r"👩‍👩‍👧",
    ];
    let texts = [
        "hello SECRET-0000 and SECRET-12 and SECRET-12345",
        "1234567812345678 12345678123456789 编号1234567812345678，谢谢",
        "write to a.b+c@example.org, or a.b@@c.de now",
        "Token:  abc\nTOKEN：def\ntoken: ",
        "aaaaaaaaaaaaaaaab",
        "aaaaaaaaaaaaaaaa",
        "hello hello\nhello",
        "- one\n-two\n- three",
        "密码是abc。密码1！密码12345。",
        "xaybxyyxxxy x",
        "ababcdbcabc",
        "电话１３８0０138０００ or 13800138000",
        "😀👨‍👩‍👧👩‍👩‍👧é",
        "",
    ];
    for text in texts {
        check_all_cuts(&patterns, text);
    }
}

fn held(pattern: &str, text: &str) -> usize {
    let mut watcher = Watcher::new(watches(&[pattern], 1 << 20));
    watcher.feed(text);
    text.len() - watcher.decided_bytes()
}

#[test]
fn holds_what_could_still_become_a_match_and_not_more() {
    assert_eq!(held(r"SECRET-\d{4}", "nothing here"), 0);
    assert_eq!(held(r"SECRET-\d{4}", "a SEC"), 3);
    assert_eq!(held(r"SECRET-\d{4}", "a SECS"), 1);
    assert_eq!(held(r"SECRET-\d{4}", "a SECRET-000"), 10);
    // Complete, and no longer match can follow: nothing more to wait for.
    assert_eq!(held(r"SECRET-\d{4}", "a SECRET-0000"), 0);
    // Complete, and could still grow.
    assert_eq!(held(r"SECRET-\d{4,6}", "a SECRET-0000"), 11);
    assert_eq!(held(r"SECRET-\d{4,6}", "a SECRET-000000"), 0);
    // Complete if a word ends here, which the next byte decides.
    assert_eq!(held(r"\bcat\b", "cat"), 3);
    assert_eq!(held(r"\bcat\b", "cats"), 0);
    // Look-behind: no match can begin inside of a word.
    assert_eq!(held(r"\bcat\b", "concat"), 0);
    // A place where nothing can follow any more.
    assert_eq!(held(r"a\bb|zz", "a"), 0);
    assert_eq!(held(r"^only first", "x only"), 0);
}

#[test]
fn look_behind_sees_text_that_was_sent() {
    let set = watches(&[r"\bcat\b", r"^cat"], 64);
    let (hits, _) = streamed(&set, &["con", "cat", " ", "cat", "."]);
    let found: Vec<_> = hits.iter().map(|h| (h.watch, h.start, h.end)).collect();
    assert_eq!(found, [(0, 7, 10)]);
}

#[test]
fn a_match_open_past_the_bound_is_given_in_pieces() {
    let set = watches(&[r"<.*>"], 16);
    let text = format!("a <{}> b", "x".repeat(40));
    for deltas in all_cuts(&text) {
        let (hits, sent) = streamed(&set, &deltas);
        assert_eq!(sent, text);
        // All of the match is covered, and then what could have become a longer one.
        let pieces: Vec<_> = hits.iter().map(|h| (h.start, h.end, h.cut)).collect();
        assert_eq!(pieces, [(2, 18, true), (18, 34, true), (34, 44, true)], "{deltas:?}");
    }
}

#[test]
fn what_is_held_is_bounded() {
    let set = watches(&[r"<.*>", r"x+y", r"(xx)+z", r"\w{30}q"], 16);
    let mut watcher = Watcher::new(set);
    for piece in ["<", "x", "xx", "汉", "xxx", " "].iter().cycle().take(2000) {
        watcher.feed(piece);
        let decided = watcher.decided_bytes();
        let held = watcher.pending().len() - decided;
        assert!(held <= 2 * 16 + 3, "{held} bytes held");
        watcher.release(decided);
    }
}

#[test]
fn a_false_alarm_past_the_bound_does_not_hide_what_follows() {
    let set = watches(&[r"<[^>\n]*>|KEY\d"], 8);
    let text = "<aaaaaaaaaaaaa\nKEY1";
    for deltas in all_cuts(text) {
        let (hits, _) = streamed(&set, &deltas);
        assert_eq!(of_watch(&hits, 0), [(15, 19)], "{deltas:?}");
    }
}

#[test]
fn patterns_that_cannot_be_watched_are_refused_with_a_reason() {
    let refused = |regex: &str| {
        let refused = Watches::compile(&[watch(regex)], 64).expect_err(regex);
        refused.to_string()
    };
    assert!(refused("a(").contains("unclosed"));
    assert!(refused("a*").contains("matches the empty text"));
    assert!(refused(r"\b").contains("matches the empty text"));
    assert!(refused(r"[^\s\S]").contains("can never match"));
    assert!(refused(r"a\bb").contains("can never match"));
    assert!(refused(r"\w{1,500}\w{1,500}@").contains("larger than"));
    assert!(refused(r"((a{100}){100}){100}").contains("larger than"));
    assert!(refused(&"a".repeat(20_000)).contains("at most"));
    let many = vec![watch("a"); Watches::MAX + 1];
    assert!(matches!(Watches::compile(&many, 64), Err(WatchError::TooMany { .. })));
}

/// Patterns over a small alphabet, so that texts of the same alphabet match often.
fn pattern() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        8 => prop::sample::select(vec!["a", "b", "汉", "0", "é"]).prop_map(String::from),
        3 => prop::sample::select(vec!["[ab]", ".", r"\d", r"\w", "[^a]", r"[汉字0-9]"]).prop_map(String::from),
        2 => prop::sample::select(vec![r"\b", r"\B", "^", "$", "(?m:$)"]).prop_map(String::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            4 => prop::collection::vec(inner.clone(), 1..4).prop_map(|parts| parts.concat()),
            2 => (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("(?:{a}|{b})")),
            2 => (inner, prop::sample::select(vec!["*", "+", "?", "*?", "+?", "??", "{2}", "{1,3}", "{2,}"]))
                .prop_map(|(a, times)| format!("(?:{a}){times}")),
        ]
    })
}

fn text() -> impl Strategy<Value = String> {
    let scalar = prop::sample::select(vec!['a', 'b', '汉', '0', 'é', ' ', '\n']);
    prop::collection::vec(scalar, 0..14).prop_map(|scalars| scalars.into_iter().collect())
}

/// Texts that may follow, up to three scalars.
fn continuations() -> Vec<String> {
    let alphabet = ["a", "b", "汉", "0", "é", " ", "\n"];
    let mut all = vec![String::new()];
    let mut last = all.clone();
    for _ in 0..3 {
        let longer = |text: &String| alphabet.map(|scalar| format!("{text}{scalar}"));
        last = last.iter().flat_map(longer).collect();
        all.extend(last.iter().cloned());
    }
    all
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, max_global_rejects: 100_000, ..ProptestConfig::default() })]

    #[test]
    fn random_patterns_and_texts_agree_with_the_whole(
        first in pattern(), second in pattern(), text in text(),
    ) {
        let patterns = [first, second].map(|p| watch(&p));
        let Ok(set) = Watches::compile(&patterns, 1 << 20) else {
            return Err(TestCaseError::reject("not watchable"));
        };
        for deltas in all_cuts(&text) {
            let (hits, sent) = streamed(&set, &deltas);
            prop_assert_eq!(&sent, &text);
            for (index, pattern) in patterns.iter().enumerate() {
                prop_assert_eq!(of_watch(&hits, index), whole(&pattern.regex, &text), "{} {:?}", pattern.regex, deltas);
            }
        }
    }

    #[test]
    fn pieces_of_bounded_matches_do_not_depend_on_the_cuts(pattern in pattern(), text in text()) {
        let Ok(set) = Watches::compile(&[watch(&pattern)], 5) else {
            return Err(TestCaseError::reject("not watchable"));
        };
        let expected = streamed(&set, &[&text]);
        for deltas in all_cuts(&text) {
            prop_assert_eq!(&streamed(&set, &deltas), &expected, "{:?}", deltas);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, max_global_rejects: 100_000, ..ProptestConfig::default() })]

    /// For simple patterns, three more scalars are enough to make a match of what is held.
    #[test]
    fn a_held_byte_is_part_of_some_eventual_match(
        parts in prop::collection::vec(prop::sample::select(vec!["a", "b", "汉", "[ab]", "0?", "(?:é|ab)", r"\b", "a+"]), 1..4),
        text in text(),
    ) {
        let pattern = parts.concat();
        let Ok(set) = Watches::compile(&[watch(&pattern)], 1 << 20) else {
            return Err(TestCaseError::reject("not watchable"));
        };
        let mut watcher = Watcher::new(set);
        watcher.feed(&text);
        let decided = watcher.decided_bytes();
        if decided < text.len() {
            let covered = continuations().iter().any(|more| {
                let whole = whole(&pattern, &format!("{text}{more}"));
                whole.iter().any(|&(start, end)| start == decided && end > decided)
            });
            prop_assert!(covered, "{} held from {} of {:?} for nothing", pattern, decided, text);
        }
    }
}
