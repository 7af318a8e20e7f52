"""The state machine: which step of the rules applies, and what it does."""

import json
import re
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import NamedTuple, Optional, Union

from jackfield import Boolean, Choice, Number, PolicyError, Slot, Text, is_blank

from config import StateConfig
from template import Template

# Slots that the reader can find.
SLOTS = ("order", "date", "time", "city", "quantity", "phone", "action")


class Fact(NamedTuple):
    """A slot that the model may have to be told."""

    name: str
    # Its value, as a reply shows it.
    text: str
    # The same for JSON.
    data: Union[str, int, float, bool]
    # It was said in this turn.
    is_new: bool

    def is_seen_in(self, messages):
        """Whether who reads the messages knows it."""
        # There are many words for a wish: they are seen where they are shown, whatever they are.
        if self.name == "action":
            return len(messages) > 1 or self.is_new
        # Not within a longer word or number.
        whole = re.compile(f"(?<![0-9A-Za-z]){re.escape(self.text)}(?![0-9A-Za-z])")
        return any(whole.search(message.text) for message in messages)


@dataclass
class Before:
    """What is known when a turn starts."""

    state: StateConfig
    slots: list[Slot]
    # Of the reply.
    language: str


@dataclass
class Outcome:
    """What a turn does."""

    state: str
    set: list[Slot]
    clear: list[str]
    # A text is the answer; facts go to the model with the instructions of the rules, None as the dialog is.
    next: Union[None, list[Fact], str]


class Machine:
    """The machine of a rule file."""

    def __init__(self, config, reader):
        """Checks that every name in the rules exists, and compiles the texts."""
        if not config.state:
            raise PolicyError("there must be at least one [[state]]; the first is that of a new dialog")
        self._reader = reader
        # Of two states of one name the first counts.
        self._states = {state.name: state for state in reversed(config.state)}
        self._first = config.state[0]
        steps = [_at(f"step {number}", _Step, rule, self._states, reader) for number, rule in enumerate(config.step, 1)]
        self._replies = [text for step in steps if step.reply for text in step.reply.values()]
        actions = [None, *range(len(reader.actions.names))]
        # Most steps are of another state or for another action.
        self._steps = {
            (state, action): [step for step in steps if step.is_for(state, action)]
            for state in self._states
            for action in actions
        }
        self._instructions = _at("prompt", _texts, config.prompt, ["today"])
        self._known = _at("prompt", _texts, config.prompt.known, ["slots"])
        self._most_messages = config.prompt.most_messages
        self._labels = config.label
        for label in config.label:
            if label.slot not in SLOTS:
                raise PolicyError(f"label: there is no slot `{label.slot}`")

    def state(self, name):
        """The state of that name, or that of a new dialog."""
        return self._states.get(name, self._first)

    def instructions(self, language, today):
        """What every prompt of a dialog begins with. It changes with the day and with nothing else, so that it is read once."""
        day = today.isoformat() if today else "?"
        return self._instructions[language].render(lambda _: day)

    def known(self, language, slots):
        """What is put before the user's words; `slots` is JSON."""
        return self._known[language].render(lambda _: slots)

    def is_reply(self, text):
        """Whether a text is a reply of one of the steps."""
        return any(reply.could_be(text) for reply in self._replies)

    def is_whole(self, recent):
        """Whether these messages are surely all of the dialog, and can be written again as they were: calls of tools cannot."""
        return len(recent) <= self._most_messages and not any(
            message.role == "tool" or (message.role == "assistant" and not message.text) for message in recent
        )

    def turn(self, text, reading, before):
        """The first step that applies; without one the state stays, the slots are kept and the model answers."""
        facts = _Facts(self._reader, text, reading, before)
        outcomes = (self._take(step, facts) for step in self._steps[before.state.name, facts.action])
        otherwise = Outcome(before.state.name, list(reading.slots.values()), [], None)
        return next((outcome for outcome in outcomes if outcome), otherwise)

    def _take(self, step, facts):
        """What the step does; None where it does not apply, as when its reply needs a slot that is not known."""
        # What is known takes time to gather, and most steps are out of the question without it.
        known = facts.known(step.rule.fresh) if step.may_apply(facts) else None
        if known is None or not step.applies(facts, known):
            return None
        following, language = None, facts.before.language
        if step.reply:
            following = step.reply[language].render(lambda name: self._value(name, known, language))
            if following is None:
                return None
        elif step.rule.prompt:
            following = self._facts(known, facts)
        state = facts.before.state.name if step.rule.go is None else step.rule.go
        return Outcome(state, *_changes(step.rule, facts, known), following)

    def _facts(self, known, facts):
        """This policy's slots as data for the model."""
        return [
            Fact(name, text, _plain(value.value) if isinstance(value, (Number, Boolean)) else text, name in facts.reading.slots)
            for name, value in known.items()
            if name in SLOTS
            for text in [self._shown(name, value, facts.before.language)]
        ]

    def _value(self, name, known, language):
        """A slot as a reply shows it; `changes` lists the labelled ones."""
        if name != "changes":
            return self._shown(name, known[name], language) if name in known else None
        listed = [
            f"{getattr(label, language)} {self._shown(label.slot, known[label.slot], language)}"
            for label in self._labels
            if label.slot in known
        ]
        return ("，" if language == "zh" else ", ").join(listed) or None

    def _shown(self, name, value, language):
        match value:
            case Choice(city) if name == "city" and language == "en":
                return self._reader.cities.english(city)
            case Number(number):
                # All digits of it, however large: 3, 0.5.
                return f"{Decimal(repr(number)):f}".removesuffix(".0")
            case Boolean(yes):
                return "true" if yes else "false"
        return value.value


class _Step:
    """A step of the rules, checked."""

    def __init__(self, rule, states, reader):
        for name in rule.from_ + ([] if rule.go is None else [rule.go]):
            if name not in states:
                raise PolicyError(f"there is no state `{name}`")
        for name in rule.said_any + rule.changed_any + rule.has + rule.missing + rule.clear + rule.fresh:
            if name not in SLOTS:
                raise PolicyError(f"there is no slot `{name}`")
        if rule.topic is not None and rule.topic not in reader.topics:
            raise PolicyError(f"there is no topic `{rule.topic}`")
        if rule.prompt and rule.reply:
            raise PolicyError("either `reply` or `prompt`, not both")
        self.rule = rule
        self._action = None if rule.action is None else reader.actions.number(rule.action)
        if rule.action is not None and self._action is None:
            raise PolicyError(f"there is no action `{rule.action}`")
        if rule.reply and (is_blank(rule.reply.zh) or is_blank(rule.reply.en)):
            raise PolicyError("an empty reply")
        self.reply = rule.reply and _texts(rule.reply, [*SLOTS, "changes"])

    def is_for(self, state, action):
        """Whether it may apply in this state when this action is wanted."""
        here = not self.rule.from_ or state in self.rule.from_
        wanted = self.rule.action is None or action == self._action
        return here and wanted and not (self.rule.no_action and action is not None)

    def may_apply(self, facts):
        """The other conditions that need no look at what is known."""
        rule = self.rule
        return (
            (rule.rest_at_most is None or facts.reading.rest <= rule.rest_at_most)
            and (not rule.said_any or any(name in facts.reading.slots for name in rule.said_any))
            and (not rule.changed_any or any(map(facts.changed, rule.changed_any)))
            and (rule.answer is None or facts.answer == rule.answer)
        )

    def applies(self, facts, known):
        rule = self.rule
        return (
            all(name in known for name in rule.has)
            and not any(name in known for name in rule.missing)
            and (rule.topic is None or facts.reader.speaks_of(rule.topic, facts.text))
        )


class _Facts:
    """What the conditions of a step look at."""

    def __init__(self, reader, text, reading, before):
        self.reader, self.text, self.reading, self.before = reader, text, reading, before
        self._pending = self._pending_action()
        self.action = self._pending if reading.action is None else reading.action

    @cached_property
    def answer(self):
        """What a question about the pending action got. Few steps ask for it."""
        return self.reader.actions.answer(self.text, self.reading.wishes, self._pending)

    def known(self, fresh):
        """Slots of the dialog and of this turn, without stale ones: those that `fresh` names and nobody said now, unless an
        action of an earlier turn is still pending."""
        stale = () if self.before.state.pending else fresh
        old = {slot.name: slot.value for slot in self.before.slots if slot.name not in stale}
        return old | {name: slot.value for name, slot in self.reading.slots.items()}

    def changed(self, name):
        """Whether a slot was said in this turn and has another value than before."""
        said, old = self.reading.slots.get(name), self._old(name)
        return said is not None and (old is None or old.value != said.value)

    def _old(self, name):
        return next((slot for slot in self.before.slots if slot.name == name), None)

    def _pending_action(self):
        """The number of the action that was asked for earlier and is still wanted."""
        slot = self._old("action") if self.before.state.pending else None
        return self.reader.actions.number(slot.value.value) if slot and isinstance(slot.value, (Choice, Text)) else None


def _changes(rule, facts, known):
    """The slots that a step sets and those that it forgets, none of which is both."""
    said = [slot for name, slot in facts.reading.slots.items() if name not in rule.clear]
    old = [slot.name for slot in facts.before.slots]
    return said, [name for name in old if name in rule.clear or name not in known]


def _plain(value):
    """A number that is whole, and exact, without a decimal point."""
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < 9e15 else value


def _texts(texts, known):
    return {"zh": Template(texts.zh, known), "en": Template(texts.en, known)}


def _at(place, make, *arguments):
    try:
        return make(*arguments)
    except PolicyError as error:
        raise PolicyError(f"{place}: {error}") from None
