"""Calls a policy: its exceptions become errors with a message, its offsets bytes, its short answers whole ones.

Nothing here knows how the host is reached, so that it runs in any Python.
"""

import json
from dataclasses import replace

from .describe import Description
from .offsets import Offsets
from .types import Interest, Plan, Transition


class PolicyError(Exception):
    """The error of a call, its text as the operator will read it."""


def message(error):
    """What is said of an exception: a `PolicyError` as it is, any other with its type and the author's line."""
    if isinstance(error, PolicyError):
        return str(error)
    said = f"{type(error).__name__}: {error}"
    place = _place(error.__traceback__)
    return f"{said} ({place})" if place else said


def _place(traceback):
    """The innermost line that is not of this package. By hand: `traceback` reads files, and a component has none."""
    # By the whole path: an author's own folder may be called jackfield, too.
    package = _place.__code__.co_filename.rpartition("/")[0] + "/"
    place = None
    while traceback is not None:
        path = traceback.tb_frame.f_code.co_filename
        if not path.startswith(package):
            place = f"{path.rsplit('/', 1)[-1]}, line {traceback.tb_lineno}"
        traceback = traceback.tb_next
    return place


class Caller:
    """A policy class, and the policy that was made of it by its last configuration."""

    def __init__(self, policy_class):
        self._class = policy_class
        self._policy = None

    def describe(self):
        description = self._class.description
        if not isinstance(description, Description):
            raise TypeError("Policy.description must be a jackfield.Description")
        return description

    def configure(self, config):
        self._policy = self._class(json.loads(config))

    def _configured(self):
        if self._policy is None:
            raise PolicyError("called before it was configured")
        return self._policy

    def extract(self, turn, recent, dialog):
        """`recent[-1]`, where there is one, is the text that sources of slots are spans of."""
        answer = self._configured().extract(turn, recent, dialog)
        if answer is None:
            return Transition(state=dialog.state)
        utterance = Offsets(recent[-1].text if recent else "")
        return replace(answer, set=[_slot_out(slot, utterance) for slot in answer.set or []])

    def route(self, turn, request, fleet):
        text = Offsets(request.last_user_text)
        request.slots = [_slot_in(slot, text) for slot in request.slots]
        answer = self._configured().route(turn, request, fleet)
        if answer is not None:
            return answer
        if not fleet:
            raise PolicyError("the fleet is empty")
        return Plan(target=fleet[0].model)

    def compress(self, turn, parts, budget):
        """Parts come with offsets in bytes."""
        texts = [Offsets(part.message.text) for part in parts]
        for part, text in zip(parts, texts):
            part.protected = [text.span_in(span) for span in part.protected]
            part.cached = text.chars(part.cached)
        edits = self._configured().compress(turn, parts, budget)
        return [_edit_out(edit, texts) for edit in edits or []]

    def interests(self):
        interest = self._configured().interests()
        return interest if isinstance(interest, Interest) else Interest(watches=list(interest or []))

    def review(self, windows):
        """Windows come with offsets in bytes."""
        texts = [Offsets(window.pending) for window in windows]
        for window, text in zip(windows, texts):
            window.hits = [replace(hit, at=text.span_in(hit.at)) for hit in window.hits]
            window.tokens = [replace(token, end=text.chars(token.end)) for token in window.tokens]
        verdicts = self._configured().review(windows)
        return [_verdict_out(verdict, windows, texts) for verdict in verdicts or []]


def _slot_in(slot, text):
    return slot if slot.source is None else replace(slot, source=text.span_in(slot.source))


def _slot_out(slot, text):
    if slot.source is None:
        return slot
    return replace(slot, source=text.span_out(slot.source, f"the source of slot {slot.name!r}"))


def _edit_out(edit, texts):
    return replace(edit, at=_of(texts, edit.message, "an edit of message").span_out(edit.at, "an edit's span"))


def _verdict_out(verdict, windows, texts):
    text = _of(texts, verdict.window, "a verdict on window")
    length = len(windows[verdict.window].pending)
    kept = text.bytes(length - (verdict.hold or 0), "the end of what is not held")
    masked = [replace(one, at=text.span_out(one.at, "a replacement's span")) for one in verdict.replace or []]
    return replace(verdict, replace=masked, hold=text.bytes(length, "the end") - kept)


def _of(texts, index, what):
    if not 0 <= index < len(texts):
        raise IndexError(f"{what} {index}, of {len(texts)}")
    return texts[index]
