"""Writes lower.h: how letters outside of ASCII change in lower case, as ranges. Run it where Python knows a newer Unicode."""

import unicodedata
from pathlib import Path

# The one character whose lower case is two has a line of its own in jackfield.c.
TWO = 0x130


def lower_cases():
    """Pairs of a scalar and the difference to its lower case."""
    for code in range(0x80, 0x110000):
        lower = chr(code).lower()
        if not 0xD800 <= code <= 0xDFFF and code != TWO and lower != chr(code):
            yield code, ord(lower) - code


def ranges():
    """First, last, step, difference."""
    rest = list(lower_cases())
    while rest:
        run = max((leading(rest, step) for step in (1, 2)), key=lambda run: run[0])
        count, step = run
        yield rest[0][0], rest[count - 1][0], step, rest[0][1]
        rest = rest[count:]


def leading(pairs, step):
    """How many of the first pairs are a range of this step."""
    count = 1
    while count < len(pairs) and pairs[count] == (pairs[count - 1][0] + step, pairs[0][1]):
        count += 1
    return count, step


lines = [f"    {{0x{first:x}, 0x{last:x}, {step}, {difference}}},\n" for first, last, step, difference in ranges()]
Path(__file__).with_name("lower.h").write_text(
    f"// Made by make_lower.py from Unicode {unicodedata.unidata_version}.\n"
    "static const struct { uint32_t first, last, step; int32_t difference; } LOWER[] = {\n" + "".join(lines) + "};\n"
)
