//! Dates as the contract writes them: a part of ISO 8601.

/// Whether a text is a year, month, day, instant, or an interval of two of these.
pub(super) fn is_date(text: &str) -> bool {
    match text.split_once('/') {
        Some((from, to)) => is_point(from) && is_point(to),
        None => is_point(text),
    }
}

fn is_point(text: &str) -> bool {
    let (date, time) = match text.split_once('T') {
        Some((date, time)) => (date, Some(time)),
        None => (text, None),
    };
    let mut parts = date.split('-');
    let Some(year) = parts.next().and_then(|part| number(part, 4)) else {
        return false;
    };
    let month = parts.next();
    let day = parts.next();
    if parts.next().is_some() {
        return false;
    }
    match (month, day, time) {
        (None, None, None) => true,
        (Some(month), None, None) => is_month(month),
        (Some(month), Some(day), time) => is_day(year, month, day) && time.is_none_or(is_time),
        _ => false,
    }
}

fn is_month(month: &str) -> bool {
    number(month, 2).is_some_and(|month| (1..=12).contains(&month))
}

fn is_day(year: u32, month: &str, day: &str) -> bool {
    let (Some(month), Some(day)) = (number(month, 2), number(day, 2)) else {
        return false;
    };
    let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let days = match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 if leap => 29,
        2 => 28,
        _ => return false,
    };
    (1..=days).contains(&day)
}

/// `HH:MM`, then seconds and a zone or not.
fn is_time(time: &str) -> bool {
    let zone_at = time.find(['Z', '+', '-']).unwrap_or(time.len());
    let (clock, zone) = time.split_at(zone_at);
    let mut parts = clock.split(':');
    let hours = parts.next().and_then(|part| number(part, 2));
    let minutes = parts.next().and_then(|part| number(part, 2));
    let seconds = parts.next().map(is_seconds);
    hours.is_some_and(|hours| hours < 24)
        && minutes.is_some_and(|minutes| minutes < 60)
        && seconds.unwrap_or(true)
        && parts.next().is_none()
        && is_zone(zone)
}

/// Two digits, and a fraction or not.
fn is_seconds(text: &str) -> bool {
    let (whole, fraction) = match text.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (text, None),
    };
    number(whole, 2).is_some_and(|seconds| seconds <= 60)
        && fraction.is_none_or(|f| !f.is_empty() && f.bytes().all(|c| c.is_ascii_digit()))
}

fn is_zone(zone: &str) -> bool {
    if zone.is_empty() || zone == "Z" {
        return true;
    }
    let Some((hours, minutes)) = zone.get(1..).and_then(|zone| zone.split_once(':')) else {
        return false;
    };
    number(hours, 2).is_some_and(|hours| hours < 24) && number(minutes, 2).is_some_and(|minutes| minutes < 60)
}

/// A number of exactly so many digits.
fn number(text: &str, digits: usize) -> Option<u32> {
    if text.len() != digits || !text.bytes().all(|c| c.is_ascii_digit()) {
        return None;
    }
    text.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::is_date;

    #[test]
    fn what_is_a_date() {
        for date in [
            "2026",
            "2026-03",
            "2026-03-31",
            "2024-02-29",
            "2026-03-31T08:00",
            "2026-03-31T08:00:00",
            "2026-03-31T08:00:00.25+08:00",
            "2026-03-31T08:00Z",
            "2026-02-01/2026-02-28",
            "2026-01/2026-02",
        ] {
            assert!(is_date(date), "{date}");
        }
    }

    #[test]
    fn what_is_not() {
        for text in [
            "",
            "tomorrow",
            "26-03-31",
            "2026-3-1",
            "2026-13",
            "2026-02-29",
            "2026-04-31",
            "2026-00-01",
            "2026-03-31 08:00",
            "2026T08:00",
            "2026-03-31T24:00",
            "2026-03-31T08",
            "2026-03-31T08:00:00+8",
            "2026-03-31T08:00:00.",
            "2026-02-01/",
            "2026/2027/2028",
            "+026-03-31",
            "２０２６-03-31",
        ] {
            assert!(!is_date(text), "{text}");
        }
    }
}
