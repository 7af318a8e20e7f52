"""Numbers as people write them: digits of any width and Chinese numerals. A run of numerals is read whole or not at all, so
that 一月二十三 is never taken for 一月二."""

import re
from typing import NamedTuple, Optional

_DIGITS = {"零": 0, "〇": 0, "○": 0, "一": 1, "二": 2, "两": 2, "三": 3, "四": 4, "五": 5, "六": 6, "七": 7, "八": 8, "九": 9}
_UNITS = {"十": 10, "百": 100, "千": 1000, "万": 10_000}

# What Chinese numerals are written with.
NUMERALS = "".join([*_DIGITS, *_UNITS])

# A run that continues one before it is not a number of its own. A full stop that ends a sentence ("到了. 3个") joins nothing.
_NUMBER = re.compile(
    rf"(?:(?<![0-9a-z{NUMERALS}.第几数/])|(?<=\.)(?<![0-9]\.))(?:(?P<digits>[0-9]+)|(?P<chinese>[{NUMERALS}]+))"
)

_ENGLISH = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")

# Number words up to twelve, `a` and `an`.
ENGLISH = {"a": 1, "an": 1} | {word: value for value, word in enumerate(_ENGLISH, 1)}


class Number(NamedTuple):
    """A whole run of numerals."""

    start: int
    end: int
    # None when the run is no number (两三, 十几 starts like one), or one of a thousand million or more.
    value: Optional[int]
    chinese: bool


def number_at(text, at):
    found = _NUMBER.match(text, at)
    return found and _number(found)


def numbers(text):
    """All numbers of the text."""
    return map(_number, _NUMBER.finditer(text))


def chinese_digits(run):
    """Digit by digit, as years are said: 二〇二六."""
    if not 1 <= len(run) <= 9 or any(c not in _DIGITS for c in run):
        return None
    return int("".join(str(_DIGITS[c]) for c in run))


def _number(found):
    run = found["digits"]
    if run:
        value = int(run) if len(run) <= 9 else None
    else:
        value = _chinese(found["chinese"])
    return Number(*found.span(), value, not run)


def _chinese(run):
    """三, 十, 二十三, 一百零五, 三千二百; None for what is no well-formed number."""
    if len(run) == 1:
        return _DIGITS.get(run, 10 if run == "十" else None)
    total, pending, zero, last_unit = 0, None, False, None
    for c in run:
        if c in _UNITS:
            unit = _UNITS[c]
            if pending is None and c == "十" and total == 0 and not zero:
                pending = 1
            if pending is None or last_unit is not None and unit >= last_unit:
                return None
            total, pending, zero, last_unit = total + pending * unit, None, False, unit
            continue
        digit = _DIGITS[c]
        if pending is not None or digit == 0 and (zero or last_unit is None):
            return None
        if digit == 0:
            zero = True
        else:
            pending = digit
    if pending is None:
        return None if zero else total
    # 一百二 is a hundred and twenty to some and unclear to a rule; 二三 is "two or three".
    return total + pending if last_unit == 10 or zero else None
