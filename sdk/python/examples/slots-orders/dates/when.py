"""The days that date words may mean, and the calendar they are counted in."""

from datetime import date
from typing import NamedTuple, Optional, Union

from civil import day, days_in_month, month_plus, plus, plus_months

# A day, or the first and the last of an interval of days.
When = Union[date, tuple[date, date]]


class Hit(NamedTuple):
    """What one scanner found at one place; `when` is None where the words do not say which date."""

    end: int
    when: Optional[When]
    confidence: float = 1.0


def unclear(end):
    return Hit(end, None, 0.0)


def likely(end, when):
    return Hit(end, when, 0.8)


def iso(when):
    """`2026-03-05`, or `2026-03-01/2026-03-31`."""
    return when.isoformat() if isinstance(when, date) else "/".join(end.isoformat() for end in when)


def span(first, last):
    """The interval between two days."""
    return (first, last) if isinstance(first, date) and isinstance(last, date) and first <= last else None


class Calendar(NamedTuple):
    # In the user's zone.
    today: date
    # How near a date of another year must be to be meant when the year is left out.
    rollover_days: int

    def in_days(self, days):
        return plus(self.today, days) if abs(days) < 100_000 else None

    def in_months(self, months):
        return plus_months(self.today, months) if abs(months) < 10_000 else None

    def weekday(self, weeks, weekday):
        """A day of the calendar week `weeks` from this one; Monday is 0."""
        return plus(self.today, weeks * 7 + weekday - self.today.weekday())

    def week(self, weeks):
        return span(self.weekday(weeks, 0), self.weekday(weeks, 6))

    def weekend(self, weeks):
        return span(self.weekday(weeks, 5), self.weekday(weeks, 6))

    def bare_weekday(self, weekday):
        """A weekday without a week: this week's, unless it has passed."""
        return self.weekday(0, weekday) if weekday >= self.today.weekday() else None

    def days_of_month(self, months, first=1, last=None):
        """Days `first` to `last` of the month `months` from this one."""
        return _days_of_month(*month_plus(self.today, months), first, last)

    def day_of_month(self, months, number):
        return day(*month_plus(self.today, months), number)

    def bare_day(self, number):
        """A day without a month: this month's, unless another month's is as near."""
        before, here, after = (self.day_of_month(months, number) for months in (-1, 0, 1))
        nearest_other = min(self._distance(before), self._distance(after))
        return here if self._distance(here) < nearest_other else None

    def month_day(self, year, month, number):
        return day(self._year_of(month, number) if year is None else year, month, number)

    def whole_month(self, year, month):
        return _days_of_month(self._year_of(month, 15) if year is None else year, month)

    def _year_of(self, month, number):
        """The year meant by a month and day without one."""

        def distance(year):
            # 29 February is looked at as the 28th: only the distance matters here.
            return self._distance(day(year, month, min(number, days_in_month(year, month))))

        year = self.today.year
        if distance(year) <= 183:
            return year
        return next((other for other in (year - 1, year + 1) if distance(other) <= self.rollover_days), year)

    def _distance(self, other):
        return abs(other - self.today).days if other else float("inf")


def _days_of_month(year, month, first=1, last=None):
    return span(day(year, month, first), day(year, month, last or days_in_month(year, month)))
