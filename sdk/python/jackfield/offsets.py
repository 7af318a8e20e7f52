"""Between characters of a text, in which Python counts, and bytes of UTF-8, in which the host does."""

from .types import Span


class Offsets:
    """Offsets of one text."""

    def __init__(self, text):
        self._text = text
        self._bytes = None if text.isascii() else text.encode()

    def chars(self, at):
        """Characters in the first `at` bytes."""
        if self._bytes is None:
            return at
        return len(self._bytes[:at].decode(errors="ignore"))

    def bytes(self, at, what):
        """Bytes of the first `at` characters. `what` names the offset in the error for one that is outside of the text."""
        if not 0 <= at <= len(self._text):
            raise ValueError(f"{what} is {at}, outside of a text of {len(self._text)} characters")
        if self._bytes is None:
            return at
        return len(self._text[:at].encode())

    def span_in(self, span):
        return Span(self.chars(span.start), self.chars(span.end))

    def span_out(self, span, what):
        return Span(self.bytes(span.start, f"{what}.start"), self.bytes(span.end, f"{what}.end"))
