//! `strftime_now`: the date in the words of a template, from a moment that is given.

use super::message::Now;

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const DAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

/// A moment in the fields of a calendar.
struct Calendar {
    year: i64,
    month: usize,
    day: i64,
    weekday: usize,
    year_day: i64,
    hour: i64,
    minute: i64,
    second: i64,
    offset_min: i64,
}

impl Calendar {
    fn new(now: Now) -> Self {
        // A million years either way: far enough, and nothing below can overflow.
        let local = now.unix_s.clamp(-31_556_952_000_000, 31_556_952_000_000) + i64::from(now.utc_offset_s);
        let (days, second) = (local.div_euclid(86_400), local.rem_euclid(86_400));
        let (year, month, day) = civil(days);
        Self {
            year,
            month: month as usize,
            day,
            weekday: (days + 4).rem_euclid(7) as usize,
            year_day: days - days_to_new_year(year) + 1,
            hour: second / 3600,
            minute: second / 60 % 60,
            second: second % 60,
            offset_min: i64::from(now.utc_offset_s) / 60,
        }
    }
}

/// Year, month and day of a number of days since 1970-01-01, by eras of 400 years that begin in March.
fn civil(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let (era, day) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let march = (5 * day + 2) / 153;
    let month = if march < 10 { march + 3 } else { march - 9 };
    let year = year + era * 400 + i64::from(month <= 2);
    (year, month, day - (153 * march + 2) / 5 + 1)
}

fn days_to_new_year(year: i64) -> i64 {
    let before = year - 1;
    365 * (year - 1970) + before.div_euclid(4) - before.div_euclid(100) + before.div_euclid(400) - 477
}

/// The moment in C's `strftime` format; what is not known is left as it stands.
pub(super) fn strftime(now: Now, format: &str) -> String {
    let calendar = Calendar::new(now);
    let mut out = String::new();
    let mut chars = format.chars();
    while let Some(c) = chars.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        match chars.next() {
            Some('-') => match chars.next() {
                Some(code) => out.push_str(without_zeros(&field(&calendar, code))),
                None => out.push_str("%-"),
            },
            Some(code) => out.push_str(&field(&calendar, code)),
            None => out.push('%'),
        }
    }
    out
}

fn without_zeros(text: &str) -> &str {
    let rest = text.trim_start_matches('0');
    if rest.is_empty() && !text.is_empty() { "0" } else { rest }
}

fn field(at: &Calendar, code: char) -> String {
    let month = MONTHS[at.month - 1];
    let day = DAYS[at.weekday];
    let half = if at.hour < 12 { "AM" } else { "PM" };
    let sign = if at.offset_min < 0 { '-' } else { '+' };
    let offset = at.offset_min.abs();
    match code {
        'Y' => at.year.to_string(),
        'y' => format!("{:02}", at.year.rem_euclid(100)),
        'm' => format!("{:02}", at.month),
        'd' => format!("{:02}", at.day),
        'e' => format!("{:2}", at.day),
        'H' => format!("{:02}", at.hour),
        'I' => format!("{:02}", (at.hour + 11) % 12 + 1),
        'M' => format!("{:02}", at.minute),
        'S' => format!("{:02}", at.second),
        'p' => half.into(),
        'j' => format!("{:03}", at.year_day),
        'B' => month.into(),
        'b' | 'h' => month[..3].into(),
        'A' => day.into(),
        'a' => day[..3].into(),
        'w' => at.weekday.to_string(),
        'F' => format!("{}-{:02}-{:02}", at.year, at.month, at.day),
        'T' => format!("{:02}:{:02}:{:02}", at.hour, at.minute, at.second),
        'D' => format!("{:02}/{:02}/{:02}", at.month, at.day, at.year.rem_euclid(100)),
        'z' => format!("{sign}{:02}{:02}", offset / 60, offset % 60),
        'Z' if offset == 0 => "UTC".into(),
        'Z' => format!("UTC{sign}{:02}:{:02}", offset / 60, offset % 60),
        'n' => "\n".into(),
        't' => "\t".into(),
        '%' => "%".into(),
        other => format!("%{other}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(unix_s: i64, utc_offset_s: i32, format: &str) -> String {
        strftime(Now { unix_s, utc_offset_s }, format)
    }

    #[test]
    fn dates_that_are_known() {
        assert_eq!(at(0, 0, "%F %T %a %j"), "1970-01-01 00:00:00 Thu 001");
        assert_eq!(at(951_782_400, 0, "%d %B %Y, %A, %j"), "29 February 2000, Tuesday, 060");
        assert_eq!(at(1_735_689_599, 0, "%-d %b %y %I:%M %p %j"), "31 Dec 24 11:59 PM 366");
        assert_eq!(at(-1, 0, "%F %T"), "1969-12-31 23:59:59");
        assert_eq!(at(4_107_542_400, 0, "%F %j"), "2100-03-01 060"); // 2100 is no leap year
    }

    #[test]
    fn local_time_is_ahead_of_utc_by_the_offset() {
        assert_eq!(at(1_735_689_599, 8 * 3600, "%F %H:%M %z %Z"), "2025-01-01 07:59 +0800 UTC+08:00");
        assert_eq!(at(0, -3600, "%F %z"), "1969-12-31 -0100");
    }

    #[test]
    fn odd_formats_stand_as_they_are() {
        assert_eq!(at(0, 0, "%% %q % %-"), "% %q % %-");
        assert_eq!(at(i64::MAX, i32::MAX, "%%"), "%");
    }
}
