"""Replies with `{slot}` in them. What is put in is text and nothing else: braces in a value stay as they are."""

import re

from jackfield import PolicyError

_BRACE = re.compile(r"\{\{|\{([^}]*)\}|\{")


class Template:
    """A reply, split at its placeholders."""

    def __init__(self, source, known):
        """`known`: the names of placeholders there are. `{{` is a brace."""
        # Texts, each with the name of what follows it.
        self._pieces = []
        text, at = "", 0
        for brace in _BRACE.finditer(source):
            text += source[at : brace.start()]
            at, name = brace.end(), brace[1]
            if brace[0] == "{{":
                text += "{"
                continue
            if name is None:
                raise PolicyError(f"text `{source}`: `{{` without `}}`")
            if name not in known:
                raise PolicyError(f"text `{source}`: there is no slot `{name}`")
            self._pieces.append((text, name))
            text = ""
        self._end = text + source[at:]
        form = "".join(re.escape(text) + "(?s:.+?)" for text, _ in self._pieces)
        self._form = re.compile(form + re.escape(self._end))

    def render(self, value):
        """The text with the values that `value` gives for names, None when one is not known."""
        values = [value(name) for _, name in self._pieces]
        if None in values:
            return None
        return "".join(text + value for (text, _), value in zip(self._pieces, values)) + self._end

    def could_be(self, text):
        """Whether a text is this one with some values."""
        return self._form.fullmatch(text) is not None
