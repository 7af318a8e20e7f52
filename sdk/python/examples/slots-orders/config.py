"""The shape of `rules.toml`, and how it is read. Nothing is interpreted here; what is missing, unknown or of a wrong type is
told with its place."""

import json
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from typing import Annotated, Literal, Optional, Union, get_args, get_origin, get_type_hints

from jackfield import U8, U16, U32, PolicyError

Words = list[str]


@dataclass
class Bilingual:
    """A text in both languages."""

    zh: str
    en: str


@dataclass
class PromptConfig:
    """What a model is given where it is needed."""

    # The instructions. `{today}` may stand in them.
    zh: str
    en: str
    # What is put before the user's words where they do not say all that is known; `{slots}` is one line of JSON.
    known: Bilingual
    # A dialog of more messages is not given whole. No more than the host shows of one, less one.
    most_messages: U32


@dataclass
class PatternConfig:
    # In the language of the rule file's first section.
    pattern: str
    # Only after one of the order words.
    after_word: bool = False


@dataclass
class OrderConfig:
    """How an order number looks."""

    # Codes with letters.
    patterns: list[PatternConfig]
    # Of a number without letters.
    least_digits: U32
    most_digits: U32
    # Words before a number that make it an order number.
    words: Words
    # Words that say so beyond doubt, even of what looks like a phone number.
    number_words: Words
    # Characters that may lie between the word and the number.
    reach: U32
    # Short words that are not the letters of a code.
    not_codes: Words


@dataclass
class DateConfig:
    # How near a date of another year must be to be meant when the year is left out.
    rollover_days: U16
    # Words right before the one date that is meant.
    targets: Words


@dataclass
class PhoneConfig:
    # Words before a number that make it a phone number.
    words: Words


@dataclass
class QuantityConfig:
    """How a quantity is said."""

    # Words right before the number.
    triggers: Words
    # Words after which a number needs no unit.
    names: Words
    # Units right after the number.
    units: Words
    # What may not follow the unit.
    not_before: Words


@dataclass
class CityConfig:
    # Each city: its Chinese name (the slot's value), its English name, further names.
    names: list[Words]
    # What may not follow a name: a road or a dish is no city.
    not_before: Words
    # What may not stand before a name.
    not_after: Words
    # Whole words in which a name is only letters.
    traps: Words
    # Words right before the one city that is meant.
    targets: Words


@dataclass
class ActionConfig:
    """What a customer may want."""

    # The slot's value.
    name: str
    # Of several in one utterance the highest is meant; of two at the same rank neither.
    rank: U8
    # How it is said.
    words: Words
    # Words of the same clause with which it is not meant.
    unless: Words = field(default_factory=list)


@dataclass
class NegationConfig:
    # Words that deny what follows in the clause.
    words: Words
    # Forms that hold such a word and deny nothing.
    not_: Words
    # Words after which a new wish starts.
    resets: Words
    # How far a denial reaches, in characters for Chinese and in words for English.
    reach: U32


@dataclass
class AnswersConfig:
    """How a question is confirmed, denied, or neither."""

    yes: Words
    no: Words
    unclear: Words
    # Says nothing.
    filler: Words


@dataclass
class LabelConfig:
    """How a slot is called."""

    slot: str
    zh: str
    en: str


@dataclass
class StateConfig:
    name: str
    # The action of an earlier turn is still wanted here.
    pending: bool = False
    # What was asked for, and may then be said in fewer words: the order number as bare digits, a quantity as a number and its
    # unit.
    expects: Optional[Literal["order", "change"]] = None


@dataclass
class StepConfig:
    """What happens when all of these conditions hold."""

    # States in which it applies; none means all.
    from_: Words = field(default_factory=list)
    # The action wanted now.
    action: Optional[str] = None
    # Nothing is wanted.
    no_action: bool = False
    # One of these slots was said in this turn.
    said_any: Words = field(default_factory=list)
    # One of these slots was said in this turn and has another value than before.
    changed_any: Words = field(default_factory=list)
    # All of these slots are known.
    has: Words = field(default_factory=list)
    # None of these slots is known.
    missing: Words = field(default_factory=list)
    answer: Optional[Literal["yes", "no", "unclear"]] = None
    # One of the words of this topic is in the utterance.
    topic: Optional[str] = None
    # At most so many letters, digits and Chinese characters beside what was understood.
    rest_at_most: Optional[U32] = None
    # The next state; none keeps the state.
    go: Optional[str] = None
    # Answer with this text.
    reply: Optional[Bilingual] = None
    # Go on to the model with the structured prompt.
    prompt: bool = False
    # Slots to forget.
    clear: Words = field(default_factory=list)
    # Of these slots keep only what was said in this turn. Applies before the reply is written.
    fresh: Words = field(default_factory=list)


@dataclass
class Config:
    order: OrderConfig
    dates: DateConfig
    phone: PhoneConfig
    quantity: QuantityConfig
    city: CityConfig
    action: list[ActionConfig]
    negation: NegationConfig
    answers: AnswersConfig
    # What a model is given where it is needed.
    prompt: PromptConfig
    # The first is that of a new dialog.
    state: list[StateConfig]
    # The first that applies happens.
    step: list[StepConfig]
    # Named lists of words that a step can ask for.
    topic: dict[str, Words] = field(default_factory=dict)
    # Slots that `{changes}` lists, in this order.
    label: list[LabelConfig] = field(default_factory=list)


def read(kind, value, place=""):
    """A value as one of this type."""
    origin, inner = get_origin(kind), get_args(kind)
    if is_dataclass(kind):
        return _record(kind, value, place)
    if origin is Union:
        return read(inner[0], value, place)
    if origin is list:
        found = _typed(list, "a list", value, place)
        return [read(inner[0], one, f"{place}[{at}]") for at, one in enumerate(found)]
    if origin is dict:
        found = _typed(dict, "a table", value, place)
        return {name: read(inner[1], one, _below(place, name)) for name, one in found.items()}
    if origin is Literal:
        if _typed(str, "a text", value, place) not in inner:
            raise _wrong(place, f"unknown variant `{value}`, expected {_names(inner)}")
        return value
    if origin is Annotated:
        if not 0 <= _typed(int, "a whole number", value, place) <= inner[1]:
            raise _wrong(place, f"{value} is not from 0 to {inner[1]}")
        return value
    return _typed(kind, "a text" if kind is str else "true or false", value, place)


def _record(kind, value, place):
    given = _typed(dict, "a table", value, place)
    # Names that Python keeps for itself have a `_` more here.
    own = {one.name.removesuffix("_"): one for one in fields(kind)}
    for name in given:
        if name not in own:
            raise _wrong(_below(place, name), f"unknown field `{name}`, expected {_names(own)}")
    for name, one in own.items():
        if name not in given and one.default is MISSING and one.default_factory is MISSING:
            raise _wrong(place, f"missing field `{name}`")
    hints = get_type_hints(kind, include_extras=True)
    return kind(**{own[name].name: read(hints[own[name].name], one, _below(place, name)) for name, one in given.items()})


def _typed(kind, called, value, place):
    # A bool is an int to Python, and not to an author.
    if not isinstance(value, kind) or isinstance(value, bool) and kind is not bool:
        raise _wrong(place, f"{json.dumps(value, ensure_ascii=False)} is not {called}")
    return value


def _below(place, name):
    return f"{place}.{name}" if place else name


def _names(names):
    quoted = [f"`{name}`" for name in names]
    return f"one of {', '.join(quoted)}" if len(quoted) > 2 else " or ".join(quoted)


def _wrong(place, what):
    return PolicyError(f"configuration, at `{place or '.'}`: {what}")
