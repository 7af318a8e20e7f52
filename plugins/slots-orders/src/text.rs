//! The utterance as scanners see it: one normalised scalar for each scalar of the original, so that every
//! match maps back to original bytes without arithmetic.

use std::collections::BTreeMap;
use std::ops::Range;

/// Scalars read at most; what follows is a paste, not something said to a customer service.
pub const MAX_CHARS: usize = 16 * 1024;

/// A text with its normalised form: full-width forms, case, dashes, spaces, apostrophes and the traditional
/// characters that the rules use are folded, each to exactly one scalar.
pub struct Text<'a> {
    source: &'a str,
    chars: Vec<char>,
    starts: Vec<usize>,
}

impl<'a> Text<'a> {
    /// Reads the first [`MAX_CHARS`] scalars of `source`.
    pub fn new(source: &'a str) -> Self {
        let mut chars = Vec::with_capacity(source.len() / 2);
        let mut starts = Vec::with_capacity(source.len() / 2 + 1);
        let mut end = 0;
        for (at, c) in source.char_indices().take(MAX_CHARS) {
            chars.push(fold(c));
            starts.push(at);
            end = at + c.len_utf8();
        }
        starts.push(end);
        Text { source, chars, starts }
    }

    /// Number of scalars.
    pub fn len(&self) -> usize {
        self.chars.len()
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.chars.is_empty()
    }

    /// The normalised scalar at `at`, if there is one.
    pub fn get(&self, at: usize) -> Option<char> {
        self.chars.get(at).copied()
    }

    /// The normalised scalar before `at`.
    pub fn before(&self, at: usize) -> Option<char> {
        at.checked_sub(1).and_then(|i| self.get(i))
    }

    /// Normalised scalars; empty when the range is not inside the text.
    pub fn slice(&self, range: Range<usize>) -> &[char] {
        self.chars.get(range).unwrap_or(&[])
    }

    /// The original bytes of a range of scalars.
    pub fn bytes(&self, range: &Range<usize>) -> Range<usize> {
        let last = self.starts.len() - 1;
        self.starts[range.start.min(last)]..self.starts[range.end.min(last)]
    }

    /// The original text of a range of scalars.
    pub fn original(&self, range: &Range<usize>) -> &'a str {
        self.source.get(self.bytes(range)).unwrap_or("")
    }

    /// Whether a word of ASCII letters or digits may start at `at`.
    pub fn word_start(&self, at: usize) -> bool {
        !self.before(at).is_some_and(|c| c.is_ascii_alphanumeric())
    }

    /// Whether a word of ASCII letters or digits may end before `at`.
    pub fn word_end(&self, at: usize) -> bool {
        !self.get(at).is_some_and(|c| c.is_ascii_alphanumeric())
    }

    /// End of the run of scalars from `at` that satisfy `test`.
    pub fn run(&self, at: usize, test: impl Fn(char) -> bool) -> usize {
        let mut end = at;
        while self.get(end).is_some_and(&test) {
            end += 1;
        }
        end
    }

    /// Where the clause around `at` starts: after the nearest punctuation or line end before it.
    pub fn clause_start(&self, at: usize) -> usize {
        (0..at.min(self.len())).rev().find(|&i| is_clause_end(self.chars[i])).map_or(0, |i| i + 1)
    }

    /// Where the clause around `at` ends.
    pub fn clause_end(&self, at: usize) -> usize {
        (at..self.len()).find(|&i| is_clause_end(self.chars[i])).unwrap_or(self.len())
    }
}

/// Punctuation that ends a clause, in normalised form.
pub fn is_clause_end(c: char) -> bool {
    matches!(c, ',' | '.' | '!' | '?' | ';' | '。' | '、' | '…' | '\n' | '\r')
}

/// Chinese characters, the rare planes left out.
pub fn is_cjk(c: char) -> bool {
    matches!(c, '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}')
}

/// One normalised scalar for one original scalar.
pub fn fold(c: char) -> char {
    match c {
        'A'..='Z' => c.to_ascii_lowercase(),
        '\0'..='\x7f' => c,
        '\u{ff01}'..='\u{ff5e}' => fold_ascii(c as u32 - 0xfee0),
        '\u{3000}' | '\u{a0}' | '\u{2000}'..='\u{200a}' | '\u{202f}' => ' ',
        '\u{2010}'..='\u{2015}' | '\u{2212}' | '\u{fe63}' => '-',
        '‘' | '’' => '\'',
        '“' | '”' => '"',
        _ => simplify(c),
    }
}

fn fold_ascii(code: u32) -> char {
    char::from_u32(code).unwrap_or(' ').to_ascii_lowercase()
}

/// Traditional forms of the characters that rules and scanners use.
#[rustfmt::skip]
fn simplify(c: char) -> char {
    match c {
        '後' => '后', '個' => '个', '號' => '号', '點' => '点', '禮' => '礼', '週' => '周',
        '兩' => '两', '這' => '这', '訂' => '订', '單' => '单', '買' => '买', '數' => '数',
        '來' => '来', '換' => '换', '變' => '变', '時' => '时', '廣' => '广', '東' => '东',
        '灣' => '湾', '慶' => '庆', '漢' => '汉', '長' => '长', '瀋' => '沈', '蘇' => '苏',
        '濟' => '济', '陽' => '阳', '連' => '连', '門' => '门', '寧' => '宁', '爾' => '尔',
        '鄭' => '郑', '貴' => '贵', '蘭' => '兰', '廈' => '厦', '嗎' => '吗', '麼' => '么',
        '為' => '为', '沒' => '没', '別' => '别', '請' => '请', '詢' => '询', '問' => '问',
        '電' => '电', '話' => '话', '幾' => '几', '過' => '过', '給' => '给', '轉' => '转',
        '網' => '网', '從' => '从', '會' => '会', '對' => '对', '還' => '还', '無' => '无',
        '聯' => '联', '絡' => '络', '認' => '认', '確' => '确', '實' => '实', '謝' => '谢',
        '煩' => '烦', '幫' => '帮', '現' => '现', '發' => '发', '貨' => '货', '遞' => '递',
        '達' => '达', '狀' => '状', '態' => '态', '進' => '进', '運' => '运', '麗' => '丽',
        '濱' => '滨', '龍' => '龙', '紹' => '绍', '興' => '兴', '溫' => '温', '齊' => '齐',
        '島' => '岛', '煙' => '烟', '臺' => '台', '許' => '许', '僅' => '仅', '萬' => '万',
        '歲' => '岁', '錯' => '错', '頭' => '头', '樣' => '样', '條' => '条', '張' => '张',
        '開' => '开', '關' => '关', '簡' => '简', '體' => '体', '報' => '报', '誰' => '谁',
        '應' => '应', '該' => '该', '讓' => '让', '說' => '说', '滬' => '沪', '馬' => '马',
        '臨' => '临', '鎮' => '镇', '鄉' => '乡', '萊' => '莱', '當' => '当', '錢' => '钱',
        '費' => '费', '筆' => '笔', '雙' => '双', '類' => '类', '間' => '间', '內' => '内',
        _ => c,
    }
}

/// A phrase of a rule file, in normalised form.
#[derive(Debug, Clone)]
pub struct Phrase(Vec<char>);

impl Phrase {
    /// Normalises a phrase; outer spaces do not count, an empty one matches nothing.
    pub fn new(text: &str) -> Self {
        Phrase(text.trim().chars().map(fold).collect())
    }

    /// End of the phrase when it starts at `at`. A space of the phrase stands for any run of spaces, and a
    /// phrase that starts or ends in an ASCII letter or digit does so at the edge of a word.
    pub fn end_at(&self, text: &Text<'_>, at: usize) -> Option<usize> {
        let (first, last) = (self.0.first()?, self.0.last()?);
        if first.is_ascii_alphanumeric() && !text.word_start(at) {
            return None;
        }
        let mut end = at;
        for &c in &self.0 {
            if text.get(end) != Some(c) {
                return None;
            }
            end = if c == ' ' { text.run(end, |c| c == ' ') } else { end + 1 };
        }
        (!last.is_ascii_alphanumeric() || text.word_end(end)).then_some(end)
    }

    fn ends_at(&self, text: &Text<'_>, end: usize) -> bool {
        end.checked_sub(self.0.len()).is_some_and(|at| self.end_at(text, at) == Some(end))
    }
}

/// A set of scalars that may say yes to one that is not in it, never no to one that is. Most places of a text are the
/// beginning of no phrase, and a scanner asks at each of them.
#[derive(Debug, Clone, Default)]
struct Sieve([u64; 8]);

impl Sieve {
    fn insert(&mut self, c: char) {
        let bit = Self::bit(c);
        self.0[bit / 64] |= 1 << (bit % 64);
    }

    fn may_have(&self, c: char) -> bool {
        let bit = Self::bit(c);
        self.0[bit / 64] & 1 << (bit % 64) != 0
    }

    fn bit(c: char) -> usize {
        c as usize % 512
    }
}

/// Phrases found by their first scalar, the longest first.
#[derive(Debug, Clone, Default)]
pub struct Phrases {
    by_first: BTreeMap<char, Vec<(Phrase, usize)>>,
    firsts: Sieve,
    lasts: Sieve,
}

impl Phrases {
    /// Gathers phrases; the number of each is its place in `texts`.
    pub fn new<'a>(texts: impl IntoIterator<Item = &'a str>) -> Self {
        Self::numbered(texts.into_iter().enumerate().map(|(number, text)| (text, number)))
    }

    /// Gathers phrases, each with a number of the caller's.
    pub fn numbered<'a>(texts: impl IntoIterator<Item = (&'a str, usize)>) -> Self {
        let mut all = Phrases::default();
        for (text, number) in texts {
            let phrase = Phrase::new(text);
            if let (Some(&first), Some(&last)) = (phrase.0.first(), phrase.0.last()) {
                all.firsts.insert(first);
                all.lasts.insert(last);
                all.by_first.entry(first).or_default().push((phrase, number));
            }
        }
        for phrases in all.by_first.values_mut() {
            phrases.sort_by_key(|(phrase, _)| std::cmp::Reverse(phrase.0.len()));
        }
        all
    }

    /// The longest phrase that starts at `at`: its end and its number.
    pub fn longest_at(&self, text: &Text<'_>, at: usize) -> Option<(usize, usize)> {
        let first = text.get(at).filter(|c| self.firsts.may_have(*c))?;
        if first.is_ascii_alphanumeric() && !text.word_start(at) {
            return None; // no phrase begins inside a word
        }
        let candidates = self.by_first.get(&first)?;
        candidates.iter().find_map(|(phrase, number)| Some((phrase.end_at(text, at)?, *number)))
    }

    /// The first place in `range` where one of the phrases lies whole.
    pub fn find_in(&self, text: &Text<'_>, range: Range<usize>) -> Option<Range<usize>> {
        range.clone().find_map(|at| {
            let (end, _) = self.longest_at(text, at)?;
            (end <= range.end).then_some(at..end)
        })
    }

    /// The last place in `range` where one of the phrases lies whole.
    pub fn rfind_in(&self, text: &Text<'_>, range: Range<usize>) -> Option<Range<usize>> {
        range.clone().rev().find_map(|at| {
            let (end, _) = self.longest_at(text, at)?;
            (end <= range.end).then_some(at..end)
        })
    }

    /// Whether one of the phrases ends right before `end`, spaces between not counted.
    pub fn ends_before(&self, text: &Text<'_>, end: usize) -> bool {
        let mut stop = end;
        while text.before(stop) == Some(' ') {
            stop -= 1;
        }
        text.before(stop).is_some_and(|last| self.lasts.may_have(last))
            && self.by_first.values().flatten().any(|(phrase, _)| phrase.ends_at(text, stop))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folds_width_case_dashes_and_traditional_forms_one_to_one() {
        let text = Text::new("編號ＡＢ－１２ 後天");
        assert_eq!(text.slice(0..text.len()).iter().collect::<String>(), "編号ab-12 后天");
        assert_eq!(text.original(&(2..7)), "ＡＢ－１２");
        assert_eq!(text.bytes(&(2..4)), 6..12);
    }

    #[test]
    fn the_folding_table_pairs_up() {
        assert_eq!(fold('萬'), '万');
        assert_eq!(fold('歲'), '岁');
        assert_eq!(fold('後'), '后');
        assert_eq!(fold('煙'), '烟');
    }

    #[test]
    fn phrases_respect_english_word_edges_and_prefer_the_longest() {
        let phrases = Phrases::new(["cancel", "cancel it", "取消"]);
        let found = |s: &str| {
            let text = Text::new(s);
            phrases.find_in(&text, 0..text.len()).map(|r| text.original(&r).to_owned())
        };
        assert_eq!(found("please cancel  it").as_deref(), Some("cancel  it"));
        assert_eq!(found("cancelled"), None);
        assert_eq!(found("请取消吧").as_deref(), Some("取消"));
        assert_eq!(found(""), None);
    }
}
