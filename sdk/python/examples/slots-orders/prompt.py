"""What the model is given of a dialog. Each prompt begins with the one before it and what the model answered, so that all of
that is found in the host's prefix cache: what stays the same comes first, what is new last, and what was told is told again
where it stood."""

import json
from dataclasses import dataclass
from datetime import date
from typing import NamedTuple, Optional

from jackfield import Dialog, Message, Slot

from machine import Machine
from memory import PROMPTED, keep_language, keep_told, kept_language, kept_told, place


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
        begun = kept_language(PROMPTED, self.dialog)
        # In front of what the model has read without them, the instructions would make it read all of that again.
        front = self.language if not is_whole or begun or not self._is_read() else None
        shown = self._shown(recent, told, front)
        unsaid = {fact.name: fact.data for fact in facts if not fact.is_seen_in(shown)}
        new = []
        instructions = self.machine.instructions(self.language, self.today)
        if not front and not any(text.startswith(instructions) for text in told.values()):
            new.append(instructions)
        if unsaid:
            slots = json.dumps(unsaid, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
            new.append(self.machine.known(self.language, slots))
        kept = keep_language(PROMPTED, front, self.dialog) if front else []
        if new:
            users = [message.text for message in recent if message.role == "user"]
            if users:
                told[place(len(users) - 1, users[-1])] = "\n".join(new)
            if is_whole:
                kept.append(keep_told(told))
        return Prompt(self._messages(front, self._shown(recent, told, front)), kept)

    def going_on(self):
        """As it is, with the instructions and what was told where they stood. They begin here where the model has read
        nothing yet. None where nothing was told, or the dialog may not be whole here."""
        told = kept_told(self.dialog)
        front = kept_language(PROMPTED, self.dialog) or (self.language if self._begins() else None)
        if not self.machine.is_whole(self.recent) or not (front or told):
            return None
        kept = keep_language(PROMPTED, front, self.dialog) if front else []
        return Prompt(self._messages(front, self._shown(self.recent, told, front)), kept)

    def _begins(self):
        """Whether the rules have answered so far, and nobody else, in a dialog that is kept: a caller without a session would
        be given the instructions in this turn and not in the next."""
        return self.dialog.schema != 0 and bool(self._answers()) and not self._is_read()

    def _is_read(self):
        """Whether the model has answered before."""
        return not all(map(self.machine.is_reply, self._answers()))

    def _answers(self):
        return [message.text for message in self.recent if message.role == "assistant"]

    def _shown(self, recent, told, front):
        """The dialog without system messages. Where the instructions stand in front, the model reads of what the rules have
        answered in a row the last, which says what they came to; what the user said meanwhile is one message."""
        said = [message for message in recent if message.role != "system"]
        is_reply = [front and message.role == "assistant" and self.machine.is_reply(message.text) for message in said]
        shown, user, dropped = [], 0, False
        for at, message in enumerate(said):
            following = next((n for n in range(at + 1, len(said)) if said[n].role == "assistant"), None)
            drop = is_reply[at] and following is not None and is_reply[following]
            text = message.text
            if message.role == "user":
                before = told.get(place(user, text))
                text = f"{before}\n{text}" if before else text
                user += 1
            if dropped and not drop and shown and shown[-1].role == message.role:
                shown[-1].text += f"\n{text}"
            elif not drop:
                shown.append(Message(message.role, text))
            dropped = drop
        return shown

    def _messages(self, front, shown):
        """After the caller's own system messages and, in front, the instructions."""
        texts = [message.text for message in self.recent if message.role == "system"]
        if front:
            texts.append(self.machine.instructions(front, self.today))
        return [Message("system", "\n\n".join(texts)), *shown] if texts else shown
