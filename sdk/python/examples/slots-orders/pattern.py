"""The small pattern language of `rules.toml`: a sequence of classes, each with a count. `[A-Z]{2}-?[0-9]{6,12}`: two
letters, perhaps a hyphen, six to twelve digits.

Not `re`, which may take forever over a text that hardly matches: this takes one step a character, whatever the pattern.
"""

import re
from typing import NamedTuple

from jackfield import PolicyError

from text import fold

_MAX_PLACES = 63
_SIGNS = "*+()|.^${}]?"
_COUNT = re.compile(r"\s*\+?([0-9]+)\s*(?:,\s*\+?([0-9]+)\s*)?")


class Pattern:
    """A compiled pattern. Where a match may stand is a set of bits: bit n for "the first n places are done"."""

    def __init__(self, source):
        self._places = _compile(source)
        self._optional = sum(1 << index for index, place in enumerate(self._places) if place.optional)
        self._end = 1 << len(self._places)
        self._taking = {c: self._places_taking(c) for c in map(chr, range(128))}

    def starts(self):
        """The inside of a class of `re` for what a match may start with."""
        starts = ""
        for place in self._places:
            ranges = [(first, last) for first, last in place.ranges if first <= last]
            starts += "".join(f"{re.escape(first)}-{re.escape(last)}" for first, last in ranges)
            starts += " " if place.takes(" ") else ""
            if not place.optional:
                break
        return starts

    def end_at(self, text, at):
        """End of the longest match that starts at `at`. A hyphen of the pattern also stands for one space."""
        states, best = self._leaving_out(1), None
        while states:
            if states & self._end:
                best = at
            if at == len(text):
                break
            taking = self._taking.get(text[at])
            if taking is None:
                taking = self._places_taking(text[at])
            states = self._leaving_out((states & taking) << 1)
            at += 1
        return best

    def _leaving_out(self, states):
        """Adds what is reached by leaving optional places out: a carry runs through all that follow each other."""
        return states | (self._optional + (states & self._optional)) ^ self._optional

    def _places_taking(self, c):
        return sum(1 << index for index, place in enumerate(self._places) if place.takes(c))


class _Place(NamedTuple):
    # First and last of the characters it takes, folded.
    ranges: list[tuple[str, str]]
    optional: bool

    def takes(self, c):
        if c == " " and self.ranges == [("-", "-")]:
            return True
        return any(first <= c <= last for first, last in self.ranges)


def _compile(source):
    """Literals, `[A-Z0-9]`, `\\d`, and after each `?`, `{n}` or `{m,n}`."""
    places, at = [], 0
    while at < len(source):
        ranges, at = _ranges(source, at)
        least, most, at = _count(source, at)
        places += [_Place(ranges, index >= least) for index in range(most)]
        if len(places) > _MAX_PLACES:
            raise PolicyError(f"pattern `{source}`: more than {_MAX_PLACES} places")
    if all(place.optional for place in places):
        raise PolicyError(f"pattern `{source}` matches the empty text")
    return places


def _ranges(source, at):
    """What the literal or class at `at` takes, and its end."""
    c, following = source[at], source[at + 1 : at + 2]
    if c == "[":
        return _class(source, at + 1)
    if c == "\\":
        if following == "d":
            return [("0", "9")], at + 2
        if following == "" or following.isascii() and following.isalnum():
            raise PolicyError(f"pattern `{source}`: after `\\` only `d` or a sign")
        return [(fold(following),) * 2], at + 2
    if c in _SIGNS:
        raise PolicyError(f"pattern `{source}`: `{c}` is not part of this language (see rules.toml)")
    return [(fold(c),) * 2], at + 1


def _class(source, at):
    """The ranges of a class whose inside starts at `at`, and its end."""
    ranges = []
    while at < len(source):
        first = fold(source[at])
        if first == "]" and ranges:
            return ranges, at + 1
        if first == "]":
            break
        if source[at + 1 : at + 2] == "-" and source[at + 2 : at + 3] not in ("", "]"):
            ranges.append((first, fold(source[at + 2])))
            at += 3
        else:
            ranges.append((first, first))
            at += 1
    raise PolicyError(f"pattern `{source}`: `[` without `]`")


def _count(source, at):
    """How often at least and at most, and where the count ends."""
    if source[at : at + 1] == "?":
        return 0, 1, at + 1
    if source[at : at + 1] != "{":
        return 1, 1, at
    inner, closed, _ = source[at + 1 :].partition("}")
    count = _COUNT.fullmatch(inner) if closed else None
    least, most = (int(count[1]), int(count[2] or count[1])) if count else (1, 0)
    if not (least <= most and 1 <= most <= _MAX_PLACES):
        raise PolicyError(f"pattern `{source}`: a count is {{n}} or {{m,n}}")
    return least, most, at + len(inner) + 2
