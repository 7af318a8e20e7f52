"""Matching in Chinese and English text, with offsets that mean the original characters."""

import re

from .types import Span

# Unicode's White_Space. `str.isspace` also takes four control characters.
_SPACE = frozenset("\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B))))


def is_blank(text):
    """Whether there is nothing but white space in the text."""
    return all(c in _SPACE for c in text)


def narrow(c):
    """The ASCII form of a full-width character (`３` → `3`, the ideographic space → space); any other as it is."""
    code = ord(c)
    if code == 0x3000:
        return " "
    return chr(code - 0xFEE0) if 0xFF01 <= code <= 0xFF5E else c


class Folded:
    """A text made even for matching: full-width forms narrowed, letters in lower case. Knows where each character was."""

    def __init__(self, original):
        if original.isascii():
            self.text, self._sources = original.lower(), None
            return
        folded = [narrow(c).lower() for c in original]
        self.text = "".join(folded)
        # One character may become two in lower case.
        grown = len(self.text) != len(original)
        self._sources = [at for at, part in enumerate(folded) for _ in part] if grown else None

    def find(self, term):
        """Where a term, folded too, first is by the rule of `find_term`: a span of the original text, or None."""
        found = find_term(self.text, term.text)
        if found is None or self._sources is None:
            return found
        return Span(self._sources[found.start], self._sources[found.end - 1] + 1)


def find_term(text, term):
    """Where `term` first is in `text`, or None.

    An ASCII letter or digit at an edge of the term must not touch another one outside: `cat` is not found in `category`,
    but is in `我的cat呢`. An empty term is never found.
    """
    if not term:
        return None
    for match in re.finditer(re.escape(term), text):
        start, end = match.span()
        joined_before = start > 0 and _is_word(text[start]) and _is_word(text[start - 1])
        joined_after = end < len(text) and _is_word(text[end - 1]) and _is_word(text[end])
        if not joined_before and not joined_after:
            return Span(start, end)
    return None


def _is_word(c):
    return c.isascii() and c.isalnum()
