//! Civil dates as day numbers. The two conversions follow Howard Hinnant, "chrono-Compatible Low-Level Date
//! Algorithms" (public domain): eras of 400 years, years that start in March.

/// Days since 1970-01-01.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Day(pub i64);

/// Year, month 1-12 and day 1-31 of the proleptic Gregorian calendar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Civil {
    /// Year; 2026 is 2026.
    pub year: i64,
    /// Month, 1-12.
    pub month: u32,
    /// Day of the month, 1-31.
    pub day: u32,
}

const DAY_MS: f64 = 86_400_000.0;

impl Day {
    /// The local date of an instant: milliseconds since the epoch, minutes east of Greenwich. `None` when the
    /// instant is no number or outside the years that a four-digit date can write.
    pub fn of_instant(unix_ms: f64, utc_offset_minutes: i16) -> Option<Day> {
        let local = unix_ms + f64::from(utc_offset_minutes) * 60_000.0;
        let day = Day((local / DAY_MS).floor() as i64);
        (local.is_finite() && day.iso().is_some()).then_some(day)
    }

    /// The day of a civil date, when that date exists.
    pub fn of_civil(year: i64, month: u32, day: u32) -> Option<Day> {
        if !(1..=9999).contains(&year) || day == 0 || day > days_in_month(year, month)? {
            return None;
        }
        let (month, day) = (i64::from(month), i64::from(day));
        let year = if month <= 2 { year - 1 } else { year };
        let era = year.div_euclid(400);
        let year_of_era = year.rem_euclid(400);
        let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
        let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
        Some(Day(era * 146_097 + day_of_era - 719_468))
    }

    /// Year, month and day.
    pub fn civil(self) -> Civil {
        let days = self.0 + 719_468;
        let era = days.div_euclid(146_097);
        let day_of_era = days.rem_euclid(146_097);
        let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let shifted = (5 * day_of_year + 2) / 153;
        let day = (day_of_year - (153 * shifted + 2) / 5 + 1) as u32;
        let month = (if shifted < 10 { shifted + 3 } else { shifted - 9 }) as u32;
        let year = year_of_era + era * 400 + i64::from(month <= 2);
        Civil { year, month, day }
    }

    /// Monday is 0, Sunday 6.
    pub fn weekday(self) -> i64 {
        (self.0 + 3).rem_euclid(7)
    }

    /// Monday of this day's week.
    pub fn monday(self) -> Day {
        Day(self.0 - self.weekday())
    }

    /// `days` later, or earlier when negative.
    pub fn plus(self, days: i64) -> Day {
        Day(self.0.saturating_add(days))
    }

    /// `months` later; a day that the month does not have becomes its last (31 March + 1 → 30 April).
    pub fn plus_months(self, months: i64) -> Option<Day> {
        let from = self.civil();
        let (year, month) = month_plus(from.year, from.month, months);
        Day::of_civil(year, month, from.day.min(days_in_month(year, month)?))
    }

    /// `YYYY-MM-DD`, for the years 1 to 9999.
    pub fn iso(self) -> Option<String> {
        if !(-800_000..3_000_000).contains(&self.0) {
            return None;
        }
        let Civil { year, month, day } = self.civil();
        (1..=9999).contains(&year).then(|| format!("{year:04}-{month:02}-{day:02}"))
    }
}

/// The month `months` after month `month` of `year`.
pub fn month_plus(year: i64, month: u32, months: i64) -> (i64, u32) {
    let index = year.saturating_mul(12).saturating_add(i64::from(month) - 1).saturating_add(months);
    (index.div_euclid(12), index.rem_euclid(12) as u32 + 1)
}

/// Days of a month, when there is such a month.
pub fn days_in_month(year: i64, month: u32) -> Option<u32> {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => Some(31),
        4 | 6 | 9 | 11 => Some(30),
        2 => Some(if leap { 29 } else { 28 }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn iso(year: i64, month: u32, day: u32) -> Option<String> {
        Day::of_civil(year, month, day)?.iso()
    }

    #[test]
    fn known_days() {
        assert_eq!(Day::of_civil(1970, 1, 1), Some(Day(0)));
        assert_eq!(Day::of_civil(2000, 3, 1), Some(Day(11_017)));
        assert_eq!(Day::of_civil(2026, 3, 5).unwrap().weekday(), 3); // a Thursday
        assert_eq!(iso(2028, 2, 29).as_deref(), Some("2028-02-29"));
        assert_eq!(iso(2026, 2, 29), None);
        assert_eq!(iso(2026, 13, 1), None);
    }

    #[test]
    fn every_day_of_four_centuries_goes_there_and_back() {
        for n in -10_000..150_000 {
            let c = Day(n).civil();
            assert_eq!(Day::of_civil(c.year, c.month, c.day), Some(Day(n)));
        }
    }

    #[test]
    fn months_stop_at_their_last_day() {
        let plus = |y, m, d, n| Day::of_civil(y, m, d).unwrap().plus_months(n).unwrap().iso().unwrap();
        assert_eq!(plus(2026, 3, 31, 1), "2026-04-30");
        assert_eq!(plus(2026, 3, 31, -1), "2026-02-28");
        assert_eq!(plus(2028, 2, 29, 12), "2029-02-28");
        assert_eq!(plus(2026, 12, 31, 2), "2027-02-28");
    }

    #[test]
    fn the_offset_decides_the_date_and_nonsense_has_none() {
        let ms = 1_774_972_799_000.0; // 2026-03-31T15:59:59Z
        assert_eq!(Day::of_instant(ms, 0).unwrap().iso().unwrap(), "2026-03-31");
        assert_eq!(Day::of_instant(ms, 480).unwrap().iso().unwrap(), "2026-03-31");
        assert_eq!(Day::of_instant(ms + 1000.0, 480).unwrap().iso().unwrap(), "2026-04-01");
        for bad in [f64::NAN, f64::INFINITY, -f64::INFINITY, 1e300, -1e300] {
            assert_eq!(Day::of_instant(bad, 0), None);
        }
    }
}
