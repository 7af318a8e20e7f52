//! What texts are about, by the words that they share. Beside vectors, since a model for those need not know the script.

use std::collections::{BTreeMap, BTreeSet};

/// How much a word or two characters say that only one of the texts has.
const WHOLE: f32 = 1.0;
/// The same of one character, and of two of which one could hold any sentence together.
const PART: f32 = 0.3;

/// Characters that are in sentences about anything.
const ANYWHERE: &str = "的了吗呢吧啊呀么嘛哦嗯什怎哪谁几我你您他她它们咱这那是在有无没不也就还又再才很太要会能可以得着过\
                        和与跟或但而把被让给对从为因如果所虽然些个说聊讲谈想请问一該這個們嗎麼會還對";
/// Words of two characters that are, too.
const ANYWHERE_PAIRS: [&str; 60] = [
    "合适", "比较", "需要", "问题", "时间", "时候", "现在", "今天", "明天", "昨天", "刚才", "刚刚", "之前",
    "以前", "以后", "之后", "前面", "后面", "事情", "东西", "多久", "多少", "多大", "多长", "先去", "影响",
    "建议", "一般", "大概", "大约", "通常", "如何", "为何", "方法", "办法", "继续", "回到", "可能", "应该",
    "主要", "开始", "已经", "知道", "告诉", "觉得", "希望", "情况", "进行", "使用", "直接", "左右", "注意",
    "准备", "容易", "当然", "总是", "其中", "其他", "另外", "一次",
];
/// English words that are.
const ANYWHERE_WORDS: [&str; 96] = [
    "a",
    "about",
    "after",
    "again",
    "all",
    "also",
    "am",
    "an",
    "and",
    "any",
    "are",
    "as",
    "at",
    "back",
    "be",
    "been",
    "before",
    "but",
    "by",
    "can",
    "could",
    "did",
    "do",
    "does",
    "earlier",
    "first",
    "for",
    "from",
    "get",
    "go",
    "had",
    "has",
    "have",
    "how",
    "i",
    "if",
    "in",
    "is",
    "it",
    "its",
    "just",
    "let",
    "like",
    "long",
    "many",
    "me",
    "mentioned",
    "more",
    "much",
    "my",
    "need",
    "no",
    "not",
    "now",
    "of",
    "on",
    "one",
    "or",
    "our",
    "out",
    "said",
    "say",
    "should",
    "so",
    "some",
    "than",
    "that",
    "the",
    "their",
    "them",
    "then",
    "there",
    "these",
    "they",
    "thing",
    "this",
    "to",
    "too",
    "up",
    "us",
    "use",
    "want",
    "was",
    "we",
    "were",
    "what",
    "when",
    "where",
    "which",
    "who",
    "why",
    "will",
    "with",
    "would",
    "you",
    "your",
];

/// The words of a text, and of scripts without spaces each character and each two; each with how much it can say.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Terms(BTreeMap<String, f32>);

impl Terms {
    pub(crate) fn of(text: &str) -> Terms {
        let mut terms = Terms::default();
        terms.add(text);
        terms
    }

    pub(crate) fn add(&mut self, text: &str) {
        let mut word = String::new();
        let mut last = None;
        for character in text.chars().flat_map(folded).chain([' ']) {
            if is_unspaced(character) {
                self.end(&mut word);
                self.character(last, character);
                last = Some(character);
                continue;
            }
            last = None;
            if character.is_alphanumeric() {
                word.push(character);
            } else {
                self.end(&mut word);
            }
        }
    }

    fn character(&mut self, last: Option<char>, character: char) {
        let is_anywhere = |character: char| ANYWHERE.contains(character);
        if !is_anywhere(character) {
            self.0.insert(character.into(), PART);
        }
        let Some(last) = last else { return };
        let pair: String = [last, character].into_iter().collect();
        let weight = match (is_anywhere(last), is_anywhere(character)) {
            (true, true) => return,
            _ if ANYWHERE_PAIRS.contains(&pair.as_str()) => return,
            (false, false) => WHOLE,
            _ => PART,
        };
        self.0.insert(pair, weight);
    }

    fn end(&mut self, word: &mut String) {
        let is_plural = word.len() > 3 && word.ends_with('s') && !word.ends_with("ss");
        let stem = if is_plural { &word[..word.len() - 1] } else { word.as_str() };
        if word.chars().nth(1).is_some() && !ANYWHERE_WORDS.contains(&word.as_str()) {
            self.0.insert(stem.to_owned(), WHOLE);
        }
        word.clear();
    }

    /// How much of what these say is not in `known`: about the number of words or pairs of characters.
    pub(crate) fn beyond(&self, known: &Terms) -> f32 {
        self.0.iter().filter(|(term, _)| !known.0.contains_key(*term)).map(|(_, weight)| weight).sum()
    }

    /// The words and pairs that both have.
    pub(crate) fn shared(&self, other: &Terms) -> usize {
        self.0.iter().filter(|(term, weight)| **weight == WHOLE && other.0.contains_key(*term)).count()
    }

    /// Of each text, how much of what these say it has; what fewer texts have counts for more, and what all have for nothing.
    pub(crate) fn evidence(&self, texts: &[Terms]) -> Vec<f32> {
        let all = (texts.len() as f32).ln();
        let rarity = |term: &String| {
            let having = texts.iter().filter(|text| text.0.contains_key(term)).count();
            // Of one text alone nothing is rare, and nothing can be told apart.
            if having == 0 || all <= 0.0 { 0.0 } else { 1.0 - (having as f32).ln() / all }
        };
        let weighed: BTreeMap<&String, f32> =
            self.0.iter().map(|(term, weight)| (term, weight * rarity(term))).collect();
        let of = |text: &Terms| {
            weighed.iter().filter(|(term, _)| text.0.contains_key(**term)).map(|(_, by)| by).sum()
        };
        texts.iter().map(of).collect()
    }

    /// Without what others have.
    pub(crate) fn without(mut self, others: &Terms) -> Terms {
        let others: BTreeSet<&String> = others.0.keys().collect();
        self.0.retain(|term, _| !others.contains(term));
        self
    }
}

/// In lower case, and the full-width forms of signs as those of ASCII.
fn folded(character: char) -> impl Iterator<Item = char> {
    let narrow = match character {
        '\u{ff01}'..='\u{ff5e}' => char::from_u32(character as u32 - 0xfee0).unwrap_or(character),
        '\u{3000}' => ' ',
        other => other,
    };
    narrow.to_lowercase()
}

/// Whether it is of a script that puts no spaces between words.
fn is_unspaced(character: char) -> bool {
    matches!(character, '\u{0e00}'..='\u{0eff}' | '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}'
        | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn evidence(said: &str, texts: &[&str]) -> Vec<f32> {
        let texts: Vec<Terms> = texts.iter().map(|text| Terms::of(text)).collect();
        Terms::of(said).evidence(&texts)
    }

    #[test]
    fn what_only_one_text_has_speaks_for_it() {
        let found = evidence("面包要醒多久", &["京都旅游，看寺庙", "做面包，面团发不起来", "个人所得税"]);
        assert!(found[1] >= WHOLE && found[0] == 0.0 && found[2] == 0.0, "{found:?}");
        assert_eq!(evidence("订单", &["订单一", "订单二"]), [0.0, 0.0], "both have it");
        assert_eq!(evidence("订单", &["订单"]), [0.0], "there is no other");
    }

    #[test]
    fn full_width_and_case_make_no_difference() {
        let terms = Terms::of("ＤＯＣＫＥＲ的内存１３７");
        assert_eq!(terms, Terms::of("docker的内存137"));
        assert!(
            terms.0.contains_key("docker") && terms.0.contains_key("137") && terms.0.contains_key("内存")
        );
        assert_eq!(Terms::of("the receipts"), Terms::of("Receipt"));
    }

    #[test]
    fn what_is_said_of_anything_says_nothing() {
        assert_eq!(Terms::of("我们的是什么，可以吗？What about it?"), Terms::default());
        assert_eq!(Terms::of(""), Terms::default());
    }

    proptest! {
        #[test]
        fn any_texts_are_compared(said: String, one: String, other: String) {
            let texts = [Terms::of(&one), Terms::of(&other)];
            let found = Terms::of(&said).evidence(&texts);
            prop_assert!(found.iter().all(|by| by.is_finite() && *by >= 0.0));
            let turned = Terms::of(&said).evidence(&[texts[1].clone(), texts[0].clone()]);
            prop_assert!((found[0] - turned[1]).abs() < 1e-3);
            prop_assert_eq!(Terms::of(&said).beyond(&Terms::of(&said)), 0.0);
        }
    }
}
