//! English date words.

use super::{Calendar, Hit, When};
use crate::number::english_number;
use crate::text::Text;

const WEEKDAYS: [&str; 7] = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];
const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];

pub(super) fn date_at(text: &Text<'_>, at: usize, calendar: Calendar) -> Option<Hit> {
    if !text.word_start(at) {
        return None;
    }
    let mut words = Words { text, at };
    let first = words.next()?;
    match first.as_str() {
        "yesterday" => Hit::sure(words.at, calendar.in_days(-1)),
        "today" | "tonight" => Hit::sure(words.at, calendar.in_days(0)),
        "tomorrow" => Hit::sure(words.at, calendar.in_days(1)),
        "the" | "day" => day_after(text, at, calendar),
        "next" => shifted(words, 1, calendar),
        "last" | "previous" => shifted(words, -1, calendar),
        "this" => shifted(words, 0, calendar),
        "in" => away(words, calendar),
        "every" | "each" => {
            words.next().filter(|w| weekday(w).is_some()).and_then(|_| Hit::unclear(words.at))
        }
        _ => named(words, &first, calendar).or_else(|| counted(text, at, calendar)),
    }
}

/// A cursor over words of letters or of digits; nothing but spaces, one comma or one full stop may lie between.
#[derive(Clone, Copy)]
struct Words<'t, 's> {
    text: &'t Text<'s>,
    at: usize,
}

impl Words<'_, '_> {
    fn next(&mut self) -> Option<String> {
        let start = self.text.run(self.at, |c| c == ' ');
        let first = self.text.get(start)?;
        let end = if first.is_ascii_digit() {
            self.text.run(start, |c| c.is_ascii_digit())
        } else {
            self.text.run(start, |c| c.is_ascii_alphabetic())
        };
        if end == start {
            return None;
        }
        self.at = end;
        Some(self.text.slice(start..end).iter().collect())
    }

    fn skip(&mut self, wanted: &str) -> bool {
        let mut ahead = *self;
        let found = ahead.next().is_some_and(|word| word == wanted);
        if found {
            *self = ahead;
        }
        found
    }

    fn skip_char(&mut self, wanted: char) {
        if self.text.get(self.at) == Some(wanted) {
            self.at += 1;
        }
    }

    fn closed(&self) -> bool {
        self.text.word_end(self.at)
    }
}

/// (the) day after tomorrow, (the) day before yesterday.
fn day_after(text: &Text<'_>, at: usize, calendar: Calendar) -> Option<Hit> {
    let mut words = Words { text, at };
    words.skip("the");
    if !words.skip("day") {
        return None;
    }
    let side = words.next().filter(|word| word == "before" || word == "after")?;
    // What follows may be a number of its own: "the day after 12345678".
    let open = words.at;
    match (side.as_str(), words.next().as_deref()) {
        ("after", Some("tomorrow")) => Hit::sure(words.at, calendar.in_days(2)),
        ("before", Some("yesterday")) => Hit::sure(words.at, calendar.in_days(-2)),
        _ => Hit::unclear(open),
    }
}

fn shifted(mut words: Words<'_, '_>, shift: i64, calendar: Calendar) -> Option<Hit> {
    let word = words.next()?;
    if let Some(day) = weekday(&word) {
        return shifted_weekday(words.at, day, shift, calendar);
    }
    match word.as_str() {
        "week" => {
            let mut ahead = words;
            ahead.skip("on");
            match ahead.next().as_deref().and_then(weekday) {
                Some(day) => Hit::sure(ahead.at, Some(calendar.weekday(shift, day))),
                None => Hit::sure(words.at, Some(calendar.week(shift))),
            }
        }
        "weekend" if shift == 0 => Hit::sure(words.at, Some(calendar.weekend(0))),
        // "next weekend" on a Monday is one or the other, to different people.
        "weekend" => Hit::unclear(words.at),
        "month" => Hit::sure(words.at, calendar.days_of_month(shift, 1, None)),
        "night" if shift < 0 => Hit::sure(words.at, calendar.in_days(-1)),
        _ => None,
    }
}

fn shifted_weekday(end: usize, day: i64, shift: i64, calendar: Calendar) -> Option<Hit> {
    let when = calendar.weekday(shift, day);
    let today = calendar.today.weekday();
    match shift {
        // Said on a Saturday or Sunday, "last Friday" may be that of this week.
        -1 if day < today && today >= 5 => Hit::unclear(end),
        0 if day < today => Hit::unclear(end),
        // "next Friday" on a Wednesday: this rule takes the next calendar week.
        1 if day > today => Hit::likely(end, Some(when)),
        _ => Hit::sure(end, Some(when)),
    }
}

fn weekday(word: &str) -> Option<i64> {
    WEEKDAYS.iter().position(|d| *d == word).map(|at| at as i64)
}

/// Abbreviations of three letters, and `sept`, count too.
fn month(word: &str) -> Option<u32> {
    let short = word.len() == 3 || word == "sept";
    MONTHS.iter().position(|m| *m == word || (short && m.starts_with(word))).map(|at| at as u32 + 1)
}

/// in 3 days, in two weeks, in a month.
fn away(mut words: Words<'_, '_>, calendar: Calendar) -> Option<Hit> {
    let number = words.next()?;
    let Some(count) = count_of(&number) else {
        // "in March": the month itself speaks.
        return None;
    };
    if vague(words) {
        return None;
    }
    let unit = Unit::of(&words.next()?)?;
    Hit::sure(words.at, unit.counted(i64::from(count), calendar))
}

/// 3 days ago, a week ago, two months from now; 5 March, 5th of March.
fn counted(text: &Text<'_>, at: usize, calendar: Calendar) -> Option<Hit> {
    if text.before(at).is_some_and(|c| matches!(c, '-' | '.' | '/')) {
        return None;
    }
    let mut words = Words { text, at };
    let number = words.next()?;
    let count = count_of(&number)?;
    if vague(words) {
        return None;
    }
    if number.starts_with(|c: char| c.is_ascii_digit()) {
        if let Some(hit) = day_of_month(words, count, calendar) {
            return Some(hit);
        }
    }
    let unit = Unit::of(&words.next()?)?;
    let sign = match words.next()?.as_str() {
        "ago" => -1,
        "from" => match words.next()?.as_str() {
            "now" | "today" => 1,
            _ => return None,
        },
        _ => return None,
    };
    Hit::sure(words.at, unit.counted(sign * i64::from(count), calendar))
}

fn count_of(word: &str) -> Option<u32> {
    if word.len() > 4 && word.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    word.parse().ok().or_else(|| english_number(word))
}

/// 3-5 days, 3.5 days.
fn vague(words: Words<'_, '_>) -> bool {
    matches!(words.text.get(words.at), Some('-' | '.' | '/' | '~' | ':'))
}

#[derive(Clone, Copy)]
enum Unit {
    Days(i64),
    Months(i64),
}

impl Unit {
    fn of(word: &str) -> Option<Unit> {
        Some(match word {
            "day" | "days" => Unit::Days(1),
            "week" | "weeks" => Unit::Days(7),
            "month" | "months" => Unit::Months(1),
            "year" | "years" => Unit::Months(12),
            _ => return None,
        })
    }

    fn counted(self, count: i64, calendar: Calendar) -> Option<When> {
        match self {
            Unit::Days(days) => calendar.in_days(count * days),
            Unit::Months(months) => calendar.in_months(count * months),
        }
    }
}

/// 5 March, 5th of March 2026.
fn day_of_month(mut words: Words<'_, '_>, day: u32, calendar: Calendar) -> Option<Hit> {
    if matches!(words.text.get(words.at), Some('s' | 'n' | 'r' | 't')) {
        ordinal(&mut words)?;
    }
    words.skip("of");
    let name = words.next()?;
    let number = month(&name)?;
    let mut ahead = words;
    let goes_on = ahead.next().is_some_and(|next| !next.starts_with(|c: char| c.is_ascii_digit()));
    if name == "may" && goes_on && !capital(words, &name) {
        return None; // "5 may arrive"
    }
    words.skip_char('.');
    let year = year(&mut words);
    dated(words.at, year, number, day, calendar)
}

fn dated(end: usize, year: Option<i64>, month: u32, day: u32, calendar: Calendar) -> Option<Hit> {
    Hit::sure(end, calendar.month_day(year, month, day))
}

fn capital(words: Words<'_, '_>, name: &str) -> bool {
    let start = words.at.saturating_sub(name.len());
    words.text.original(&(start..words.at)).starts_with(|c: char| c.is_uppercase())
}

fn ordinal(words: &mut Words<'_, '_>) -> Option<()> {
    let mut ahead = *words;
    let suffix = ahead.next()?;
    matches!(suffix.as_str(), "st" | "nd" | "rd" | "th").then(|| *words = ahead)
}

/// A year after a date, with or without a comma: four digits from 1900 to 2200.
fn year(words: &mut Words<'_, '_>) -> Option<i64> {
    let mut ahead = *words;
    ahead.skip_char(',');
    let word = ahead.next()?;
    let year = word.parse::<i64>().ok().filter(|y| word.len() == 4 && (1900..=2200).contains(y))?;
    if !ahead.closed() || matches!(ahead.text.get(ahead.at), Some('-' | '/')) {
        return None;
    }
    *words = ahead;
    Some(year)
}

/// Monday; March 5; March 5th, 2026; March 2026; March, 2026.
fn named(words: Words<'_, '_>, first: &str, calendar: Calendar) -> Option<Hit> {
    if let Some(day) = weekday(first) {
        return Hit::likely(words.at, calendar.bare_weekday(day));
    }
    let number = month(first)?;
    let doubtful = matches!(first, "may" | "march" | "mar" | "sep" | "jan") && !capital(words, first);
    let mut rest = words;
    rest.skip_char('.');
    let mut with_year = rest;
    if let Some(year) = year(&mut with_year) {
        let verb = doubtful && rest.text.get(rest.at) == Some(','); // "you may, 2026 or not"
        return if verb { None } else { Hit::sure(with_year.at, calendar.whole_month(Some(year), number)) };
    }
    let mut ahead = rest;
    ahead.skip("the");
    let Some(word) = ahead.next().filter(|w| w.starts_with(|c: char| c.is_ascii_digit())) else {
        return None; // a month alone: "may" and "march" are verbs, and the rest is too vague to act on
    };
    let day = word.parse::<u32>().ok().filter(|_| word.len() <= 2)?;
    let plain = ordinal(&mut ahead).is_none();
    if !ahead.closed() || vague_after(ahead) {
        return Hit::unclear(ahead.at);
    }
    let year = year(&mut ahead);
    if doubtful && plain && year.is_none() && first == "may" {
        return None; // "may 5 people come"
    }
    dated(ahead.at, year, number, day, calendar)
}

/// March 5-8 and March 5.5.
fn vague_after(words: Words<'_, '_>) -> bool {
    matches!(words.text.get(words.at), Some('-' | '.' | '/' | ':'))
        && words.text.get(words.at + 1).is_some_and(|c| c.is_ascii_digit())
}
