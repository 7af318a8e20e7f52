//! Numbers as people write them: digits of any width and Chinese numerals. A run of numerals is read whole or
//! not at all, so that 一月二十三 is never taken for 一月二.

use crate::text::Text;

/// A maximal run of numerals; `value` is `None` when the run is no number (两三, 十几 starts like one).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Number {
    /// Scalar index after the run.
    pub end: usize,
    /// The number, when the run is one below a thousand million.
    pub value: Option<u32>,
    /// Written in Chinese numerals.
    pub chinese: bool,
}

/// Whether a scalar is part of a Chinese numeral.
pub fn is_numeral(c: char) -> bool {
    zh_digit(c).is_some() || zh_unit(c).is_some()
}

/// The number that starts at `at`. A run that continues one before `at` is not a number of its own.
pub fn number_at(text: &Text<'_>, at: usize) -> Option<Number> {
    let first = text.get(at).filter(|c| c.is_ascii_digit() || is_numeral(*c))?;
    let joined = text.before(at).is_some_and(|c| {
        c.is_ascii_alphanumeric() || is_numeral(c) || matches!(c, '.' | '第' | '几' | '数' | '/')
    });
    if joined && !after_separator(text, at) {
        return None;
    }
    if first.is_ascii_digit() {
        let end = text.run(at, |c| c.is_ascii_digit());
        let digits: String = text.slice(at..end).iter().collect();
        let value = if digits.len() <= 9 { digits.parse().ok() } else { None };
        return Some(Number { end, value, chinese: false });
    }
    let end = text.run(at, is_numeral);
    Some(Number { end, value: parse_chinese(text.slice(at..end)), chinese: true })
}

/// A full stop that ends a sentence ("到了. 3个") does not join what follows it.
fn after_separator(text: &Text<'_>, at: usize) -> bool {
    text.before(at) == Some('.')
        && !at.checked_sub(2).and_then(|i| text.get(i)).is_some_and(|c| c.is_ascii_digit())
}

/// Digit by digit, as years are said: 二〇二六.
pub fn chinese_digits(run: &[char]) -> Option<u32> {
    if run.is_empty() || run.len() > 9 {
        return None;
    }
    run.iter().try_fold(0, |sum, &c| Some(sum * 10 + zh_digit(c)?))
}

/// 三, 十, 二十三, 一百零五, 三千二百; `None` for what is no well-formed number.
fn parse_chinese(run: &[char]) -> Option<u32> {
    if let [single] = run {
        return zh_digit(*single).or((*single == '十').then_some(10));
    }
    let (mut total, mut pending, mut zero, mut last_unit) = (0u32, None, false, u32::MAX);
    for &c in run {
        if let Some(unit) = zh_unit(c) {
            if unit >= last_unit {
                return None;
            }
            let count = match pending.take() {
                Some(count) => count,
                None if unit == 10 && total == 0 && !zero => 1,
                None => return None,
            };
            total += count * unit;
            last_unit = unit;
            zero = false;
        } else {
            let digit = zh_digit(c)?;
            if pending.is_some() || (digit == 0 && (zero || last_unit == u32::MAX)) {
                return None;
            }
            if digit == 0 {
                zero = true;
            } else {
                pending = Some(digit);
            }
        }
    }
    match pending {
        Some(digit) if last_unit == 10 || zero => Some(total + digit),
        // 一百二 is a hundred and twenty to some and unclear to a rule; 二三 is "two or three".
        Some(_) => None,
        None if zero => None,
        None => Some(total),
    }
}

fn zh_digit(c: char) -> Option<u32> {
    Some(match c {
        '零' | '〇' | '○' => 0,
        '一' => 1,
        '二' | '两' => 2,
        '三' => 3,
        '四' => 4,
        '五' => 5,
        '六' => 6,
        '七' => 7,
        '八' => 8,
        '九' => 9,
        _ => return None,
    })
}

fn zh_unit(c: char) -> Option<u32> {
    Some(match c {
        '十' => 10,
        '百' => 100,
        '千' => 1000,
        '万' => 10_000,
        _ => return None,
    })
}

/// English number words up to twelve, `a` and `an`.
pub fn english_number(word: &str) -> Option<u32> {
    const WORDS: [&str; 12] =
        ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"];
    if word == "a" || word == "an" {
        return Some(1);
    }
    WORDS.iter().position(|w| *w == word).map(|at| at as u32 + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(s: &str) -> Option<u32> {
        let text = Text::new(s);
        number_at(&text, 0).and_then(|n| n.value)
    }

    #[test]
    fn reads_whole_runs() {
        for (s, n) in [
            ("三", 3),
            ("十", 10),
            ("十一", 11),
            ("二十", 20),
            ("二十三", 23),
            ("三十一日", 31),
            ("两", 2),
            ("一百零五", 105),
            ("三千二百", 3200),
            ("兩百", 200),
            ("１０个", 10),
            ("007", 7),
            ("一万", 10_000),
        ] {
            assert_eq!(value(s), Some(n), "{s}");
        }
    }

    #[test]
    fn refuses_what_is_no_number() {
        for s in ["两三", "三十十", "百", "零零", "一二三", "十百", "1234567890", "", "天", "一百二"]
        {
            assert_eq!(value(s), None, "{s}");
        }
        let text = Text::new("两三天 第三 1.5");
        assert_eq!(number_at(&text, 1), None);
        assert_eq!(number_at(&text, 5), None);
        assert_eq!(number_at(&text, 9), None);
    }

    #[test]
    fn years_are_said_digit_by_digit() {
        assert_eq!(chinese_digits(&['二', '〇', '二', '六']), Some(2026));
        assert_eq!(chinese_digits(&['二', '十']), None);
        assert_eq!(chinese_digits(&[]), None);
    }
}
