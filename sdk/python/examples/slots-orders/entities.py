"""Order numbers, phone numbers, quantities and cities. Each gives one value or none: of two that differ, neither."""

import re
import string

from jackfield import PolicyError

from found import Found, agreed
from number import ENGLISH, numbers
from pattern import Pattern
from text import Phrases, phrases


class Orders:
    """Finds order numbers."""

    # A code is kept in capitals, with a hyphen where a space stands for one.
    _VALUE = str.maketrans(string.ascii_lowercase + " ", string.ascii_uppercase + "-")
    _CODE_GOES_ON = re.compile("[0-9a-z]|[-_/.@][0-9a-z]")
    _LETTERS = re.compile("[a-z]*")
    # Nor an amount: ¥12345678, 12345678元.
    _DIGITS = re.compile("(?<![0-9a-z+/.¥$-])[0-9]+(?![0-9a-z元块美岁公米]|[-/.][0-9a-z])")
    # Another number or the end of a sentence parts a number from a word.
    _APART = "0123456789。!?\n"

    def __init__(self, order, phone):
        if not 1 <= order.least_digits <= order.most_digits:
            raise PolicyError("order: least_digits must be from 1 to most_digits")
        self._patterns = [(Pattern(one.pattern), one.after_word) for one in order.patterns]
        self._least, self._most = order.least_digits, order.most_digits
        # For those who count what was not understood.
        self.words = phrases(order.words + order.number_words)
        self._number_words = phrases(order.number_words)
        self._phone_words = phrases(phone.words)
        self._not_codes = frozenset(word.lower() for word in order.not_codes)
        self._reach = order.reach
        starts = "".join(pattern.starts() for pattern, _ in self._patterns)
        self._beginning = re.compile(f"(?<![0-9a-z])[0-9{starts}]")

    def find(self, text, taken, asked):
        """The order number, when there is exactly one. `taken` is what phones and dates claim; `asked` tells that the dialog
        just asked for it, so that bare digits will do."""
        found, at = [], 0
        while beginning := self._beginning.search(text, at):
            at = beginning.start()
            one = self._code_at(text, at) or self._digits_at(text, at, asked)
            if one and not taken.touches(one):
                found.append(one)
                at = one.end
            else:
                at += 1
        return agreed(found)

    def called_order(self, text, at):
        """Whether the digits from `at` were called an order number in so many words."""
        word = self._word_before(text, at, self._number_words)
        if word is None:
            return False
        phone = self._word_before(text, at, self._phone_words)
        return phone is None or phone < word

    def _code_at(self, text, at):
        if at > 0 and text[at - 1] in "-_/.@":
            return None
        end = max((self._code_end(text, at, *pattern) for pattern in self._patterns), default=at)
        return Found(at, end, text[at:end].translate(self._VALUE)) if end > at else None

    def _code_end(self, text, at, pattern, after_word):
        """Where a code ends that starts at `at`; `at` where there is none."""
        end = pattern.end_at(text, at)
        if end is None or self._CODE_GOES_ON.match(text, end) or self._is_word(text, self._LETTERS.match(text, at, end)):
            return at
        return at if after_word and self._word_before(text, at, self.words) is None else end

    def _is_word(self, text, letters):
        """"is 20261001" and "no 20261001" are words before a number; IN-818283 is a code, but not what follows "order" in
        "order no-818283"."""
        end = letters.end()
        joined = len(letters[0]) == 2 and text.startswith("-", end) and not self._number_words.end_before(text, end)
        return not joined and letters[0] in self._not_codes

    def _digits_at(self, text, at, asked):
        found = self._DIGITS.match(text, at)
        if not found or not self._least <= len(found[0]) <= self._most:
            return None
        named = asked or self._word_before(text, at, self.words) is not None
        return Found(*found.span(), found[0]) if named else None

    def _word_before(self, text, at, words):
        """Where the last of the words ends that stand within reach before `at`; None where there is none."""
        start, floor = at, max(0, at - self._reach - 12)
        while start > floor and text[start - 1] not in self._APART:
            start -= 1
        ends = [found.end() for found in words.within(text, start, at)]
        return ends[-1] if ends and at - ends[-1] <= self._reach else None


# Chinese mobile and fixed lines, and `+` with a country code; in groups of digits with up to two signs between. Sixteen
# groups have more digits than any phone number.
_PHONE = re.compile(r"(?<![-+._/0-9a-z])(?:\+[- ()]{0,2}|\([- ()]?)?[0-9]+(?:[- ()]{1,2}[0-9]+){0,15}")
_PHONE_GOES_ON = re.compile("[0-9a-z_]|[-./][0-9a-z]")
_MOBILE = re.compile("1[3-9][0-9]{9}")


def phones(text):
    """Phone numbers of the text."""
    found, at = [], 0
    while match := _PHONE.search(text, at):
        value = None if _PHONE_GOES_ON.match(text, match.end()) else _phone(match[0])
        if value:
            found.append(Found(*match.span(), value))
        at = match.end() if value else match.start() + 1
    return found


def _phone(written):
    groups = re.findall("[0-9]+", written)
    digits, lengths = "".join(groups), [len(group) for group in groups]
    is_abroad = written.startswith("+")
    national = digits.removeprefix("0086") if digits.startswith("0086") else digits.removeprefix("86")
    # Without a sign of a country code thirteen digits in a row may be anything.
    is_called_national = national != digits and (is_abroad or digits.startswith("00") or lengths[0] != 13)
    if is_called_national and _MOBILE.fullmatch(national):
        return national
    if is_abroad:
        return f"+{digits}" if 8 <= len(digits) <= 15 else None
    if _MOBILE.fullmatch(digits) and lengths in ([11], [3, 4, 4]):
        return digits
    is_fixed = len(groups) == 2 and 3 <= lengths[0] <= 4 and 7 <= lengths[1] <= 8 and sum(lengths) <= 12
    return "-".join(groups) if is_fixed and digits.startswith("0") else None


class Quantities:
    """Finds how many are wanted."""

    _ENGLISH = re.compile(f"(?<![0-9a-z])(?:{'|'.join(word for word in ENGLISH if len(word) > 2)})(?![a-z])")
    _GOES_ON = re.compile("[-./~][0-9]")
    # What may not follow a number that has no unit.
    _NO_END = re.compile("[0-9a-z./-]")
    _SPACES = re.compile(" *")

    def __init__(self, quantity):
        self._triggers = phrases(quantity.triggers)
        self._names = phrases(quantity.names)
        self._units = phrases(quantity.units)
        self._not_before = phrases(quantity.not_before)

    def find(self, text, taken, asked, denied):
        """The quantity, when there is exactly one; `asked` tells that the dialog has asked what to change, so that a number and
        its unit will do; `denied` tells whether what stands at a place is negated."""
        found = [one for count in self._counts(text) if (one := self._quantity(text, asked, *count))]
        return agreed(sorted(one for one in found if not denied(text, one.start) and not taken.touches(one)))

    def _counts(self, text):
        """Where a count starts and ends, and what it is."""
        for word in self._ENGLISH.finditer(text):
            yield *word.span(), ENGLISH[word[0]]
        for number in numbers(text):
            follows_hyphen = text[number.start - 1 : number.start] == "-"
            if not follows_hyphen and not self._GOES_ON.match(text, number.end):
                yield number.start, number.end, number.value

    def _quantity(self, text, asked, start, end, value):
        named = self._names.end_before(text, _before_colon(text, start))
        if not value or not (named or asked or self._triggers.end_before(text, start)):
            return None
        unit = self._units.match(text, self._SPACES.match(text, end).end())
        if not unit and (not named or self._NO_END.match(text, end)):
            return None
        stop = unit.end() if unit else end
        is_spoiled = self._not_before.match(text, self._SPACES.match(text, stop).end())
        return None if is_spoiled else Found(start, stop, value)


def _before_colon(text, at):
    """Before spaces and a colon or 是: 数量是3, qty: 3."""
    while at > 0 and text[at - 1] in " :是为=":
        at -= 1
    return at


class Cities:
    """Finds cities."""

    def __init__(self, city):
        if any(len(names) < 2 for names in city.names):
            raise PolicyError("city: each entry of `names` needs a Chinese and an English name")
        self._names = Phrases((name, names[0]) for names in city.names for name in names)
        self._english = {names[0]: names[1] for names in reversed(city.names)}
        self._not_before = phrases(city.not_before)
        self._not_after = phrases(city.not_after)
        self._traps = phrases(city.traps)
        self._targets = phrases(city.targets)

    def english(self, chinese):
        """The English name of a city whose Chinese name is the value of a slot."""
        return self._english.get(chinese, chinese)

    def find(self, text):
        """The city, when there is exactly one, or exactly one that is said to be meant."""
        found = list(self._all(text))
        aimed = [one for one in found if self._targets.end_before(text, one.start)]
        return aimed[0] if len(aimed) == 1 else agreed(found)

    def _all(self, text):
        at, trap = 0, self._traps.search(text)
        while name := self._names.search(text, at):
            if trap and trap.start() < at:
                trap = self._traps.search(text, at)
            if trap and trap.start() <= name.start():
                at = trap.end()
                continue
            if self._stands_alone(text, *name.span()):
                yield Found(*name.span(), self._names.value(name))
            at = name.end()

    def _stands_alone(self, text, start, end):
        suffix = end + text.startswith("市", end)
        return not self._not_before.match(text, suffix) and not self._not_after.end_before(text, start)
