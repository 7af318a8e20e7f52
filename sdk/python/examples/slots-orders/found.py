"""What scanners find in a text."""

from bisect import bisect_right
from operator import itemgetter
from typing import NamedTuple, Union


class Found(NamedTuple):
    start: int
    end: int
    value: Union[str, int]
    # 0 to 1.
    confidence: float = 1.0


def agreed(found):
    """The first of those that agree; None when they do not."""
    return found[0] if found and all(one.value == found[0].value for one in found) else None


class Taken:
    """Places of a text that something was already read from: none overlaps another, and they are in order."""

    def __init__(self, found):
        self._places = sorted((one.start, one.end) for one in found)

    def touches(self, found):
        """Whether something found shares a character with one of them."""
        first = bisect_right(self._places, found.start, key=itemgetter(1))
        return first < len(self._places) and self._places[first][0] < found.end
