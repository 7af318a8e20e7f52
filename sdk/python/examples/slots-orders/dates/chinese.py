"""Chinese date words. Everything here reads folded text, so traditional forms need no rules of their own."""

import re

from civil import day
from number import NUMERALS, chinese_digits, number_at

from .when import Hit, likely, span, unclear

# First characters of the words below.
BEGINNINGS = "大前昨今明后上下本这周星礼去"

# A character before these words may make them part of another: 目前天气, 以后天天, 声明天津, 大大后天.
_DAY = re.compile(
    "(?:(?<!大)大[前后]天|(?<![目以之年月周大提])前天|(?<![以之然最年月周大今先])后天(?!天)|(?<![声证表])明天"
    "|昨[天日晚夜]|今[天日晚早儿夜]|明[日早晚儿])(?!津)"
)
_DAYS = {"大前": -3, "前": -2, "昨": -1, "今": 0, "明": 1, "后": 2, "大后": 3}

# How many weeks or months away. Not as a part of a word, as in 晚上|周三 and 查一下|周三; and nobody can read 上上上周.
_SHIFT = (
    "(?:(?<![上下])|(?<=[一等晚早][上下]))"
    "(?P<shift>(?<![晚早马以网线身])上上?|(?<![一以等底线地余])下下?|(?<![基日成])本|这)"
)
_SHIFTS = {"上上": -2, "上": -1, "本": 0, "这": 0, "下": 1, "下下": 2}

_SHIFTED_MONTH = re.compile(f"{_SHIFT}(?:一?个月|月)份?")
_THIRD_OF_MONTH = re.compile("([上中下])旬")
_THIRDS = {"上": (1, 10), "中": (11, 20), "下": (21, None)}
_PART_OF_MONTH = re.compile("[初中底末]")
_PART_OF_NAMED_MONTH = re.compile("[初中底末前后内以之]|[上下]旬")

_SHIFTED_WEEK = re.compile(f"{_SHIFT}(?:一(?=[个周]))?个?(?:周|星期|礼拜)")
# 一周三次 is no date.
_BARE_WEEK = re.compile(rf"(?<![0-9{NUMERALS}个几半多第整])(?P<every>(?<=[每各逢]))?(?:周|星期|礼拜)")
# 下周一个订单 and 下周三点 may go on as a count, 周日期 as another word.
_WEEKDAY = re.compile(
    "(?P<day>[一二三四五六日天]|[1-7](?![0-9a-z]))"
    "(?P<goes_on>(?<=日)(?=[期子常元本])|(?<!日)(?=天(?!气)"
    f"|[{NUMERALS}日个件次些样直起定共般条份单点时分位名]))?"
)
_WEEKDAYS = {c: index % 7 for index, c in enumerate("一二三四五六日1234567")} | {"天": 6}

_SHIFTED_YEAR = re.compile("([前去今明后])年的? *")
_YEARS = {"前": -2, "去": -1, "今": 0, "明": 1, "后": 2}

_SPACES = re.compile(" *")
_MONTH_SIGN = re.compile(" *月份?")
_DAY_SIGN = re.compile("[日号]")
_SPACED_DAY_SIGN = re.compile(" *[日号]")
_THROUGH = re.compile("[到至~-]")

# After 一月二十三 without 日 a measure word would make the number a count.
_COUNTED = re.compile("[0-9a-z个件份箱盒次天周月年岁元块台只条张本杯瓶套双点时分秒万亿%./几多位名人斤公-]")
# 5号楼, 3号线 and 三日游 are no dates, 三日内 is a length of time.
_PLACE = re.compile("[楼线店库门机码柜仓桌车房院馆厅口厂床位球本元游间内以之子字电段桥铺]")

# 中山北路20号, 人民大道5号: the number of a house.
_STREETS = ("路", "街", "巷", "弄", "大道", "街道")

_LENGTH = re.compile(" *(?P<unit>个?工作日|天|日|个?星期|个礼拜|周|个月|年)(?:(?P<after>[之以过]?后)|(?P<before>[之以]?前))?")
_DAYS_OF = {"天": 1, "日": 1, "星期": 7, "礼拜": 7, "周": 7}
_MONTHS_OF = {"月": 1, "年": 12}
# 过3天, but not 超过3天.
_PASSING = re.compile("(?<=过)(?<![超经通不]过)")


def date_at(text, at, calendar):
    if text[at] not in BEGINNINGS:
        return _from_number(text, at, calendar)
    return (
        _relative_day(text, at, calendar)
        or _relative_month(text, at, calendar)
        or _relative_week(text, at, calendar)
        or _bare_weekday(text, at, calendar)
        or _relative_year(text, at, calendar)
    )


def _relative_day(text, at, calendar):
    found = _DAY.match(text, at)
    return found and Hit(found.end(), calendar.in_days(_DAYS[found[0][:-1]]))


def _relative_month(text, at, calendar):
    """上个月, 本月, 下下个月; then perhaps a day, 上旬 or the like."""
    found = _SHIFTED_MONTH.match(text, at)
    if not found:
        return None
    months, end = _SHIFTS[found["shift"]], found.end()
    number = number_at(text, end)
    if number:
        sign = _DAY_SIGN.match(text, number.end)
        if sign:
            return Hit(sign.end(), calendar.day_of_month(months, number.value or 0))
        if not _COUNTED.match(text, number.end):
            return unclear(number.end)
    third = _THIRD_OF_MONTH.match(text, end)
    if third:
        return Hit(third.end(), calendar.days_of_month(months, *_THIRDS[third[1]]))
    part = _PART_OF_MONTH.match(text, end)
    return unclear(part.end()) if part else Hit(end, calendar.days_of_month(months))


def _relative_week(text, at, calendar):
    found = _SHIFTED_WEEK.match(text, at)
    if not found:
        return None
    weeks, end = _SHIFTS[found["shift"]], found.end()
    if text.startswith("末", end):
        return Hit(end + 1, calendar.weekend(weeks))
    weekday = _WEEKDAY.match(text, end)
    if not weekday:
        return Hit(end, calendar.week(weeks))
    if weekday["goes_on"] is not None:
        return unclear(weekday.end())
    return Hit(weekday.end(), calendar.weekday(weeks, _WEEKDAYS[weekday["day"]]))


def _bare_weekday(text, at, calendar):
    """周三, 星期天, 周末 without a week. 每周三 is no date."""
    found = _BARE_WEEK.match(text, at)
    if not found:
        return None
    every, end = found["every"] is not None, found.end()
    if text.startswith("末", end):
        return unclear(end + 1) if every else likely(end + 1, calendar.weekend(0))
    weekday = _WEEKDAY.match(text, end)
    if not weekday:
        return None
    if every or weekday["goes_on"] is not None:
        return unclear(weekday.end())
    return likely(weekday.end(), calendar.bare_weekday(_WEEKDAYS[weekday["day"]]))


def _relative_year(text, at, calendar):
    """去年三月, 明年1月2日. A year by itself is no date."""
    found = _SHIFTED_YEAR.match(text, at)
    month = found and number_at(text, found.end())
    return month and _month_and_day(text, month, calendar.today.year + _YEARS[found[1]], calendar)


def _from_number(text, at, calendar):
    """What starts with a number: 2026年3月5日, 三月五日, 三十一日, 3天后."""
    number = number_at(text, at)
    if not number:
        return None
    unit = _SPACES.match(text, number.end).end()
    match text[unit : unit + 1]:
        case "年":
            return _absolute(text, number, unit + 1, calendar) or _away(text, number, calendar)
        case "月":
            return _month_and_day(text, number, None, calendar)
        case "日" | "号":
            return _away(text, number, calendar) or _bare_day(text, number, unit, calendar)
        case _:
            return _away(text, number, calendar)


def _absolute(text, year, after, calendar):
    """2026年3月5日, 二〇二六年三月, 26年3月5日. A year that cannot be read leaves the rest unclear."""
    month = number_at(text, _SPACES.match(text, after).end())
    if not month:
        return None
    said = year.value
    if said is None:
        said = chinese_digits(text[year.start : year.end])
    elif year.end - year.start == 2 and not year.chinese:
        said += 2000
    if said is not None and 1900 <= said <= 2200:
        return _month_and_day(text, month, said, calendar)
    hit = _month_and_day(text, month, None, calendar)
    return hit and unclear(hit.end)


def _month_and_day(text, month, year, calendar):
    """A month that was read, then its day if there is one: 三月, 3月5日, 一月二十三, 3月5日到8日."""
    sign = _MONTH_SIGN.match(text, month.end)
    if not sign:
        return None
    value = month.value if month.value in range(1, 13) else None
    number = number_at(text, _SPACES.match(text, sign.end()).end())
    if not number:
        return _month_alone(text, value, sign.end(), year, calendar)
    end = _SPACED_DAY_SIGN.match(text, number.end)
    if value is None or number.value is None:
        return unclear(end.end() if end else number.end)
    when = calendar.month_day(year, value, number.value)
    if end:
        return _through(text, end.end(), when) or Hit(end.end(), when)
    return unclear(number.end) if _COUNTED.match(text, number.end) else likely(number.end, when)


def _through(text, at, first):
    """3月5日到8日: the second day is of the same month."""
    joint = first and _THROUGH.match(text, at)
    number = joint and number_at(text, joint.end())
    sign = number and _DAY_SIGN.match(text, number.end)
    if not sign:
        return None
    last = day(first.year, first.month, number.value or 0)
    return Hit(sign.end(), span(first, last))


def _month_alone(text, month, end, year, calendar):
    if month is None:
        return None
    part = _PART_OF_NAMED_MONTH.match(text, end)
    if part:
        return unclear(part.end())
    when = calendar.whole_month(year, month)
    return likely(end, when) if year is None else Hit(end, when)


def _bare_day(text, number, unit, calendar):
    """三十一日, 5号."""
    end = unit + 1
    if _in_street(text, number.start) or _PLACE.match(text, end) or unit != number.end or number.value not in range(1, 32):
        return None
    return likely(end, calendar.bare_day(number.value))


def _in_street(text, at):
    while text.endswith(" ", 0, at):
        at -= 1
    return text.endswith(_STREETS, 0, at)


def _away(text, number, calendar):
    """3天后, 两周前, 三个月之后, 一年前, 过两天: counted from today."""
    found = _LENGTH.match(text, number.end)
    if not found:
        return None
    is_said = found["after"] or found["before"]
    if not is_said and not _PASSING.match(text, number.start):
        return None
    if number.value is None or not is_said and text[number.start] == "两":
        # 两三天后; and 过两天 is some time soon.
        return Hit(found.end(), None)
    count, unit = -number.value if found["before"] else number.value, found["unit"].removeprefix("个")
    if unit in _DAYS_OF:
        when = calendar.in_days(count * _DAYS_OF[unit])
    else:
        # Nobody knows which days are 工作日.
        when = calendar.in_months(count * _MONTHS_OF[unit]) if unit in _MONTHS_OF else None
    return Hit(found.end(), when)
