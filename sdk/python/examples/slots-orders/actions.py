"""What the customer wants, and whether a question was confirmed. A denied wish is no wish."""

import re
from typing import NamedTuple

from letters import is_letter
from text import CJK, Phrases, clause_around, clause_end, phrases


# Behind a name of JSON.
_COLON = re.compile('" *:')


class Wish(NamedTuple):
    # Number of the action in the rules.
    action: int
    start: int
    end: int
    # It is said not to be wanted.
    denied: bool


class Actions:
    """Finds wishes."""

    def __init__(self, actions, negation, answers):
        self.names = [action.name for action in actions]
        self._ranks = [action.rank for action in actions]
        self._words = Phrases((word, number) for number, action in enumerate(actions) for word in action.words)
        self._unless = [phrases(action.unless) for action in actions]
        self._negation = _Negation(negation)
        self._answers = _Answers(answers)

    def number(self, name):
        """The number of the action of that name; None where there is none."""
        return self.names.index(name) if name in self.names else None

    def find(self, text):
        """All wishes, denied ones too, in order."""
        found, at, clause, unmeant = [], 0, range(0), ()
        while word := self._words.search(text, at):
            action, (start, at) = self._words.value(word), word.span()
            if start not in clause:
                clause = clause_around(text, start)
                unmeant = self._unmeant(text, clause)
            if action not in unmeant and not _in_json(text, start, at):
                # What denied the wish before is done with.
                since = max(clause.start, found[-1].end) if found else clause.start
                found.append(Wish(action, start, at, self._negation.reaches(text, start, since)))
        return found

    def wanted(self, wishes):
        """The one wish that is meant: the highest in rank, when no other is as high. A wish that is denied later in the same
        breath (取消，不对，不要取消) is none."""
        last_denied = {wish.action: wish.start for wish in wishes if wish.denied}
        live = [wish for wish in wishes if not wish.denied and wish.start > last_denied.get(wish.action, -1)]
        highest = max((self._ranks[wish.action] for wish in live), default=None)
        best = [wish for wish in live if self._ranks[wish.action] == highest]
        return best[0] if len({wish.action for wish in best}) == 1 else None

    def denied(self, text, at):
        """Whether what stands at `at` is denied."""
        return self._negation.reaches(text, at, clause_around(text, at).start)

    def answer(self, text, wishes, action):
        """What a yes-or-no question about `action` got: `yes`, `no`, `unclear`, or None."""
        about = [wish for wish in wishes if wish.action == action]
        if any(wish.denied for wish in about):
            return "no"
        return self._answers.read(text, {wish.start: wish.end for wish in about})

    def _unmeant(self, text, clause):
        """The actions that are not meant in a clause, whatever its words."""
        return [action for action, words in enumerate(self._unless) if words.are_in(text, clause.start, clause.stop)]


def _in_json(text, start, end):
    """Whether a word is a name, or a value, as "status" is in {"status": 500}, and not what a customer wants."""
    if not text.endswith('"', 0, start) or not text.startswith('"', end):
        return False
    before = start - 1
    while text.endswith(" ", 0, before):
        before -= 1
    return _COLON.match(text, end) is not None or text.endswith((":", "{", "["), 0, before)


class _Negation:
    # Chinese characters and other words.
    _WORD = re.compile(f"[{CJK}]|[0-9a-z']+")

    def __init__(self, negation):
        self._not = phrases(negation.not_)
        self._words = phrases(negation.words)
        self._resets = phrases(negation.resets)
        self._any = phrases(negation.not_ + negation.words + negation.resets)
        self._reach = negation.reach

    def reaches(self, text, at, here):
        """Whether a negation from `here` on reaches what stands at `at`, in the same clause."""
        denied_from = None
        while (found := self._any.search(text, here)) and found.start() < at:
            here = found.start()
            if harmless := self._not.match(text, here):
                here = harmless.end()
            elif (denial := self._words.match(text, here)) and denial.end() <= at:
                denied_from = here = denial.end()
            elif (reset := self._resets.match(text, here)) and reset.end() <= at:
                denied_from, here = None, reset.end()
            else:
                here += 1
        return denied_from is not None and len(self._WORD.findall(text, denied_from, at)) <= self._reach


class _Answers:
    """Reads yes and no."""

    def __init__(self, answers):
        kinds = {"yes": answers.yes, "no": answers.no, "unclear": answers.unclear, "filler": answers.filler}
        self._pieces = Phrases((word, kind) for kind, words in kinds.items() for word in words)

    def read(self, text, repeated):
        """A clause counts when it is made of known pieces alone. `repeated` has the ends of places where the wish itself is
        said again, by their starts."""
        seen, start, whole = set(), 0, True
        while start < len(text) and whole:
            end = clause_end(text, start)
            kinds = self._cover(text, start, end, repeated)
            whole = kinds is not None
            if whole:
                seen |= kinds
                start = end + 1
        if not seen - {"filler"}:
            return None
        if not whole:
            # In the rest only a contradiction is looked for.
            seen |= self._kinds(text, start) - {"yes"}
        asks = "?" in text or "吗" in text
        if asks or "unclear" in seen or {"yes", "no"} <= seen:
            return "unclear"
        return "yes" if "yes" in seen else "no"

    def _cover(self, text, start, end, repeated):
        """The kinds of pieces that a clause is made of; None where it has other words too."""
        kinds, at = set(), start
        while at < end:
            stop, kind = self._piece_at(text, at, repeated)
            if stop <= end and kind:
                kinds.add(kind)
                at = stop
            elif is_letter(text[at]):
                return None
            else:
                at += 1
        return kinds

    def _piece_at(self, text, at, repeated):
        if at in repeated:
            return repeated[at], "yes"
        piece = self._pieces.match(text, at)
        return (piece.end(), self._pieces.value(piece)) if piece else (at, None)

    def _kinds(self, text, start):
        kinds = set()
        while piece := self._pieces.search(text, start):
            kinds.add(self._pieces.value(piece))
            start = piece.end()
        return kinds
