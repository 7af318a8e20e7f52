"""What the model is given of a dialog. Each prompt begins with the one before it and what the model answered, so that all of
that is found in the host's prefix cache: what stays the same comes first, what is new last, and what was told is told again
where it stood."""

import json
from dataclasses import dataclass
from datetime import date
from typing import NamedTuple, Optional

from jackfield import Dialog, Message, Slot

from machine import Machine
from memory import PROMPTED, keep_language, keep_told, kept_language, kept_told


class Prompt(NamedTuple):
    """The messages, and what has to be kept for the next prompt."""

    messages: list[Message]
    set: list[Slot]


@dataclass
class Asking:
    """A turn that goes to the model."""

    machine: Machine
    # The last messages; the utterance is the last of them.
    recent: list[Message]
    dialog: Dialog
    # The language that the user writes.
    language: str
    today: Optional[date]

    def with_facts(self, facts):
        """With instructions, and what is known where the words do not say it. Of a dialog that may not be whole here only
        the utterance is shown."""
        is_whole = self.machine.is_whole(self.recent)
        recent = self.recent if is_whole else self.recent[-1:]
        told = kept_told(self.dialog) if is_whole else {}
        shown = self._shown(recent, told)
        unsaid = {fact.name: fact.data for fact in facts if not fact.is_seen_in(shown)}
        kept = keep_language(PROMPTED, self.language, self.dialog)
        if unsaid:
            last = sum(message.role == "user" for message in recent) - 1
            slots = json.dumps(unsaid, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
            told[max(last, 0)] = self.machine.known(self.language, slots)
            if is_whole:
                kept.append(keep_told(told))
        return Prompt(self._messages(self.language, self._shown(recent, told)), kept)

    def going_on(self):
        """As it is, after the instructions, where the model has read of it so far what begins with them, or nothing at all.
        None where they would make it read again what it has read without them, or where the dialog may not be whole here."""
        begun = kept_language(PROMPTED, self.dialog)
        if not self.machine.is_whole(self.recent) or not (begun or self._is_unread()):
            return None
        language = begun or self.language
        shown = self._shown(self.recent, kept_told(self.dialog))
        return Prompt(self._messages(language, shown), keep_language(PROMPTED, language, self.dialog))

    def _is_unread(self):
        """Whether every answer so far was one of the rules, in a dialog that is kept: a caller without a session would be
        given the instructions in this turn and not in the next."""
        answers = [message.text for message in self.recent if message.role == "assistant"]
        return self.dialog.schema != 0 and bool(answers) and all(map(self.machine.is_reply, answers))

    def _shown(self, recent, told):
        """The dialog without system messages. The model does not read what the rules have answered, but for the last of
        several such answers in a row, which says what they came to; what the user said meanwhile is one message."""
        said = [message for message in recent if message.role != "system"]
        is_reply = [message.role == "assistant" and self.machine.is_reply(message.text) for message in said]
        shown, user, dropped = [], 0, False
        for at, message in enumerate(said):
            following = next((n for n in range(at + 1, len(said)) if said[n].role == "assistant"), None)
            drop = is_reply[at] and following is not None and is_reply[following]
            text = message.text
            if message.role == "user":
                text = f"{told[user]}\n{text}" if user in told else text
                user += 1
            if dropped and not drop and shown and shown[-1].role == message.role:
                shown[-1].text += f"\n{text}"
            elif not drop:
                shown.append(Message(message.role, text))
            dropped = drop
        return shown

    def _messages(self, language, shown):
        """After the caller's own system messages and the instructions."""
        own = [message.text for message in self.recent if message.role == "system"]
        instructions = self.machine.instructions(language, self.today)
        return [Message("system", "\n\n".join([*own, instructions])), *shown]
