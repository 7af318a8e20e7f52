//! Date words, Chinese and English, relative to the turn's `now`.
//!
//! What the words mean here:
//! - A week starts on Monday. 下周三 and "next Wednesday" are the Wednesday of the next calendar week, 上周五 the Friday
//!   of the previous one. "last Friday" on a Saturday or Sunday could be that of either week: no date.
//! - A bare weekday (周三, "on Wednesday") is the one of this week while it is still to come, or today; a past one
//!   could be either of two: no date.
//! - A date without a year is this year's, unless it is more than half a year away and the one of the year before or
//!   after lies within `rollover_days` of now (2 January said on 31 December).
//! - A bare day (三十一日, 5号) is in this month when it exists there and no other month's is as near: otherwise no date.
//! - Months and weeks are intervals of days, both ends included.
//! - 3/5 could be two dates: no date. A date that does not exist (2月30日) is no date.
//!
//! A mention that has no sure date is still a mention: it keeps the rest of the words from being read alone.

mod chinese;
mod english;
mod numeric;

use crate::civil::{Civil, Day, days_in_month, month_plus};
use crate::text::{Phrases, Text};
use std::ops::Range;

/// A day, or an interval of days with both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// One day.
    Day(Day),
    /// First and last day.
    Range(Day, Day),
}

impl When {
    /// ISO 8601: `2026-03-05`, or `2026-03-01/2026-03-31`.
    pub fn iso(self) -> Option<String> {
        match self {
            When::Day(day) => day.iso(),
            When::Range(first, last) => Some(format!("{}/{}", first.iso()?, last.iso()?)),
        }
    }
}

/// Words that speak of a date; `when` is `None` when they do not say which.
#[derive(Debug, Clone, PartialEq)]
pub struct Mention {
    /// Scalars of the text.
    pub at: Range<usize>,
    /// The date, when it is sure.
    pub when: Option<When>,
    /// 0 to 1.
    pub confidence: f32,
}

/// What the words are relative to.
#[derive(Debug, Clone, Copy)]
pub struct Calendar {
    /// Today, in the user's zone.
    pub today: Day,
    /// How near a date of another year must be to be meant when the year is left out.
    pub rollover_days: i64,
}

/// What one scanner found at one place.
#[derive(Debug, Clone, Copy)]
struct Hit {
    end: usize,
    when: Option<When>,
    confidence: f32,
}

impl Hit {
    fn sure(end: usize, when: Option<When>) -> Option<Hit> {
        Some(Hit { end, when, confidence: 1.0 })
    }

    fn likely(end: usize, when: Option<When>) -> Option<Hit> {
        Some(Hit { end, when, confidence: 0.8 })
    }

    fn unclear(end: usize) -> Option<Hit> {
        Some(Hit { end, when: None, confidence: 0.0 })
    }
}

/// All mentions of dates, in order, not overlapping.
pub fn mentions(text: &Text<'_>, calendar: Calendar) -> Vec<Mention> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(c) = text.get(at) {
        let hit = if c.is_ascii_digit() {
            numeric::date_at(text, at, calendar).or_else(|| chinese::date_at(text, at, calendar))
        } else if c.is_ascii_alphabetic() {
            None
        } else {
            chinese::date_at(text, at, calendar)
        };
        let hit =
            hit.or_else(|| c.is_ascii_alphanumeric().then(|| english::date_at(text, at, calendar)).flatten());
        match hit {
            Some(hit) if hit.end > at => {
                found.push(Mention { at: at..hit.end, when: hit.when, confidence: hit.confidence });
                at = hit.end;
            }
            // The rest of a word or number is not looked at by itself.
            _ if c.is_ascii_digit() => at = text.run(at, |c| c.is_ascii_digit()),
            _ if c.is_ascii_alphabetic() => at = text.run(at, |c| c.is_ascii_alphabetic()),
            _ => at += 1,
        }
    }
    found
}

/// The date of the utterance, when its mentions say exactly one. `targets` are words right before the date that is
/// meant when there are two (改到); `changing` tells that "A to B" is a change rather than an interval.
pub fn pick(text: &Text<'_>, mentions: &[Mention], targets: &Phrases, changing: bool) -> Option<Mention> {
    let mut aimed = mentions.iter().filter(|m| targets.ends_before(text, m.at.start));
    match mentions {
        [] => None,
        [only] => only.when.is_some().then(|| only.clone()),
        [first, second] if joined(text, first, second) && !changing => interval(first, second),
        [first, rest @ ..] if rest.iter().all(|m| m.when.is_some() && m.when == first.when) => {
            Some(first.clone())
        }
        _ => {
            let target = aimed.next()?;
            (aimed.next().is_none() && target.when.is_some()).then(|| target.clone())
        }
    }
}

fn joined(text: &Text<'_>, first: &Mention, second: &Mention) -> bool {
    let between: String = text.slice(first.at.end..second.at.start).iter().collect();
    matches!(between.trim(), "到" | "至" | "-" | "~" | "to" | "until" | "till" | "through")
}

fn interval(first: &Mention, second: &Mention) -> Option<Mention> {
    let (Some(When::Day(from)), Some(When::Day(to))) = (first.when, second.when) else {
        return None;
    };
    (from <= to).then(|| Mention {
        at: first.at.start..second.at.end,
        when: Some(When::Range(from, to)),
        confidence: first.confidence.min(second.confidence),
    })
}

impl Calendar {
    fn civil(&self) -> Civil {
        self.today.civil()
    }

    fn in_days(&self, days: i64) -> Option<When> {
        (days.abs() < 100_000).then(|| When::Day(self.today.plus(days)))
    }

    fn in_months(&self, months: i64) -> Option<When> {
        (months.abs() < 10_000).then(|| self.today.plus_months(months)).flatten().map(When::Day)
    }

    /// The calendar week `weeks` from this one.
    fn week(&self, weeks: i64) -> When {
        let monday = self.today.monday().plus(weeks * 7);
        When::Range(monday, monday.plus(6))
    }

    /// A day of the calendar week `weeks` from this one; Monday is 0.
    fn weekday(&self, weeks: i64, weekday: i64) -> When {
        When::Day(self.today.monday().plus(weeks * 7 + weekday))
    }

    fn weekend(&self, weeks: i64) -> When {
        let monday = self.today.monday().plus(weeks * 7);
        When::Range(monday.plus(5), monday.plus(6))
    }

    /// A weekday without a week: this week's, unless it has passed.
    fn bare_weekday(&self, weekday: i64) -> Option<When> {
        (weekday >= self.today.weekday()).then(|| self.weekday(0, weekday))
    }

    /// Days `first` to `last` of the month `months` from this one.
    fn days_of_month(&self, months: i64, first: u32, last: Option<u32>) -> Option<When> {
        let now = self.civil();
        let (year, month) = month_plus(now.year, now.month, months);
        span_of(year, month, first, last)
    }

    fn day_of_month(&self, months: i64, day: u32) -> Option<When> {
        let now = self.civil();
        let (year, month) = month_plus(now.year, now.month, months);
        Day::of_civil(year, month, day).map(When::Day)
    }

    /// A day without a month: this month's, unless another month's is as near.
    fn bare_day(&self, day: u32) -> Option<When> {
        let now = self.civil();
        let here = Day::of_civil(now.year, now.month, day)?;
        let distance = (here.0 - self.today.0).abs();
        let nearer = [-1, 1].iter().any(|&step| {
            let (year, month) = month_plus(now.year, now.month, step);
            Day::of_civil(year, month, day).is_some_and(|d| (d.0 - self.today.0).abs() <= distance)
        });
        (!nearer).then_some(When::Day(here))
    }

    /// The year meant by a month and day without one.
    fn year_of(&self, month: u32, day: u32) -> i64 {
        let now = self.civil();
        let distance = |year: i64| {
            // 29 February is looked at as the 28th: only the distance matters here.
            let day = day.min(days_in_month(year, month).unwrap_or(28));
            Day::of_civil(year, month, day).map_or(i64::MAX, |d| (d.0 - self.today.0).abs())
        };
        if distance(now.year) <= 183 {
            return now.year;
        }
        let near = [now.year - 1, now.year + 1].into_iter().find(|&y| distance(y) <= self.rollover_days);
        near.unwrap_or(now.year)
    }

    fn month_day(&self, year: Option<i64>, month: u32, day: u32) -> Option<When> {
        let year = year.unwrap_or_else(|| self.year_of(month, day));
        Day::of_civil(year, month, day).map(When::Day)
    }

    fn whole_month(&self, year: Option<i64>, month: u32) -> Option<When> {
        span_of(year.unwrap_or_else(|| self.year_of(month, 15)), month, 1, None)
    }
}

fn span_of(year: i64, month: u32, first: u32, last: Option<u32>) -> Option<When> {
    let last = last.or_else(|| days_in_month(year, month))?;
    Some(When::Range(Day::of_civil(year, month, first)?, Day::of_civil(year, month, last)?))
}

#[cfg(test)]
mod tests;
