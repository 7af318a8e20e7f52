//! Order numbers, phone numbers, quantities and cities. Each gives one value or none: of two that differ the rules
//! do not guess.

use crate::config::{CityConfig, OrderConfig, PhoneConfig, QuantityConfig};
use crate::number::{english_number, is_numeral, number_at};
use crate::pattern::Pattern;
use crate::taken::Taken;
use crate::text::{Phrases, Text};
use std::ops::Range;

/// Something found, with the words it was found in.
#[derive(Debug, Clone, PartialEq)]
pub struct Found<T> {
    /// Scalars of the text.
    pub at: Range<usize>,
    /// What they say.
    pub value: T,
}

/// Those of `all` that agree; none when they do not.
fn agreed<T: PartialEq>(mut all: Vec<Found<T>>) -> Option<Found<T>> {
    let first = if all.is_empty() { None } else { Some(all.swap_remove(0)) }?;
    all.iter().all(|other| other.value == first.value).then_some(first)
}

/// Finds order numbers.
pub struct Orders {
    patterns: Vec<(Pattern, bool)>,
    digits: std::ops::RangeInclusive<usize>,
    words: Phrases,
    number_words: Phrases,
    phone_words: Phrases,
    not_codes: Vec<String>,
    reach: usize,
}

impl Orders {
    /// Compiles the patterns.
    pub fn new(config: &OrderConfig, phone: &PhoneConfig) -> Result<Self, String> {
        if config.least_digits == 0 || config.least_digits > config.most_digits {
            return Err("order: least_digits must be from 1 to most_digits".into());
        }
        let compile = |p: &crate::config::PatternConfig| Ok((Pattern::new(&p.pattern)?, p.after_word));
        Ok(Orders {
            patterns: config.patterns.iter().map(compile).collect::<Result<_, String>>()?,
            digits: config.least_digits..=config.most_digits,
            words: Phrases::new(config.words.iter().chain(&config.number_words).map(String::as_str)),
            number_words: Phrases::new(config.number_words.iter().map(String::as_str)),
            phone_words: Phrases::new(phone.words.iter().map(String::as_str)),
            not_codes: config.not_codes.iter().map(|w| w.to_ascii_lowercase()).collect(),
            reach: config.reach,
        })
    }

    /// The order number, when there is exactly one. `taken` is what phones and dates claim; `asked` tells that the
    /// dialog just asked for it, so that bare digits will do.
    pub fn find(&self, text: &Text<'_>, taken: &Taken, asked: bool) -> Option<Found<String>> {
        let mut all = Vec::new();
        let mut at = 0;
        while at < text.len() {
            let found = self.code_at(text, at).or_else(|| self.digits_at(text, at, asked));
            match found.filter(|f| !taken.touches(&f.at)) {
                Some(found) => {
                    at = found.at.end;
                    all.push(found);
                }
                None => at += 1,
            }
        }
        agreed(all)
    }

    /// Whether the digits from `at` were called an order number in so many words.
    pub fn called_order(&self, text: &Text<'_>, at: usize) -> bool {
        let word = self.before(text, at, &self.number_words);
        word.is_some_and(|word| self.before(text, at, &self.phone_words).is_none_or(|phone| phone < word))
    }

    /// Words of the rules in the text, for those who count what was not understood.
    pub fn words(&self) -> &Phrases {
        &self.words
    }

    fn code_at(&self, text: &Text<'_>, at: usize) -> Option<Found<String>> {
        if !text.word_start(at) || text.before(at).is_some_and(|c| matches!(c, '-' | '_' | '/' | '.' | '@')) {
            return None;
        }
        let ends = self.patterns.iter().filter_map(|(pattern, after_word)| {
            let end = pattern.end_at(text, at)?;
            (self.is_code(text, at..end) && (!after_word || self.before(text, at, &self.words).is_some()))
                .then_some(end)
        });
        let end = ends.max()?;
        let value = text.slice(at..end).iter().map(|c| if *c == ' ' { '-' } else { c.to_ascii_uppercase() });
        Some(Found { at: at..end, value: value.collect() })
    }

    fn is_code(&self, text: &Text<'_>, at: Range<usize>) -> bool {
        let more = match text.get(at.end) {
            Some(c) if c.is_ascii_alphanumeric() => true,
            Some('-' | '_' | '/' | '.' | '@') => {
                text.get(at.end + 1).is_some_and(|c| c.is_ascii_alphanumeric())
            }
            _ => false,
        };
        !more && !self.is_word(text, at)
    }

    /// "is 20261001" and "no 20261001" are words before a number; IN-818283 is a code, but not what follows "order" in
    /// "order no-818283".
    fn is_word(&self, text: &Text<'_>, at: Range<usize>) -> bool {
        let letters: String = text.slice(at.clone()).iter().take_while(|c| c.is_ascii_alphabetic()).collect();
        let end = at.start + letters.len();
        let joined =
            letters.len() == 2 && text.get(end) == Some('-') && !self.number_words.ends_before(text, end);
        !joined && self.not_codes.contains(&letters)
    }

    fn digits_at(&self, text: &Text<'_>, at: usize, asked: bool) -> Option<Found<String>> {
        if !text.word_start(at)
            || text.before(at).is_some_and(|c| matches!(c, '-' | '+' | '/' | '.' | '¥' | '$'))
        {
            return None;
        }
        let end = text.run(at, |c| c.is_ascii_digit());
        let closed = match text.get(end) {
            Some('-' | '/' | '.') => !text.get(end + 1).is_some_and(|c| c.is_ascii_alphanumeric()),
            Some(c) => !c.is_ascii_alphanumeric() && !"元块美岁公米".contains(c),
            None => true,
        };
        if !self.digits.contains(&(end - at)) || !closed {
            return None;
        }
        let named = self.before(text, at, &self.words).is_some();
        (named || asked).then(|| Found { at: at..end, value: text.slice(at..end).iter().collect() })
    }

    /// Where one of the words ends that stand within reach before `at`, no other number between.
    fn before(&self, text: &Text<'_>, at: usize, words: &Phrases) -> Option<usize> {
        let mut start = at;
        while at - start < self.reach + 12 && start > 0 {
            let c = text.before(start)?;
            if c.is_ascii_digit() || matches!(c, '。' | '!' | '?' | '\n') {
                break;
            }
            start -= 1;
        }
        let word = words.rfind_in(text, start..at)?;
        (at - word.end <= self.reach).then_some(word.end)
    }
}

/// Phone numbers of the text: Chinese mobile and fixed lines, and `+` with a country code.
pub fn phones(text: &Text<'_>) -> Vec<Found<String>> {
    let mut all = Vec::new();
    let mut at = 0;
    while at < text.len() {
        match phone_at(text, at) {
            Some(found) => {
                at = found.at.end;
                all.push(found);
            }
            None => at += 1,
        }
    }
    all
}

/// The one phone number among those found.
pub fn one_phone(all: &[Found<String>]) -> Option<Found<String>> {
    agreed(all.to_vec())
}

fn phone_at(text: &Text<'_>, at: usize) -> Option<Found<String>> {
    let before = text.before(at);
    if !text.word_start(at) || before.is_some_and(|c| matches!(c, '-' | '+' | '.' | '_' | '/')) {
        return None;
    }
    let plus = text.get(at) == Some('+');
    let mut digits = String::new();
    let mut groups = Vec::new();
    let mut here = at + usize::from(plus);
    let mut end = here;
    while let Some(c) = text.get(here) {
        if c.is_ascii_digit() {
            let stop = text.run(here, |c| c.is_ascii_digit());
            digits.extend(text.slice(here..stop));
            groups.push(stop - here);
            (here, end) = (stop, stop);
        } else if matches!(c, '-' | ' ' | '(' | ')')
            && here - end < 2
            && (here > at || c == '(')
            && digits.len() < 16
        {
            here += 1;
        } else {
            break;
        }
    }
    let tail = text.get(end);
    let open = tail.is_some_and(|c| c.is_ascii_alphanumeric() || c == '_')
        || (matches!(tail, Some('-' | '.' | '/'))
            && text.get(end + 1).is_some_and(|c| c.is_ascii_alphanumeric()));
    if open {
        return None;
    }
    let value = phone_value(plus, &digits, &groups)?;
    Some(Found { at: at..end, value })
}

fn phone_value(plus: bool, digits: &str, groups: &[usize]) -> Option<String> {
    let national =
        digits.strip_prefix("0086").or_else(|| digits.strip_prefix("86")).filter(|rest| rest.len() == 11);
    if let Some(mobile) = national
        .filter(|_| plus || digits.starts_with("00") || groups.first() != Some(&13))
        .filter(|m| is_mobile(m))
    {
        return Some(mobile.to_owned());
    }
    if plus {
        return (8..=15).contains(&digits.len()).then(|| format!("+{digits}"));
    }
    if is_mobile(digits) && matches!(groups, [11] | [3, 4, 4]) {
        return Some(digits.to_owned());
    }
    match groups {
        [area @ 3..=4, line @ 7..=8] if digits.starts_with('0') && area + line <= 12 => {
            Some(format!("{}-{}", &digits[..*area], &digits[*area..]))
        }
        _ => None,
    }
}

fn is_mobile(digits: &str) -> bool {
    digits.len() == 11 && digits.starts_with('1') && matches!(digits.as_bytes()[1], b'3'..=b'9')
}

/// Finds how many are wanted.
pub struct Quantities {
    triggers: Phrases,
    names: Phrases,
    units: Phrases,
    not_before: Phrases,
}

impl Quantities {
    /// Gathers the words.
    pub fn new(config: &QuantityConfig) -> Self {
        let phrases = |words: &[String]| Phrases::new(words.iter().map(String::as_str));
        Quantities {
            triggers: phrases(&config.triggers),
            names: phrases(&config.names),
            units: phrases(&config.units),
            not_before: phrases(&config.not_before),
        }
    }

    /// The quantity, when there is exactly one; `asked` tells that the dialog has asked what to change, so that a number and
    /// its unit will do; `denied` tells whether what stands at a place is negated, for places in rising order.
    pub fn find(
        &self,
        text: &Text<'_>,
        taken: &Taken,
        asked: bool,
        mut denied: impl FnMut(usize) -> bool,
    ) -> Option<Found<u32>> {
        let mut all = Vec::new();
        for at in 0..text.len() {
            let found = self.quantity_at(text, at, asked);
            if let Some(found) = found.filter(|f| !denied(at) && !taken.touches(&f.at)) {
                all.push(found);
            }
        }
        agreed(all)
    }

    fn quantity_at(&self, text: &Text<'_>, at: usize, asked: bool) -> Option<Found<u32>> {
        let (value, end) = count_at(text, at)?;
        let named = self.names.ends_before(text, skip_back(text, at));
        if !named && !asked && !self.triggers.ends_before(text, at) {
            return None;
        }
        let unit = text.run(end, |c| c == ' ');
        let stop = match self.units.longest_at(text, unit) {
            Some((stop, _)) => stop,
            None if named && text.word_end(end) && !matches!(text.get(end), Some('.' | '-' | '/')) => end,
            None => return None,
        };
        let next = text.run(stop, |c| c == ' ');
        let spoiled = self.not_before.longest_at(text, next).is_some();
        (value > 0 && !spoiled).then_some(Found { at: at..stop, value })
    }
}

/// Before `at`, over spaces and a colon or 是: 数量是3, qty: 3.
fn skip_back(text: &Text<'_>, at: usize) -> usize {
    let mut end = at;
    while text.before(end).is_some_and(|c| matches!(c, ' ' | ':' | '是' | '为' | '=')) {
        end -= 1;
    }
    end
}

fn count_at(text: &Text<'_>, at: usize) -> Option<(u32, usize)> {
    let first = text.get(at)?;
    if first.is_ascii_alphabetic() && text.word_start(at) {
        let end = text.run(at, |c| c.is_ascii_alphabetic());
        let word: String = text.slice(at..end).iter().collect();
        return (word.len() > 2).then(|| english_number(&word)).flatten().map(|n| (n, end));
    }
    if !first.is_ascii_digit() && !is_numeral(first) || text.before(at) == Some('-') {
        return None;
    }
    let number = number_at(text, at)?;
    let open = matches!(text.get(number.end), Some('.' | '-' | '/' | '~'))
        && text.get(number.end + 1).is_some_and(|c| c.is_ascii_digit());
    if open { None } else { Some((number.value?, number.end)) }
}

/// Finds cities.
pub struct Cities {
    names: Phrases,
    entries: Vec<(String, String)>,
    not_before: Phrases,
    not_after: Phrases,
    traps: Phrases,
    targets: Phrases,
}

impl Cities {
    /// Gathers the names.
    pub fn new(config: &CityConfig) -> Result<Self, String> {
        let mut entries = Vec::new();
        for names in &config.names {
            let [chinese, english, ..] = names.as_slice() else {
                return Err("city: each entry of `names` needs a Chinese and an English name".into());
            };
            entries.push((chinese.clone(), english.clone()));
        }
        let numbered = config
            .names
            .iter()
            .enumerate()
            .flat_map(|(n, names)| names.iter().map(move |name| (name.as_str(), n)));
        let phrases = |words: &[String]| Phrases::new(words.iter().map(String::as_str));
        Ok(Cities {
            names: Phrases::numbered(numbered),
            entries,
            not_before: phrases(&config.not_before),
            not_after: phrases(&config.not_after),
            traps: phrases(&config.traps),
            targets: phrases(&config.targets),
        })
    }

    /// The English name of a city whose Chinese name is the value of a slot.
    pub fn english<'a>(&'a self, chinese: &'a str) -> &'a str {
        self.entries.iter().find(|(zh, _)| zh == chinese).map_or(chinese, |(_, en)| en)
    }

    /// The city, when there is exactly one, or exactly one that is said to be meant.
    pub fn find(&self, text: &Text<'_>) -> Option<Found<String>> {
        let mut all = Vec::new();
        let mut at = 0;
        while at < text.len() {
            if let Some((end, _)) = self.traps.longest_at(text, at) {
                at = end;
                continue;
            }
            match self.names.longest_at(text, at) {
                Some((end, number)) => {
                    if self.stands_alone(text, at, end) {
                        all.push(Found { at: at..end, value: self.entries[number].0.clone() });
                    }
                    at = end;
                }
                None => at += 1,
            }
        }
        let aimed: Vec<_> =
            all.iter().filter(|f| self.targets.ends_before(text, f.at.start)).cloned().collect();
        if aimed.len() == 1 { aimed.into_iter().next() } else { agreed(all) }
    }

    fn stands_alone(&self, text: &Text<'_>, at: usize, end: usize) -> bool {
        let suffix = if text.get(end) == Some('市') { end + 1 } else { end };
        self.not_before.longest_at(text, suffix).is_none() && !self.not_after.ends_before(text, at)
    }
}
