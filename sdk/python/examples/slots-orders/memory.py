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


def kept_told(dialog):
    """What was told so far: texts by the number of the user's message before which they stand, from 0."""
    value = _value(TOLD, dialog)
    if not isinstance(value, Text):
        return {}
    try:
        return {int(number): text for number, text in json.loads(value.value).items()}
    except (ValueError, AttributeError):
        return {}


def keep_told(told):
    """The slot that keeps what was told."""
    return Slot(TOLD, Text(json.dumps(told, ensure_ascii=False, sort_keys=True, separators=(",", ":"))))


def _value(name, dialog):
    return next((slot.value for slot in dialog.slots if slot.name == name), None)
