"""What this policy keeps of a dialog for itself, in slots that no customer fills."""

import json

from jackfield import Choice, Slot, Text

# The language in which a dialog was answered: "12345678" says nothing of it.
LANGUAGE = "language"
# The language of the instructions with which the prompts of a dialog begin, once one did.
PROMPTED = "prompted"
# What prompts had before the user's words, so that those to come have it there too.
TOLD = "told"


def kept_language(name, dialog):
    """The language that a slot keeps."""
    value = _value(name, dialog)
    return value.value if value in (Choice("zh"), Choice("en")) else None


def keep_language(name, language, dialog):
    """The slot that keeps a language, when it has to be written."""
    return [] if kept_language(name, dialog) == language else [Slot(name, Choice(language))]


def place(number, words):
    """The user's message of this number, from 0, that says this. Where a dialog has gone back to an earlier topic another message
    has the number, before which nothing was told."""
    hash = 0x811C9DC5  # FNV-1a, 32 bits
    for byte in words.encode():
        hash = (hash ^ byte) * 0x01000193 & 0xFFFFFFFF
    return f"{number}:{hash:08x}"


def kept_told(dialog):
    """What was told so far: texts by the place of the user's message before which they stand."""
    value = _value(TOLD, dialog)
    if not isinstance(value, Text):
        return {}
    try:
        return dict(json.loads(value.value))
    except (ValueError, TypeError):
        return {}


def keep_told(told):
    """The slot that keeps what was told."""
    return Slot(TOLD, Text(json.dumps(told, ensure_ascii=False, sort_keys=True, separators=(",", ":"))))


def _value(name, dialog):
    return next((slot.value for slot in dialog.slots if slot.name == name), None)
