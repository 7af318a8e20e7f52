"""Reads what a customer says (order number, date, time, city, phone, quantity, what is wanted), keeps it as slots, and
answers by itself what needs no model. The same policy as plugins/slots-orders, with its rules, its schema and its cases.

| module | |
|---|---|
| `text`, `letters`, `pattern`, `number`, `civil` | the ground: folded text, letters, patterns, numerals, calendar |
| `dates`, `times`, `entities`, `actions` | what can be found in a text |
| `reader` | all that one utterance says |
| `machine`, `language`, `template` | what it leads to |
| `prompt`, `memory` | what the model is given, and what is kept for that |

No value is guessed: what could mean two things gives no slot.
"""

from jackfield import Description, Transition, beside

from civil import day_of_instant
from config import Config, read
from language import language_of
from machine import Before, Machine
from memory import LANGUAGE, keep_language
from prompt import Asking
from reader import Reader
from text import Text


class Policy:
    description = Description("slots-orders", "0.1.0", beside(__file__), dialog_schema=1)

    def __init__(self, config):
        config = read(Config, config)
        self.reader = Reader(config)
        self.machine = Machine(config, self.reader)

    def extract(self, turn, recent, dialog):
        utterance = recent[-1].text if recent else ""
        text = Text(utterance)
        today = day_of_instant(turn.now.unix_ms, turn.now.utc_offset_minutes)
        state = self.machine.state(dialog.state)
        reading = self.reader.read(text, today, asked=state.expects)
        language = language_of(recent, dialog, turn.locale)
        outcome = self.machine.turn(text, reading, Before(state, dialog.slots, language))
        slots, following = outcome.set, outcome.next
        if isinstance(following, str):
            slots = slots + keep_language(LANGUAGE, language, dialog)
        else:
            asking = Asking(self.machine, recent, dialog, language, today)
            prompt = asking.going_on() if following is None else asking.with_facts(following)
            if prompt:
                slots, following = slots + prompt.set, prompt.messages
        return Transition(outcome.state, slots, outcome.clear, following)
