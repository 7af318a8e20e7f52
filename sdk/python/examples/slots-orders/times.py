"""Times of day as text, `08:00` or `08:00/09:00`. An hour that could be morning or evening gives none."""

import re
from typing import NamedTuple, Optional

from found import Found
from number import NUMERALS, number_at
from text import CJK

# What a time may start with, at the start of a number or a word.
_BEGINNING = re.compile(rf"(?<![0-9a-z])(?:[0-9]|noon|midday)|[凌清早上中下傍晚夜]|(?<![{NUMERALS}])[{NUMERALS}]")

# 早 and 晚 alone only where they cannot be a word: 早一点 and 晚一点 mean "a little earlier" and "later".
_HALF = re.compile("(凌晨|清晨|早[上晨]|[上中下]午|傍晚|晚上|夜[里晚])[ 的]*|([早晚])(?:(?<=[今明昨天当].)|(?=[0-9]))")
_AM_PM = re.compile(r" *([ap])(?:m|\.m\.)(?![0-9a-z])")
_HALVES = {
    "凌晨": "dawn",
    "清晨": "morning",
    "早上": "morning",
    "早晨": "morning",
    "早": "morning",
    "上午": "morning",
    "中午": "noon",
    "下午": "afternoon",
    "傍晚": "evening",
    "晚上": "evening",
    "晚": "evening",
    "夜里": "evening",
    "夜晚": "evening",
    "a": "dawn",
    "p": "afternoon",
}

# Up to twelve, what an hour of each half is on a clock of 24 hours; None is a half that nobody named.
_HOURS = {
    None: {0: 0},
    "dawn": {hour: hour for hour in range(12)} | {12: 0},
    "morning": {hour: hour for hour in range(12)},
    "noon": {11: 11, 12: 12, 1: 13, 2: 14, 3: 15},
    "afternoon": {hour: hour + 12 for hour in range(1, 12)} | {12: 12},
    "evening": {hour: hour + 12 for hour in range(5, 12)},
}

# 8:30, 20:15.
_DIGITS = re.compile("(?<![0-9a-z:./])([0-9]{1,2}):([0-5][0-9])(?![0-9:])")
_NOON = re.compile("(?<![0-9a-z])(?:noon|midday)(?![0-9a-z])")
# 8 in "8am", "8 to 9 pm", "8-9am".
_HOUR = re.compile("(?<![0-9a-z:./#])([0-9]{1,2})(?![0-9])")
# 点 in 八点五折 and 一点小事 is not that of a clock.
_SIGN = re.compile("([点时])(?:钟|(?!钟))(?![小儿都也折])")
# 下午3个人, 早8折, 早8.5折: the digits count something else. 下午3到5点 goes on as a time.
_COUNTS = re.compile(rf" *(?:%|\.[0-9]|(?![到至])[{CJK}])")
_PART_OF_HOUR = re.compile("半|一刻|三刻|整")
_PARTS = {"半": 30, "一刻": 15, "三刻": 45, "整": 0}

_JOINT = re.compile(" *(?:到|至|-|~|to |until |till ) *")


class _Clock(NamedTuple):
    end: int
    hour: int
    minute: int
    half: Optional[str]
    # After midnight; None as long as the half of the day is not known.
    minutes: Optional[int]
    # Digits alone, with no 点 and no colon.
    bare: bool

    def minutes_in(self, half):
        hour = self.hour if self.hour > 12 else _HOURS[half].get(self.hour)
        return None if hour is None else hour * 60 + self.minute


def find(text):
    """The time of the utterance, when there is exactly one."""
    found, at = [], 0
    while beginning := _BEGINNING.search(text, at):
        time = _time_at(text, beginning.start())
        if time:
            found.append(time)
        at = time.end if time else beginning.end()
    return found[0] if len(found) == 1 else None


def _time_at(text, at):
    first = _clock_at(text, at)
    if not first:
        return None
    joint = _JOINT.match(text, first.end)
    second = joint and _clock_at(text, joint.end(), first)
    if not second:
        # 早8到货: the joint belongs to another word, and the hour to nothing that is sure.
        is_open = first.minutes is None or first.bare and joint
        return None if is_open else Found(at, first.end, _said(first.minutes))
    # "from 8 to 9 am": the half of the day is said at the end.
    begin = first.minutes_in(second.half) if first.minutes is None else first.minutes
    if begin is None or second.minutes is None:
        return None
    return Found(at, second.end, f"{_said(begin)}/{_said(second.minutes)}")


def _said(minutes):
    return "{:02}:{:02}".format(*divmod(minutes, 60))


def _clock_at(text, at, before=None):
    """A clock time; `before` is the one from which an interval goes on to it."""
    half, start = _half_at(text, at)
    read = _digits(text, start) or _chinese(text, start, half) or _english(text, start) or _noon(text, start)
    if not read:
        return None
    end, hour, minute, form = read
    named = _AM_PM.match(text, end)
    bare = form == "bare" and not named
    if bare and _COUNTS.match(text, end):
        return None
    if named:
        half, end = _HALVES[named[1]], named.end()
    elif form == "noon" and half is None:
        half = "noon"
    clock = _Clock(end, hour, minute, half, None, bare)
    if form == "clock" and half is None:
        minutes = hour * 60 + minute
    else:
        minutes = clock.minutes_in(half or before and before.half)
    goes_on = before and half is None and None not in (before.half, before.minutes, minutes)
    if goes_on and minutes <= before.minutes and minutes < 720:
        # 上午11点到1点: the second is the next one on the clock.
        minutes += 720
    return clock._replace(minutes=minutes)


def _half_at(text, at):
    """早上, 下午 and their like, and where what follows them starts."""
    found = _HALF.match(text, at)
    return (_HALVES[found[1] or found[2]], found.end()) if found else (None, at)


def _digits(text, at):
    """Of 24 hours, unless am or pm follows."""
    found = _DIGITS.match(text, at)
    return (found.end(), int(found[1]), int(found[2]), "clock") if found and int(found[1]) < 24 else None


def _chinese(text, at, half):
    """8点, 八点半, 3点一刻, 8点20分."""
    number = number_at(text, at)
    sign = number and _SIGN.match(text, number.end)
    if not sign or number.value not in range(24) or sign[1] == "时" and half is None:
        return None
    minute = _minute_at(text, sign.end())
    return minute and (minute[1], number.value, minute[0], "spoken")


def _minute_at(text, at):
    part = _PART_OF_HOUR.match(text, at)
    if part:
        return _PARTS[part[0]], part.end()
    number = number_at(text, at)
    if not number:
        return 0, at
    is_minute = number.value in range(60) and text.startswith("分", number.end)
    return (number.value, number.end + 1) if is_minute else None


def _english(text, at):
    """Worth nothing unless am or pm is said."""
    found = _HOUR.match(text, at)
    return (found.end(), int(found[1]), 0, "bare") if found and 1 <= int(found[1]) <= 12 else None


def _noon(text, at):
    found = _NOON.match(text, at)
    return (found.end(), 12, 0, "noon") if found else None
