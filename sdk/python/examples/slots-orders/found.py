"""What scanners find in a text."""

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


def overlap(taken, found):
    """Whether something found shares a character with what is taken."""
    return any(one.start < found.end and found.start < one.end for one in taken)
