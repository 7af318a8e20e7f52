"""Masks names, and ends an answer before a forbidden one. The host looks for them; this is called only where it found one."""

from jackfield import Description, PolicyError, Replacement, Verdict, Watch, beside

NAMES, FORBIDDEN = 0, 1


def is_plain(name):
    """A name goes into a pattern as it is, and everything that means something there is ASCII."""
    return all(c.isalnum() for c in name if c.isascii())


def watch(kind, names):
    """One pattern for all names of a list, so that no two of its hits overlap."""
    return Watch(kind, f"(?i:{'|'.join(names)})")


class Policy:
    description = Description("{{name}}", "0.1.0", beside(__file__))

    def __init__(self, config):
        self.mask, self.names, self.forbidden = config["mask"], config["names"], config.get("forbidden", [])
        for name in self.names + self.forbidden:
            if not is_plain(name):
                raise PolicyError(f"`{name}` has more in it than letters and digits")

    def interests(self):
        return [watch("names", self.names)] + ([watch("forbidden", self.forbidden)] if self.forbidden else [])

    def review(self, windows):
        return [self.verdict(index, window) for index, window in enumerate(windows)]

    def verdict(self, index, window):
        length = len(window.pending)
        end = next((hit.at.start for hit in window.hits if hit.watch == FORBIDDEN), None)
        kept = length if end is None else end
        masked = [hit for hit in window.hits if hit.watch == NAMES and hit.at.end <= kept]
        return Verdict(
            index,
            replace=[Replacement(hit.at, self.mask) for hit in masked],
            hold=length - kept,
            stop=None if end is None else "a forbidden name",
        )
