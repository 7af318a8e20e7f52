"""The language of a reply, `zh` or `en`."""

import re

from memory import LANGUAGE, kept_language
from text import CJK

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
    kept = kept_language(LANGUAGE, dialog)
    if kept:
        return kept
    return "zh" if re.split("[-_]", locale)[0].lower() == "zh" else "en"


def _language_of_text(text):
    """Chinese when one in three letters is a Chinese character. None without letters."""
    cjk = len(_CJK.findall(text))
    latin = sum(len(word) - word.count("-") for word in _LATIN_WORD.findall(text))
    if cjk == latin == 0:
        return None
    return "zh" if cjk * 3 >= latin else "en"
