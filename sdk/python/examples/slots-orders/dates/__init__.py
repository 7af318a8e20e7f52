"""Date words, Chinese and English, relative to the turn's `now`.

What the words mean here:
- A week starts on Monday. 下周三 and "next Wednesday" are the Wednesday of the next calendar week, 上周五 the Friday of the
  previous one. "last Friday" on a Saturday or Sunday could be that of either week: no date.
- A bare weekday (周三, "on Wednesday") is the one of this week while it is still to come, or today; a past one could be either
  of two: no date.
- A date without a year is this year's, unless it is more than half a year away and the one of the year before or after lies
  within `rollover_days` of now (2 January said on 31 December).
- A bare day (三十一日, 5号) is in this month when it exists there and no other month's is as near: otherwise no date.
- Months and weeks are intervals of days, both ends included.
- 3/5 could be two dates: no date. A date that does not exist (2月30日) is no date.

A mention that has no sure date is still a mention: it keeps the rest of the words from being read alone.
"""

import re
from typing import NamedTuple, Optional

from number import NUMERALS
from text import WHITE_SPACE

from . import chinese, english, numeric
from .when import Calendar, When, iso, span

# Most characters of a text begin no date. The rest of a word or number is not looked at by itself.
_BEGINNING = re.compile(rf"[0-9]+|[a-z]+|[{chinese.BEGINNINGS}{NUMERALS}]")

_JOINTS = ("到", "至", "-", "~", "to", "until", "till", "through")


class Mention(NamedTuple):
    """Words that speak of a date; `when` is None when they do not say which."""

    start: int
    end: int
    when: Optional[When]
    confidence: float


def mentions(text, calendar):
    """All mentions of dates, in order, not overlapping."""
    found, at = [], 0
    while beginning := _BEGINNING.search(text, at):
        hit = _hit_at(text, beginning.start(), calendar)
        if hit:
            found.append(Mention(beginning.start(), *hit))
        at = hit.end if hit else beginning.end()
    return found


def _hit_at(text, at, calendar):
    c = text[at]
    if not c.isascii():
        return chinese.date_at(text, at, calendar)
    if not c.isdigit():
        return english.date_at(text, at, calendar)
    return numeric.date_at(text, at) or chinese.date_at(text, at, calendar) or english.date_at(text, at, calendar)


def pick(text, found, targets, changing):
    """The date of the utterance, when its mentions say exactly one. `targets` are words right before the date that is meant
    when there are two (改到); `changing` tells that "A to B" is a change rather than an interval."""
    if len(found) == 2 and not changing and text[found[0].end : found[1].start].strip(WHITE_SPACE) in _JOINTS:
        return _interval(*found)
    if found and all(mention.when == found[0].when for mention in found):
        meant = found[:1]
    else:
        meant = [mention for mention in found if targets.end_before(text, mention.start)]
    return meant[0] if len(meant) == 1 and meant[0].when else None


def _interval(first, second):
    when = span(first.when, second.when)
    return when and Mention(first.start, second.end, when, min(first.confidence, second.confidence))
