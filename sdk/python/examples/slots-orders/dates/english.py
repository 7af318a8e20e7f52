"""English date words."""

import re

from number import ENGLISH
from text import is_word

from .when import Hit, likely, unclear

_DAYS = {"yesterday": -1, "today": 0, "tonight": 0, "tomorrow": 1}
_SHIFTS = {"last": -1, "previous": -1, "this": 0, "next": 1}
_DAYS_OF = {"day": 1, "week": 7}
_MONTHS_OF = {"month": 1, "year": 12}

_WEEK = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_WEEKDAYS = {name: index for index, name in enumerate(_WEEK)}
_YEAR = "january february march april may june july august september october november december".split()
_MONTHS = {short: number for number, name in enumerate(_YEAR, 1) for short in (name, name[:3])} | {"sept": 9}

# Months that are other words as well, when they are written small.
_DOUBTFUL = ("may", "march", "mar", "sep", "jan")

# A word is a run of letters or of digits, and nothing but spaces may lie between two: "5 march" and "5march" are the same.
_WORD = re.compile(" *([0-9]+|[a-z]+)")
_LETTERS = re.compile(" *[a-z]")
_DAY_AFTER = re.compile("(?:the +)?day +(before|after)(?![a-z])(?: *([a-z]+))?")
_WEEKDAY = re.compile(" *(?:on(?![a-z]) *)?([a-z]+)")
_UNIT = re.compile(" *(day|week|month|year)s?(?![a-z])")
_FROM_NOW = re.compile(" *(?:(?P<ago>ago)|from +(?:now|today))(?![a-z])")
# After the day: 5th of March.
_MONTH = re.compile("(?:(?:st|nd|rd|th)(?![a-z])|(?![nrst])) *(?:of(?![a-z]) *)?([a-z]+)")
# After the month: March the 5th.
_DAY = re.compile(r"\.?(?: *the(?![a-z]))? *([0-9]+)")
_ORDINAL = re.compile(" *(?:st|nd|rd|th)(?![a-z])")
# With or without a comma.
_YEAR_NUMBER = re.compile(",? *([0-9]{4})(?![0-9a-z/-])")
# 3-5 days, 3.5 days.
_VAGUE = re.compile("[-./~:]")
# March 5-8 and March 5.5.
_GOES_ON = re.compile("[0-9a-z]|[-./:][0-9]")


def date_at(text, at, calendar):
    if at > 0 and is_word(text[at - 1]):
        return None
    first = _WORD.match(text, at)
    word, end = first[1], first.end()
    if word in _DAYS:
        return Hit(end, calendar.in_days(_DAYS[word]))
    if word in _SHIFTS:
        return _shifted(text, end, _SHIFTS[word], calendar)
    match word:
        case "the" | "day":
            return _day_after(text, at, calendar)
        case "in":
            return _in(text, end, calendar)
        case "every" | "each":
            following = _WORD.match(text, end)
            return unclear(following.end()) if following and following[1] in _WEEKDAYS else None
        case _:
            return _named(text, word, end, calendar) or _counted(text, word, at, end, calendar)


def _day_after(text, at, calendar):
    """(the) day after tomorrow, (the) day before yesterday."""
    found = _DAY_AFTER.match(text, at)
    match found and found.groups():
        case None:
            return None
        case "after", "tomorrow":
            return Hit(found.end(), calendar.in_days(2))
        case "before", "yesterday":
            return Hit(found.end(), calendar.in_days(-2))
        case _:
            # What follows may be a number of its own: "the day after 12345678".
            return unclear(found.end(1))


def _shifted(text, at, shift, calendar):
    """What follows next, last or this."""
    found = _WORD.match(text, at)
    if not found:
        return None
    word, end = found[1], found.end()
    if word in _WEEKDAYS:
        return _shifted_weekday(end, _WEEKDAYS[word], shift, calendar)
    match word:
        case "week":
            found = _WEEKDAY.match(text, end)
            if found and found[1] in _WEEKDAYS:
                return Hit(found.end(), calendar.weekday(shift, _WEEKDAYS[found[1]]))
            return Hit(end, calendar.week(shift))
        case "weekend":
            # "next weekend" on a Monday is one or the other, to different people.
            return Hit(end, calendar.weekend(0)) if shift == 0 else unclear(end)
        case "month":
            return Hit(end, calendar.days_of_month(shift))
        case "night" if shift < 0:
            return Hit(end, calendar.in_days(-1))
    return None


def _shifted_weekday(end, weekday, shift, calendar):
    today = calendar.today.weekday()
    # Said on a Saturday or Sunday, "last Friday" may be that of this week.
    is_either = shift == -1 and weekday < today and today >= 5
    if is_either or shift == 0 and weekday < today:
        return unclear(end)
    when = calendar.weekday(shift, weekday)
    # "next Friday" on a Wednesday: this rule takes the next calendar week.
    return likely(end, when) if shift == 1 and weekday > today else Hit(end, when)


def _in(text, at, calendar):
    """In 3 days, in two weeks, in a month."""
    number = _WORD.match(text, at)
    count = number and _count(number[1])
    if count is None or _VAGUE.match(text, number.end()):
        return None
    unit = _UNIT.match(text, number.end())
    return unit and Hit(unit.end(), _away(count, unit[1], calendar))


def _counted(text, word, at, end, calendar):
    """3 days ago, a week ago, two months from now; 5 March, 5th of March."""
    count = _count(word)
    if count is None or at > 0 and text[at - 1] in "-./" or _VAGUE.match(text, end):
        return None
    hit = word.isdigit() and _day_of_month(text, end, count, calendar)
    if hit:
        return hit
    unit = _UNIT.match(text, end)
    said = unit and _FROM_NOW.match(text, unit.end())
    return said and Hit(said.end(), _away(-count if said["ago"] else count, unit[1], calendar))


def _count(word):
    if word.isdigit():
        return int(word) if len(word) <= 4 else None
    return ENGLISH.get(word)


def _away(count, unit, calendar):
    if unit in _DAYS_OF:
        return calendar.in_days(count * _DAYS_OF[unit])
    return calendar.in_months(count * _MONTHS_OF[unit])


def _day_of_month(text, at, day, calendar):
    """5 March, 5th of March 2026."""
    found = _MONTH.match(text, at)
    if not found or found[1] not in _MONTHS:
        return None
    name, end = found[1], found.end()
    if name == "may" and _LETTERS.match(text, end) and not _is_capital(text, end, name):
        # "5 may arrive".
        return None
    end += text.startswith(".", end)
    year, end = _year(text, end)
    return Hit(end, calendar.month_day(year, _MONTHS[name], day))


def _named(text, name, at, calendar):
    """Monday; March 5; March 5th, 2026; March, 2026. A month alone is too vague to act on; "may" and "march" are verbs."""
    if name in _WEEKDAYS:
        return likely(at, calendar.bare_weekday(_WEEKDAYS[name]))
    if name not in _MONTHS:
        return None
    month, behind = _MONTHS[name], at + text.startswith(".", at)
    year, end = _year(text, behind)
    if year:
        # "you may, 2026 or not".
        is_verb = name in _DOUBTFUL and text.startswith(",", behind) and not _is_capital(text, at, name)
        return None if is_verb else Hit(end, calendar.whole_month(year, month))
    found = _DAY.match(text, at)
    if not found or len(found[1]) > 2:
        return None
    number, end = found[1], found.end()
    ordinal = _ORDINAL.match(text, end)
    end = ordinal.end() if ordinal else end
    if _GOES_ON.match(text, end):
        return unclear(end)
    year, end = _year(text, end)
    if name == "may" and not (ordinal or year or _is_capital(text, at, name)):
        # "may 5 people come".
        return None
    return Hit(end, calendar.month_day(year, month, int(number)))


def _year(text, at):
    """A year after a date, if there is one, and where it ends."""
    found = _YEAR_NUMBER.match(text, at)
    year = int(found[1]) if found else 0
    return (year, found.end()) if 1900 <= year <= 2200 else (None, at)


def _is_capital(text, end, name):
    return text.original[end - len(name)].isupper()
