//! Chinese date words. Everything here reads normalised text, so traditional forms need no rules of their own.

use super::{Calendar, Hit};
use crate::civil::Day;
use crate::dates::When;
use crate::number::{Number, chinese_digits, is_numeral, number_at};
use crate::text::Text;

/// Days relative to today; longer words first where one ends another.
const DAYS: &[(&str, i64)] = &[
    ("大前天", -3),
    ("大后天", 3),
    ("前天", -2),
    ("昨天", -1),
    ("昨日", -1),
    ("昨晚", -1),
    ("昨夜", -1),
    ("今天", 0),
    ("今日", 0),
    ("今晚", 0),
    ("今早", 0),
    ("今儿", 0),
    ("今夜", 0),
    ("明天", 1),
    ("明日", 1),
    ("明早", 1),
    ("明晚", 1),
    ("明儿", 1),
    ("后天", 2),
];

/// How many weeks or months away; longer words first where one begins another.
const SHIFTS: &[(&str, i64)] = &[("上上", -2), ("下下", 2), ("上", -1), ("下", 1), ("本", 0), ("这", 0)];

const WEEKS: &[&str] = &["周", "星期", "礼拜"];

const YEARS: &[(&str, i64)] = &[("前年", -2), ("去年", -1), ("今年", 0), ("明年", 1), ("后年", 2)];

/// First scalars of all words above. Most places of a text begin no date, and each of them is asked about.
const BEGINNINGS: &str = "大前昨今明后上下本这周星礼去";

/// A scalar before these words that makes them part of another: 目前天气, 以后天天, 声明天津, 大大后天.
const NOT_AFTER: &[(&str, &str)] = &[
    ("前天", "目以之年月周大提"),
    ("后天", "以之然最年月周大今先"),
    ("明天", "声证表"),
    ("大后天", "大"),
    ("大前天", "大"),
];

pub(super) fn date_at(text: &Text<'_>, at: usize, calendar: Calendar) -> Option<Hit> {
    text.get(at).filter(|c| c.is_ascii_digit() || is_numeral(*c) || BEGINNINGS.contains(*c))?;
    relative_day(text, at, calendar)
        .or_else(|| relative_month(text, at, calendar))
        .or_else(|| relative_week(text, at, calendar))
        .or_else(|| bare_weekday(text, at, calendar))
        .or_else(|| relative_year(text, at, calendar))
        .or_else(|| from_number(text, at, calendar))
}

fn starts_with(text: &Text<'_>, at: usize, word: &str) -> Option<usize> {
    let mut end = at;
    for c in word.chars() {
        if text.get(end) != Some(c) {
            return None;
        }
        end += 1;
    }
    Some(end)
}

fn one_of(text: &Text<'_>, at: usize, words: &[&str]) -> Option<usize> {
    words.iter().find_map(|word| starts_with(text, at, word))
}

fn relative_day(text: &Text<'_>, at: usize, calendar: Calendar) -> Option<Hit> {
    let (word, days, end) =
        DAYS.iter().find_map(|&(word, days)| Some((word, days, starts_with(text, at, word)?)))?;
    let traps = NOT_AFTER.iter().find(|(w, _)| *w == word).map_or("", |(_, traps)| *traps);
    if text.before(at).is_some_and(|c| traps.contains(c)) {
        return None;
    }
    match text.get(end) {
        Some('天') if word == "后天" => None, // 后天天…
        Some('津') => None,                   // …天津
        _ => Hit::sure(end, calendar.in_days(days)),
    }
}

/// 上个月, 本月, 下下个月; then perhaps a day, 上旬 or the like.
fn relative_month(text: &Text<'_>, at: usize, calendar: Calendar) -> Option<Hit> {
    let (months, start) = shift(text, at)?;
    let end = one_of(text, start, &["个月", "一个月", "月"])?;
    let end = starts_with(text, end, "份").unwrap_or(end);
    if let Some(number) = number_at_loose(text, end) {
        if let Some(stop) = one_of(text, number.end, &["日", "号"]) {
            return Hit::sure(stop, number.value.and_then(|day| calendar.day_of_month(months, day)));
        }
        if day_may_end(text, number.end) {
            return Hit::unclear(number.end);
        }
    }
    let decades = [("上旬", 1, Some(10)), ("中旬", 11, Some(20)), ("下旬", 21, None)];
    if let Some((stop, first, last)) =
        decades.iter().find_map(|&(word, first, last)| Some((starts_with(text, end, word)?, first, last)))
    {
        return Hit::sure(stop, calendar.days_of_month(months, first, last));
    }
    if let Some(stop) = one_of(text, end, &["初", "中", "底", "末"]) {
        return Hit::unclear(stop);
    }
    Hit::sure(end, calendar.days_of_month(months, 1, None))
}

/// 上, 下, 上上, 下下, 本, 这, 这个: how many weeks or months away.
fn shift(text: &Text<'_>, at: usize) -> Option<(i64, usize)> {
    if part_of_a_word(text, at) {
        return None;
    }
    SHIFTS.iter().find_map(|&(word, n)| Some((n, starts_with(text, at, word)?)))
}

/// 晚上|周三, 查一下|周三, and 上上上周, which nobody can read.
fn part_of_a_word(text: &Text<'_>, at: usize) -> bool {
    let before = |n: usize| at.checked_sub(n).and_then(|i| text.get(i)).unwrap_or(' ');
    match (text.get(at), before(1)) {
        (Some('上'), c) if "晚早马以网线身".contains(c) => true,
        (Some('下'), c) if "一以等底线地余".contains(c) => true,
        (Some('本'), c) if "基日成".contains(c) => true,
        (_, '上' | '下') => !"一等晚早".contains(before(2)),
        _ => false,
    }
}

fn relative_week(text: &Text<'_>, at: usize, calendar: Calendar) -> Option<Hit> {
    let (weeks, start) = shift(text, at)?;
    let start = starts_with(text, start, "一")
        .filter(|&s| text.get(s) == Some('个') || text.get(s) == Some('周'))
        .unwrap_or(start);
    let start = starts_with(text, start, "个").unwrap_or(start);
    let end = one_of(text, start, WEEKS)?;
    if let Some(stop) = starts_with(text, end, "末") {
        return Hit::sure(stop, Some(calendar.weekend(weeks)));
    }
    match weekday(text, end) {
        Weekday::None => Hit::sure(end, Some(calendar.week(weeks))),
        Weekday::Unclear(stop) => Hit::unclear(stop),
        Weekday::Day(day, stop) => Hit::sure(stop, Some(calendar.weekday(weeks, day))),
    }
}

enum Weekday {
    None,
    Unclear(usize),
    Day(i64, usize),
}

/// The day after 周, 星期 or 礼拜. 下周一个订单 and 下周三点 may go on as a count: unclear.
fn weekday(text: &Text<'_>, at: usize) -> Weekday {
    const DAYS: &str = "一二三四五六日天";
    let Some(c) = text.get(at) else { return Weekday::None };
    let digit =
        c.to_digit(10).filter(|d| (1..=7).contains(d) && text.word_end(at + 1)).map(|d| i64::from(d) - 1);
    let Some(day) = digit.or_else(|| DAYS.chars().position(|d| d == c).map(|day| (day as i64).min(6))) else {
        return Weekday::None;
    };
    let next = text.get(at + 1).unwrap_or(' ');
    let unclear = match (c, next) {
        ('日', n) => "期子常元本".contains(n),
        (_, '天') => text.get(at + 2) != Some('气'),
        (_, n) => is_numeral(n) || "日个件次些样直起定共般条份单点时分位名".contains(n),
    };
    if unclear {
        return Weekday::Unclear(at + 1);
    }
    Weekday::Day(day, at + 1)
}

/// 周三, 星期天, 周末 without a week. 每周三 and 一周三次 are no dates.
fn bare_weekday(text: &Text<'_>, at: usize, calendar: Calendar) -> Option<Hit> {
    let end = one_of(text, at, WEEKS)?;
    let before = text.before(at);
    if before.is_some_and(|c| is_numeral(c) || c.is_ascii_digit() || "个几半多第整".contains(c)) {
        return None;
    }
    let every = before.is_some_and(|c| "每各逢".contains(c));
    if let Some(stop) = starts_with(text, end, "末") {
        return if every { Hit::unclear(stop) } else { Hit::likely(stop, Some(calendar.weekend(0))) };
    }
    match weekday(text, end) {
        Weekday::None => None,
        Weekday::Unclear(stop) => Hit::unclear(stop),
        Weekday::Day(_, stop) if every => Hit::unclear(stop),
        Weekday::Day(day, stop) => Hit::likely(stop, calendar.bare_weekday(day)),
    }
}

/// 去年三月, 明年1月2日. A year by itself is no date.
fn relative_year(text: &Text<'_>, at: usize, calendar: Calendar) -> Option<Hit> {
    let (shift, end) = YEARS.iter().find_map(|&(word, n)| Some((n, starts_with(text, at, word)?)))?;
    let end = starts_with(text, end, "的").unwrap_or(end);
    let number = number_at_loose(text, text.run(end, |c| c == ' '))?;
    month_and_day(text, number, Some(calendar.civil().year + shift), calendar)
}

fn number_at_loose(text: &Text<'_>, at: usize) -> Option<Number> {
    let first = text.get(at)?;
    (first.is_ascii_digit() || is_numeral(first)).then(|| number_at(text, at)).flatten()
}

/// What starts with a number: 2026年3月5日, 三月五日, 三十一日, 3天后.
fn from_number(text: &Text<'_>, at: usize, calendar: Calendar) -> Option<Hit> {
    let number = number_at_loose(text, at)?;
    let unit = text.run(number.end, |c| c == ' ');
    match text.get(unit)? {
        '年' => absolute(text, at, number, unit + 1, calendar).or_else(|| away(text, at, number, calendar)),
        '月' => month_and_day(text, number, None, calendar),
        '日' | '号' => {
            away(text, at, number, calendar).or_else(|| bare_day(text, at, number, unit, calendar))
        }
        _ => away(text, at, number, calendar),
    }
}

/// 2026年3月5日, 二〇二六年三月, 26年3月5日. A year that cannot be read leaves the rest unclear.
fn absolute(text: &Text<'_>, at: usize, year: Number, after: usize, calendar: Calendar) -> Option<Hit> {
    let month = number_at_loose(text, text.run(after, |c| c == ' '))?;
    let said = match year.value {
        Some(value) if year.end == at + 2 && !year.chinese => Some(2000 + value),
        Some(value) => Some(value),
        None => chinese_digits(text.slice(at..year.end)),
    };
    match said.filter(|y| (1900..=2200).contains(y)) {
        Some(year) => month_and_day(text, month, Some(i64::from(year)), calendar),
        None => Hit::unclear(month_and_day(text, month, None, calendar)?.end),
    }
}

/// A month that was read, then its day if there is one: 三月, 3月5日, 一月二十三, 3月5日到8日.
fn month_and_day(text: &Text<'_>, month: Number, year: Option<i64>, calendar: Calendar) -> Option<Hit> {
    let end = starts_with(text, text.run(month.end, |c| c == ' '), "月")?;
    let value = month.value.filter(|m| (1..=12).contains(m));
    let share = starts_with(text, end, "份").unwrap_or(end);
    let day = number_at_loose(text, text.run(share, |c| c == ' '));
    let Some(day) = day else {
        return month_alone(text, value, share, year, calendar);
    };
    let stop = one_of(text, text.run(day.end, |c| c == ' '), &["日", "号"]);
    let (Some(month), Some(first)) = (value, day.value) else {
        return Hit::unclear(stop.unwrap_or(day.end));
    };
    let when = calendar.month_day(year, month, first);
    match stop {
        Some(stop) => Some(through(text, stop, when).unwrap_or(Hit { end: stop, when, confidence: 1.0 })),
        None if day_may_end(text, day.end) => Hit::likely(day.end, when),
        None => Hit::unclear(day.end),
    }
}

/// 3月5日到8日: the second day is of the same month.
fn through(text: &Text<'_>, at: usize, from: Option<When>) -> Option<Hit> {
    let When::Day(first) = from? else { return None };
    let joint = one_of(text, at, &["到", "至", "-", "~"])?;
    let day = number_at_loose(text, joint)?;
    let stop = one_of(text, day.end, &["日", "号"])?;
    let civil = first.civil();
    let last = day.value.and_then(|d| Day::of_civil(civil.year, civil.month, d)).filter(|d| *d >= first);
    Hit::sure(stop, last.map(|last| When::Range(first, last)))
}

fn month_alone(
    text: &Text<'_>,
    month: Option<u32>,
    end: usize,
    year: Option<i64>,
    calendar: Calendar,
) -> Option<Hit> {
    let month = month?;
    if let Some(stop) =
        one_of(text, end, &["初", "中", "底", "末", "上旬", "下旬", "前", "后", "内", "以", "之"])
    {
        return Hit::unclear(stop);
    }
    let when = calendar.whole_month(year, month);
    if year.is_some() { Hit::sure(end, when) } else { Hit::likely(end, when) }
}

/// After 一月二十三 without 日 a measure word would make the number a count.
fn day_may_end(text: &Text<'_>, at: usize) -> bool {
    !text.get(at).is_some_and(|c| {
        c.is_ascii_alphanumeric()
            || "个件份箱盒次天周月年岁元块台只条张本杯瓶套双点时分秒万亿%./-几多位名人斤公".contains(c)
    })
}

/// 三十一日, 5号. 5号楼, 3号线 and 三日游 are no dates, 三日内 is a length of time.
fn bare_day(text: &Text<'_>, at: usize, number: Number, unit: usize, calendar: Calendar) -> Option<Hit> {
    let end = unit + 1;
    if in_street(text, at) {
        return None;
    }
    let place = text.get(end).is_some_and(|c| {
        "楼线店库门机码柜仓桌车房院馆厅口线厂床位球本元游间内以之子字电段桥馆铺".contains(c)
    });
    if place || unit != number.end {
        return None;
    }
    let day = number.value.filter(|d| (1..=31).contains(d))?;
    Hit::likely(end, calendar.bare_day(day))
}

/// 中山北路20号, 人民大道5号: the number of a house.
fn in_street(text: &Text<'_>, at: usize) -> bool {
    let mut stop = at;
    while text.before(stop) == Some(' ') {
        stop -= 1;
    }
    match text.before(stop) {
        Some('路' | '街' | '巷' | '弄') => true,
        Some('道') => text.before(stop - 1).is_some_and(|c| "大街".contains(c)),
        _ => false,
    }
}

/// 3天后, 两周前, 三个月之后, 一年前, 过两天: counted from today.
fn away(text: &Text<'_>, at: usize, number: Number, calendar: Calendar) -> Option<Hit> {
    const UNITS: &[(&str, Unit)] = &[
        ("个工作日", Unit::Unclear),
        ("工作日", Unit::Unclear),
        ("天", Unit::Days(1)),
        ("日", Unit::Days(1)),
        ("个星期", Unit::Days(7)),
        ("个礼拜", Unit::Days(7)),
        ("星期", Unit::Days(7)),
        ("周", Unit::Days(7)),
        ("个月", Unit::Months(1)),
        ("年", Unit::Months(12)),
    ];
    let start = text.run(number.end, |c| c == ' ');
    let (unit, end) = UNITS.iter().find_map(|&(word, unit)| Some((unit, starts_with(text, start, word)?)))?;
    let counted = number.value.map(i64::from);
    let (sign, stop) = if let Some(stop) = one_of(text, end, &["之后", "以后", "过后", "后"]) {
        (1, stop)
    } else if let Some(stop) = one_of(text, end, &["之前", "以前", "前"]) {
        (-1, stop)
    } else if passing(text, at) {
        (1, end)
    } else {
        return None;
    };
    let vague = stop == end && text.get(at) == Some('两'); // 过两天: some time soon
    let when = counted.filter(|_| !vague).and_then(|n| match unit {
        Unit::Days(days) => calendar.in_days(sign * n * days),
        Unit::Months(months) => calendar.in_months(sign * n * months),
        Unit::Unclear => None,
    });
    Hit::sure(stop, when)
}

/// 过3天, but not 超过3天.
fn passing(text: &Text<'_>, at: usize) -> bool {
    text.before(at) == Some('过') && !text.before(at - 1).is_some_and(|c| "超经通不".contains(c))
}

#[derive(Clone, Copy)]
enum Unit {
    Days(i64),
    Months(i64),
    Unclear,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_begins_as_the_list_of_beginnings_says() {
        let shifted = DAYS.iter().chain(SHIFTS).chain(YEARS).map(|(word, _)| *word);
        for word in shifted.chain(WEEKS.iter().copied()) {
            assert!(word.starts_with(|c| BEGINNINGS.contains(c)), "{word}");
        }
    }
}
