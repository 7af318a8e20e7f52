//! Times of day as text, `08:00` or `08:00/09:00`. An hour that could be morning or evening gives none.

use crate::number::{is_numeral, number_at};
use crate::text::{Text, is_cjk};
use std::ops::Range;

/// A time of day that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Time {
    /// Scalars of the text.
    pub at: Range<usize>,
    /// `HH:MM`, or two of them joined by `/`.
    pub value: String,
}

/// The time of the utterance, when there is exactly one.
pub fn find(text: &Text<'_>) -> Option<Time> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < text.len() {
        match interval_at(text, at) {
            Some(time) => {
                at = time.at.end;
                found.push(time);
            }
            None => at += 1,
        }
    }
    if found.len() == 1 { found.pop() } else { None }
}

fn interval_at(text: &Text<'_>, at: usize) -> Option<Time> {
    let first = clock_at(text, at, None)?;
    let joint = text.run(first.end, |c| c == ' ');
    let joined =
        ["到", "至", "-", "~", "to ", "until ", "till "].iter().find_map(|word| after(text, joint, word));
    let second = joined.and_then(|start| clock_at(text, text.run(start, |c| c == ' '), Some(first)));
    match second {
        Some(second) => {
            // "from 8 to 9 am": the half of the day is said at the end.
            let from = first.minutes.or_else(|| first.in_half(second.half))?;
            let to = second.minutes?;
            let value = format!("{}/{}", clock_text(from), clock_text(to));
            Some(Time { at: at..second.end, value })
        }
        // 早8到货: the joint belongs to another word, and the hour to nothing that is sure.
        None if first.bare && joined.is_some() => None,
        None => Some(Time { at: at..first.end, value: clock_text(first.minutes?) }),
    }
}

fn clock_text(minutes: u32) -> String {
    format!("{:02}:{:02}", minutes / 60, minutes % 60)
}

fn after(text: &Text<'_>, at: usize, word: &str) -> Option<usize> {
    let mut end = at;
    for c in word.chars() {
        if text.get(end) != Some(c) {
            return None;
        }
        end += 1;
    }
    Some(end)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Half {
    Unsaid,
    Dawn,
    Morning,
    Noon,
    Afternoon,
    Evening,
}

/// A clock time; `minutes` after midnight once the half of the day is known.
#[derive(Debug, Clone, Copy)]
struct Clock {
    end: usize,
    hour: u32,
    minute: u32,
    half: Half,
    minutes: Option<u32>,
    /// Digits alone, with no 点 and no colon.
    bare: bool,
}

impl Clock {
    fn in_half(self, half: Half) -> Option<u32> {
        let hour = match (half, self.hour) {
            (_, 13..=23) => self.hour,
            (Half::Dawn, 12) | (Half::Unsaid, 0) => 0,
            (Half::Morning | Half::Dawn, hour @ 0..=11) => hour,
            (Half::Noon | Half::Afternoon, 12) => 12,
            (Half::Noon, hour @ 11) => hour,
            (Half::Noon, hour @ 1..=3) | (Half::Afternoon, hour @ 1..=11) => hour + 12,
            (Half::Evening, hour @ 5..=11) => hour + 12,
            _ => return None,
        };
        Some(hour * 60 + self.minute)
    }
}

fn clock_at(text: &Text<'_>, at: usize, before: Option<Clock>) -> Option<Clock> {
    let (half, start) = half_at(text, at);
    let mut clock = digits_and_colon(text, start)
        .or_else(|| chinese_clock(text, start, half))
        .or_else(|| english_hour(text, start))
        .or_else(|| noon(text, start))?;
    if let Some((half, end)) = am_pm(text, clock.end) {
        clock = Clock { half, end, bare: false, ..clock };
    } else if clock.bare && goes_on(text, clock.end) {
        return None;
    } else if half != Half::Unsaid {
        clock.half = half;
    }
    let inherited =
        before.map_or(clock.half, |b| if clock.half == Half::Unsaid { b.half } else { clock.half });
    clock.minutes = clock.minutes.filter(|_| clock.half == Half::Unsaid).or_else(|| clock.in_half(inherited));
    if let (Some(b), Half::Unsaid) = (before.and_then(|b| b.minutes), clock.half) {
        // 上午11点到1点: the second is the next one on the clock.
        clock.minutes =
            clock.minutes.map(|m| if m <= b && m < 720 && inherited != Half::Unsaid { m + 720 } else { m });
    }
    // A time with nothing to say which half, and no later one that could: kept open for "8 to 9 am".
    Some(clock)
}

/// 早上, 下午 and their like right before the hour. One-scalar forms only where they cannot be a word:
/// 早一点 and 晚一点 mean "a little earlier" and "later".
fn half_at(text: &Text<'_>, at: usize) -> (Half, usize) {
    const HALVES: &[(&str, Half)] = &[
        ("凌晨", Half::Dawn),
        ("清晨", Half::Morning),
        ("早上", Half::Morning),
        ("早晨", Half::Morning),
        ("上午", Half::Morning),
        ("中午", Half::Noon),
        ("下午", Half::Afternoon),
        ("傍晚", Half::Evening),
        ("晚上", Half::Evening),
        ("夜里", Half::Evening),
        ("夜晚", Half::Evening),
    ];
    if text.get(at).is_none_or(|c| c.is_ascii()) {
        return (Half::Unsaid, at); // most places of most texts
    }
    if let Some((half, end)) = HALVES.iter().find_map(|&(word, half)| Some((half, after(text, at, word)?))) {
        return (half, text.run(end, |c| c == ' ' || c == '的'));
    }
    let half = match text.get(at) {
        Some('早') => Half::Morning,
        Some('晚') => Half::Evening,
        _ => return (Half::Unsaid, at),
    };
    let of_a_day = text.before(at).is_some_and(|c| "今明昨天当".contains(c));
    let digit = text.get(at + 1).is_some_and(|c| c.is_ascii_digit());
    if of_a_day || digit { (half, at + 1) } else { (Half::Unsaid, at) }
}

/// 8:30, 20:15.
fn digits_and_colon(text: &Text<'_>, at: usize) -> Option<Clock> {
    if !text.word_start(at) || text.before(at).is_some_and(|c| matches!(c, ':' | '.' | '/')) {
        return None;
    }
    let (hour, end) = two_digits(text, at)?;
    let colon = text.get(end).is_some_and(|c| c == ':');
    let (minute, stop) = two_digits(text, end + 1).filter(|(m, stop)| colon && *m < 60 && stop - end == 3)?;
    let more = matches!(text.get(stop), Some(':')) || text.get(stop).is_some_and(|c| c.is_ascii_digit());
    if hour > 23 || more {
        return None;
    }
    // A clock of four digits is read as one of 24 hours, unless am or pm follows.
    Some(Clock {
        end: stop,
        hour,
        minute,
        half: Half::Unsaid,
        minutes: Some(hour * 60 + minute),
        bare: false,
    })
}

fn two_digits(text: &Text<'_>, at: usize) -> Option<(u32, usize)> {
    let end = text.run(at, |c| c.is_ascii_digit());
    if !(1..=2).contains(&(end - at)) {
        return None;
    }
    Some((text.slice(at..end).iter().collect::<String>().parse().ok()?, end))
}

/// 8点, 八点半, 3点一刻, 8点20分.
fn chinese_clock(text: &Text<'_>, at: usize, half: Half) -> Option<Clock> {
    let number = number_at(text, at)?;
    let hour = number.value.filter(|h| *h <= 23)?;
    let mark = text.get(number.end)?;
    let bell = text.get(number.end + 1) == Some('钟');
    if !matches!(mark, '点' | '时') || (mark == '时' && half == Half::Unsaid) {
        return None;
    }
    let start = number.end + 1 + usize::from(bell);
    let next = text.get(start);
    // 八点五折, 一点小事: the point is not that of a clock.
    if next.is_some_and(|c| "小儿都也折".contains(c)) {
        return None;
    }
    let (minute, end) = minute_at(text, start)?;
    Some(Clock { end, hour, minute, half: Half::Unsaid, minutes: None, bare: false })
}

fn minute_at(text: &Text<'_>, at: usize) -> Option<(u32, usize)> {
    const WORDS: &[(&str, u32)] = &[("半", 30), ("一刻", 15), ("三刻", 45), ("整", 0)];
    if let Some((minute, end)) = WORDS.iter().find_map(|&(word, m)| Some((m, after(text, at, word)?))) {
        return Some((minute, end));
    }
    if !text.get(at).is_some_and(|c| c.is_ascii_digit() || is_numeral(c)) {
        return Some((0, at));
    }
    let number = number_at(text, at)?;
    let minute = number.value.filter(|m| *m < 60)?;
    Some((minute, after(text, number.end, "分")?))
}

/// 8 in "8am", "8 to 9 pm", "8-9am": worth nothing unless am or pm is said.
fn english_hour(text: &Text<'_>, at: usize) -> Option<Clock> {
    if !text.word_start(at) || text.before(at).is_some_and(|c| matches!(c, ':' | '.' | '/' | '#')) {
        return None;
    }
    let (hour, end) = two_digits(text, at).filter(|(h, _)| (1..=12).contains(h))?;
    Some(Clock { end, hour, minute: 0, half: Half::Unsaid, minutes: None, bare: true })
}

/// 下午3个人, 早8折, 早8.5折: the digits count something else. 下午3到5点 goes on as a time.
fn goes_on(text: &Text<'_>, at: usize) -> bool {
    let next = text.run(at, |c| c == ' ');
    match text.get(next) {
        Some('.') => text.get(next + 1).is_some_and(|c| c.is_ascii_digit()),
        Some(c) => c == '%' || (is_cjk(c) && !"到至".contains(c)),
        None => false,
    }
}

fn noon(text: &Text<'_>, at: usize) -> Option<Clock> {
    let end = ["noon", "midday"].iter().find_map(|word| after(text, at, word))?;
    let word = text.word_start(at) && text.word_end(end);
    word.then_some(Clock { end, hour: 12, minute: 0, half: Half::Noon, minutes: Some(720), bare: false })
}

fn am_pm(text: &Text<'_>, at: usize) -> Option<(Half, usize)> {
    let start = text.run(at, |c| c == ' ');
    let (half, end) =
        [("am", Half::Dawn), ("a.m.", Half::Dawn), ("pm", Half::Afternoon), ("p.m.", Half::Afternoon)]
            .iter()
            .find_map(|&(word, half)| Some((half, after(text, start, word)?)))?;
    text.word_end(end).then_some((half, end))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(s: &str) -> Option<(String, String)> {
        let text = Text::new(s);
        find(&text).map(|t| (text.original(&t.at).to_owned(), t.value))
    }

    #[test]
    fn reads_times_that_are_sure() {
        for (s, at, value) in [
            ("明天早上8点到9点", "早上8点到9点", "08:00/09:00"),
            ("下午三点半送", "下午三点半", "15:30"),
            ("今晚八点", "晚八点", "20:00"),
            ("上午11点到1点", "上午11点到1点", "11:00/13:00"),
            ("晚上８点２０分", "晚上８点２０分", "20:20"),
            ("凌晨12点", "凌晨12点", "00:00"),
            ("中午12点", "中午12点", "12:00"),
            ("at 8:30 pm", "8:30 pm", "20:30"),
            ("20:15 到货", "20:15", "20:15"),
            ("from 8 to 9 am", "8 to 9 am", "08:00/09:00"),
            ("8-9pm", "8-9pm", "20:00/21:00"),
            ("after 12am", "12am", "00:00"),
            ("15点", "15点", "15:00"),
            ("before noon", "noon", "12:00"),
            ("10 am to noon", "10 am to noon", "10:00/12:00"),
            ("下午3到5点", "下午3到5点", "15:00/17:00"),
            ("下午3-4点", "下午3-4点", "15:00/16:00"),
            ("早8-晚6，都行", "早8-晚6", "08:00/18:00"),
        ] {
            assert_eq!(time(s), Some((at.to_owned(), value.to_owned())), "{s}");
        }
    }

    #[test]
    fn gives_none_where_it_is_not() {
        for s in [
            "早一点",
            "晚一点到",
            "最早",
            "8点",
            "八点五折",
            "有一点问题",
            "下午3个人",
            "下午 3 个人",
            "早8折",
            "早8.5折",
            "早8到货",
            "晚5%",
            "afternoon",
            "at 8",
            "晚上12点",
            "ratio 8:3",
            "1:2:3",
            "25:00",
            "早",
            "到",
            "",
        ] {
            assert_eq!(time(s), None, "{s}");
        }
    }
}
