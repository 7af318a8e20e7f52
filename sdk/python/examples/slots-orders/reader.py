"""All that one utterance says: its slots, its wishes, and what was not understood."""

from dataclasses import dataclass
from typing import Optional

from jackfield import Choice, Date, Number, Slot, Span, Text

import dates
import times
from actions import Actions, Wish
from entities import Cities, Orders, Quantities, phones
from found import Found, Taken, agreed
from letters import count_letters
from text import phrases


@dataclass
class Reading:
    """What one utterance says."""

    # By their names.
    slots: dict[str, Slot]
    # Number of the action that is wanted.
    action: Optional[int]
    # Denied ones too.
    wishes: list[Wish]
    # Letters, digits and Chinese characters outside slots and order words.
    rest: int


class Reader:
    """Reads utterances by the rules."""

    def __init__(self, config):
        self.actions = Actions(config.action, config.negation, config.answers)
        self.cities = Cities(config.city)
        self.topics = {name: phrases(words) for name, words in config.topic.items()}
        self._orders = Orders(config.order, config.phone)
        self._quantities = Quantities(config.quantity)
        self._date_targets = phrases(config.dates.targets)
        self._rollover_days = config.dates.rollover_days

    def read(self, text, today, asked):
        """Reads an utterance. Without `today` there are no dates; `asked` is what the dialog has just asked for."""
        called = [phone for phone in phones(text) if not self._orders.called_order(text, phone.start)]
        mentions = dates.mentions(text, dates.Calendar(today, self._rollover_days)) if today else []
        by_phones = Taken(called)
        mentions = [mention for mention in mentions if not by_phones.touches(mention)]
        order = self._orders.find(text, Taken(called + mentions), asked == "order")
        taken = Taken(called + mentions + ([order] if order else []))

        wishes = self.actions.find(text)
        wanted = self.actions.wanted(wishes)
        action = self.actions.names[wanted.action] if wanted else None
        found = [
            ("order", Text, order),
            ("phone", Text, agreed(called)),
            ("date", Date, self._date(text, mentions, action)),
            ("time", Text, _time(text, taken)),
            ("city", Choice, self.cities.find(text)),
            ("quantity", Number, self._quantities.find(text, taken, asked == "change", self.actions.denied)),
            ("action", Choice, Found(wanted.start, wanted.end, action) if wanted else None),
        ]
        slots = {
            name: Slot(name, kind(one.value), Span(one.start, one.end), one.confidence) for name, kind, one in found if one
        }
        return Reading(slots, wanted and wanted.action, wishes, self._rest(text, slots))

    def speaks_of(self, topic, text):
        """Whether the utterance has a word of the topic."""
        return self.topics[topic].are_in(text, 0, len(text))

    def _date(self, text, mentions, action):
        date = dates.pick(text, mentions, self._date_targets, action == "change")
        return date and Found(date.start, date.end, dates.iso(date.when), date.confidence)

    def _rest(self, text, slots):
        """Letters, digits and Chinese characters outside slots and order words."""
        explained = [(slot.source.start, slot.source.end) for slot in slots.values()]
        explained += [word.span() for word in self._orders.words.within(text, 0, len(text))]
        rest, at = 0, 0
        for start, end in sorted(explained):
            rest += count_letters(text, at, start)
            at = max(at, end)
        return rest + count_letters(text, at, len(text))


def _time(text, taken):
    time = times.find(text)
    # 今晚 is of the date, 晚八点 of the time: they may share that character.
    return time if time and not taken.touches(time._replace(start=time.start + 1)) else None
