"""Dates of the calendar, which may not exist: None stands for one that does not, or is outside of the years 1 to 9999."""

from calendar import monthrange
from datetime import date, timedelta
from math import floor, isfinite

_DAY_MS = 86_400_000
_EPOCH = date(1970, 1, 1).toordinal()


def day_of_instant(unix_ms, utc_offset_minutes):
    """The local date of an instant."""
    local = unix_ms + utc_offset_minutes * 60_000
    if not isfinite(local):
        return None
    ordinal = floor(local / _DAY_MS) + _EPOCH
    return date.fromordinal(ordinal) if date.min.toordinal() <= ordinal <= date.max.toordinal() else None


def day(year, month, day):
    try:
        return date(year, month, day)
    except ValueError:
        return None


def plus(start, days):
    """`days` later, or earlier when negative."""
    try:
        return start + timedelta(days)
    except OverflowError:
        return None


def plus_months(start, months):
    """`months` later; a day that the month does not have becomes its last (31 March + 1 → 30 April)."""
    year, month = month_plus(start, months)
    return day(year, month, min(start.day, days_in_month(year, month)))


def month_plus(start, months):
    """Year and month, `months` after those of a date."""
    years, month = divmod(start.month - 1 + months, 12)
    return start.year + years, month + 1


def days_in_month(year, month):
    """Of the year 0 and others that no date has, too."""
    return monthrange(year % 400 + 400, month)[1]
