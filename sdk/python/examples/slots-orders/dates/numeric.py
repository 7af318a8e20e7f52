"""Dates in digits: 2026-03-05, 2026/3/5, 25/12/2026. What could be read two ways is unclear."""

import re

from civil import day

from .when import Hit, unclear

# Nothing may follow that would make the date part of a longer code; `T08:00` may.
_DATE = re.compile(
    r"(?<![-0-9a-z/.+#])([0-9]{1,4})([-/.])([0-9]{1,4})(?:\2([0-9]{1,4}))?"
    r"(?![0-9a-su-z]|[-/][0-9a-z]|\.[0-9]|t(?![0-9]))"
)


def date_at(text, at):
    found = _DATE.match(text, at)
    if not found:
        return None
    first, separator, second, third = found.groups()
    if third:
        return _of_three(first, second, third, found.end())
    return _of_two(first, second, found.end()) if separator == "/" else None


def _of_three(first, second, third, end):
    lengths = len(first), len(second), len(third)
    first, second, third = int(first), int(second), int(third)
    if lengths[0] == 4 and max(lengths[1:]) <= 2:
        return Hit(end, day(first, second, third))
    if lengths[2] != 4 or max(lengths[:2]) > 2:
        return None
    # Day first or month first: only where one of the two is no date, or both are the same.
    may_be = {day(third, second, first), day(third, first, second)} - {None}
    return unclear(end) if len(may_be) == 2 else Hit(end, next(iter(may_be), None))


def _of_two(first, second, end):
    """3/5 may be March or May; 24/7 and other fractions are no dates at all."""
    if len(first) > 2 or len(second) > 2:
        return None
    low, high = sorted((int(first), int(second)))
    is_fraction = (int(first), int(second)) == (24, 7) or not (1 <= low <= 12 and high <= 31)
    return None if is_fraction else unclear(end)
