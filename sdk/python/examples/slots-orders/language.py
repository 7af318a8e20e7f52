"""The language of a reply, `zh` or `en`."""

import re

from jackfield import Choice, Slot

from text import CJK

# The slot that keeps the language in which a dialog was answered: "12345678" says nothing of it.
_SLOT = "language"

_CJK = re.compile(f"[{CJK}]")
# A code such as AB-123456 says nothing of the language.
_LATIN_WORD = re.compile("(?<![0-9A-Za-z-])[A-Za-z-]+(?![0-9A-Za-z-])")


def language_of(recent, dialog, locale):
    """The language the user writes: of this message, else of the last one before it that has letters, else the one this
    dialog was answered in, else that of the locale."""
    for message in reversed(recent):
        language = message.role == "user" and _language_of_text(message.text)
        if language:
            return language
    kept = next((slot.value for slot in dialog.slots if slot.name == _SLOT), None)
    if kept in (Choice("zh"), Choice("en")):
        return kept.value
    return "zh" if re.split("[-_]", locale)[0].lower() == "zh" else "en"


def remembered(language, dialog):
    """The slot that keeps the language of the dialog, when it has to be written."""
    known = any(slot.name == _SLOT and slot.value == Choice(language) for slot in dialog.slots)
    return [] if known else [Slot(_SLOT, Choice(language))]


def _language_of_text(text):
    """Chinese when one in three letters is a Chinese character. None without letters."""
    cjk = len(_CJK.findall(text))
    latin = sum(len(word) - word.count("-") for word in _LATIN_WORD.findall(text))
    if cjk == latin == 0:
        return None
    return "zh" if cjk * 3 >= latin else "en"
