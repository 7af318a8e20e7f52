//! What must hold for any prompt and any budget.

mod common;

use common::{Words, applied, nothing_left, part, policy, prompt_tokens};
use compress_salient::glyphs::Glyphs;
use compress_salient::guard;
use jackfield_sdk::compression::{Budget, Part};
use jackfield_sdk::{Edit, Role, Span};
use std::ops::Range;

/// SplitMix64 (Steele, Lea, Flood 2014): the same numbers on every run.
struct Random(u64);

const PIECES: &[&str] = &[
    "你好",
    "请问",
    "谢谢",
    "那个",
    "的",
    "了",
    "在",
    "不",
    "没有",
    "别",
    "特别",
    "非常",
    "想要",
    "取消",
    "订单",
    "苹果",
    "颜色",
    "三",
    "十",
    "一",
    "一下",
    "两箱",
    "点",
    "半",
    "个",
    "第",
    "昨天",
    "下午",
    "姓",
    "王",
    "小明",
    "先生",
    "上海市",
    "３",
    "12",
    "1,000",
    "3.5",
    "kg",
    "$5",
    "8:30",
    "，",
    "。",
    "！",
    "？",
    "、",
    "（",
    "）",
    "：",
    " ",
    " ",
    " ",
    "　",
    "\n",
    "\n\n",
    "- ",
    "# ",
    "hello",
    "Thanks",
    "please",
    "you know",
    "the",
    "a",
    "of",
    "in",
    "is",
    "and",
    "really",
    "box",
    "garage",
    "well-known",
    "rock'n'roll",
    "blue",
    "window",
    "cancel",
    "sending",
    "not",
    "don't",
    "don’t",
    "never",
    "no",
    "before",
    "Ann",
    "UM",
    "iPhone",
    "today",
    ", ",
    ". ",
    "! ",
    "? ",
    " — ",
    "(",
    ")",
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
    "a@b.example",
    "> ",
    "😀",
    "👨‍👩‍👧",
    "🇫🇷",
    "e\u{301}",
    "\u{feff}",
    "\0",
    "...",
    "—",
    "~",
    ":",
    "的话",
    "かな",
    "한국",
    "сло́во",
    "\r\n",
    "\u{200d}",
    "🏽",
];

const ENGLISH: &[&str] = &[
    "the",
    "a",
    "of",
    "in",
    "is",
    "and",
    "really",
    "please",
    "thanks",
    "well",
    "of course",
    "box",
    "garage",
    "window",
    "wooden",
    "small",
    "well-known",
    "neighbour's",
    "cancel",
    "sending",
    "not",
    "don't",
    "never",
    "without",
    "before",
    "Ann",
    "Berlin",
    "UM",
    "iPhone",
    "today",
    "12 kg",
    "$5.50",
    "8:30 pm",
    "AB-1234",
    "\"the of\"",
    "`the a`",
    "(the blue one)",
    "(thanks)",
    "a@b.example",
    "https://a.b/the",
    "😀",
    "cafe\u{301}",
    "— yes —",
    "一个",
];

const CHINESE: &[&str] = &[
    "的",
    "了",
    "在",
    "就是",
    "那个",
    "请问",
    "谢谢",
    "其实",
    "不",
    "没有",
    "别",
    "特别",
    "非常",
    "想要",
    "取消",
    "订单",
    "苹果",
    "颜色",
    "窗户",
    "木头",
    "三十",
    "一下",
    "两箱",
    "第一",
    "半个",
    "昨天",
    "下午三点",
    "姓王",
    "李先生",
    "上海市",
    "３个",
    "12公斤",
    "¥5",
    "iPhone",
    " Berlin ",
    "“的了”",
    "「谢谢」",
    "（那个）",
    "（蓝的）",
    "👨‍👩‍👧",
    "我们",
    "然后",
];

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % bound as u64) as usize
    }

    fn text(&mut self) -> String {
        let pieces = self.below(40);
        let spaced = self.below(2) == 0;
        let mut text = String::new();
        for _ in 0..pieces {
            match self.below(16) {
                0 => text.push(char::from_u32(self.below(0x11_0000) as u32).unwrap_or('x')),
                _ => text.push_str(PIECES[self.below(PIECES.len())]),
            }
            if spaced && self.below(4) > 0 {
                text.push(' ');
            }
        }
        text
    }

    /// As people write.
    fn prose(&mut self) -> String {
        let mut text = String::new();
        for _ in 0..self.below(6) {
            let chinese = self.below(3) == 0;
            let (words, commas, stops, space) = match chinese {
                true => (CHINESE, ["，", "、"], ["。", "！", "？", "\n"], ""),
                false => (ENGLISH, [",", ";"], [". ", "! ", "? ", ".\n\n- "], " "),
            };
            for word in 0..1 + self.below(12) {
                if word > 0 {
                    text.push_str(if self.below(8) == 0 { commas[self.below(2)] } else { "" });
                    text.push_str(space);
                }
                text.push_str(words[self.below(words.len())]);
            }
            text.push_str(stops[self.below(4)]);
        }
        text
    }

    fn parts(&mut self, text: fn(&mut Random) -> String) -> Vec<Part> {
        let roles = [Role::User, Role::Assistant, Role::User, Role::System, Role::Tool];
        let messages = 1 + self.below(4);
        (0..messages).map(|_| part(roles[self.below(5)], &text(self))).collect()
    }

    fn span(&mut self, text: &str) -> Span {
        let mut place =
            || (0..=self.below(text.len() + 1)).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        let (a, b) = (place(), place());
        Span::new(a.min(b)..a.max(b))
    }

    fn budget(&mut self, parts: &[Part]) -> Budget {
        let all = nothing_left(parts);
        let most = all.prompt_tokens as usize;
        let bound = if self.below(2) == 0 { most / 8 + 2 } else { most + 3 };
        let gone = self.below(bound);
        Budget { keep_tokens: most.saturating_sub(gone) as u32, ..all }
    }
}

/// Bytes that no edit may touch, found without the code that cuts words: digits, signs of code and quotation, negations.
fn must_stay(text: &str) -> Vec<Range<usize>> {
    let glyphs = Glyphs::new(text);
    let fixed = guard::fixed(&glyphs, &[]);
    let mut stay: Vec<Range<usize>> =
        (0..glyphs.len()).filter(|at| fixed[*at]).map(|at| glyphs.bytes(&(at..at + 1))).collect();
    let signs = text.char_indices().filter(|(_, c)| c.is_numeric() || matches!(c, '@' | '没' | '三'));
    stay.extend(signs.map(|(at, c)| at..at + c.len_utf8()));
    stay
}

fn gone_of(edits: &[Edit], message: usize) -> impl Iterator<Item = Range<usize>> {
    edits.iter().filter(move |edit| edit.message as usize == message).map(|edit| edit.at.range())
}

/// How often something stands in a text that should not come of an edit.
fn blemishes(text: &str) -> usize {
    let twos = [
        "  ", " ,", " .", " 。", " ，", ",,", "，，", "()", "（）", "( ", ", .", ",.", "，。", "\n,", "\n.",
        "\n，", "\n。",
    ];
    twos.iter().map(|two| text.matches(two).count()).sum()
}

#[test]
fn whatever_the_prompt_whole_words_go_and_what_must_stay_stays() {
    let policy = policy();
    let mut random = Random(11);
    let mut edited = 0;
    for round in 0..20_000 {
        let prose = round % 2 == 0;
        let mut parts = random.parts(if prose { Random::prose } else { Random::text });
        for part in &mut parts {
            if random.below(4) == 0 {
                part.protected = vec![random.span(&part.message.text)];
            }
        }
        let cached = random.below(parts.len() + 1);
        for part in &mut parts[..cached] {
            part.cached_bytes = part.message.text.len() as u32;
        }
        let budget = random.budget(&parts);
        let host = Words { refuses: round % 5 == 0, ..Words::default() };
        let edits = policy.edits(&host, &parts, &budget);
        edited += edits.len();
        let after = applied(&parts, &edits);
        let last_user = parts.iter().rposition(|part| part.message.role == Role::User);
        for (message, (part, after)) in parts.iter().zip(&after).enumerate() {
            let before = &part.message.text;
            if matches!(part.message.role, Role::System | Role::Tool) || Some(message) == last_user {
                assert_eq!(before, after, "round {round}");
            }
            let glyphs = Glyphs::new(before);
            for gone in gone_of(&edits, message) {
                assert_eq!(
                    glyphs.bytes(&glyphs.touched(&gone)),
                    gone,
                    "round {round}: {before:?} lost half a glyph"
                );
                let mut stay = must_stay(before).into_iter();
                let lost = stay.find(|range| range.start < gone.end && gone.start < range.end);
                assert_eq!(lost, None, "round {round}: {before:?} lost {:?}", &before[gone]);
            }
            let words = |s: &str| s.chars().any(char::is_alphanumeric);
            assert!(!words(before) || words(after), "round {round}: {before:?} lost its last word");
            let count = |text: &str| Words::ends(text).len();
            assert!(after == before || count(after) < count(before), "round {round}: {before:?} → {after:?}");
            if prose && part.protected.is_empty() && part.cached_bytes == 0 {
                let (had, has) = (blemishes(before), blemishes(after));
                assert!(has <= had, "round {round}: {before:?} → {after:?}");
            }
        }
        assert_eq!(edits, policy.edits(&host, &parts, &budget), "round {round}: a call is a function");
    }
    assert!(edited > 10_000, "{edited} edits: the texts are too tame");
}

#[test]
fn the_budget_is_met_where_that_can_be_and_nothing_more_goes_the_second_time() {
    let policy = policy();
    let mut random = Random(23);
    let (mut met, mut unmet) = (0, 0);
    for round in 0..10_000 {
        let mut parts = random.parts(Random::prose);
        let budget = random.budget(&parts);
        let shortest = applied(&parts, &policy.edits(&Words::default(), &parts, &nothing_left(&parts)));
        let edits = policy.edits(&Words::default(), &parts, &budget);
        let after = applied(&parts, &edits);
        let tokens = |texts: &[String]| texts.iter().map(|text| Words::ends(text).len() as u32).sum::<u32>();
        let possible = tokens(&shortest) <= budget.keep_tokens;
        assert!(!possible || tokens(&after) <= budget.keep_tokens, "round {round}: {parts:?} {budget:?}");
        met += usize::from(possible && !edits.is_empty());
        unmet += usize::from(!possible);
        let first = parts.clone();
        for (part, after) in parts.iter_mut().zip(after) {
            part.message.text = after;
        }
        let again = Budget { prompt_tokens: prompt_tokens(&parts), ..budget };
        let more = policy.edits(&Words::default(), &parts, &again);
        assert_eq!(
            more,
            [],
            "round {round}: {first:?}\n{edits:?}\n{parts:?} could lose more the second time"
        );
    }
    assert!(met > 1_000 && unmet > 1_000, "{met} met, {unmet} not");
}
