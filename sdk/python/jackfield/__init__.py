"""What a Jackfield policy written in Python uses.

A policy is a class `Policy` in `app.py`:

    class Policy:
        description = Description("my-router", "0.1.0", config_schema=beside(__file__))

        def __init__(self, config):            # rules.toml as a dict
            self.replies = config["replies"]

        def route(self, turn, request, fleet):  # or extract, compress, review, by kind
            return self.replies.get(request.last_user_text)

- Spans count characters, as slices of a `str` do; they are translated to and from the host's bytes.
- An exception is the call's error, with its message: `PolicyError("why")` is given as it is, any other with its type and line.
- None stands for what is missing: in a field the value that means nothing, as an answer "nothing to say".
- A call is a pure function of its arguments: nothing that it writes to `self` is kept for sure.
"""

from . import host
from .answers import PolicyError
from .describe import Description, beside
from .text import Folded, find_term, is_blank
from .types import *
