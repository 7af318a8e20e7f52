"""What the host offers to a policy whose manifest grants it (`grants` in policy.toml). Works in a component only."""

from .answers import PolicyError
from .offsets import Offsets

# Now and not in the functions: a component has no file system to load a module from.
try:
    from componentize_py_types import Err as _Err
    from wit_world import imports as _imports
except ImportError:
    _imports, _Err = None, PolicyError

for _name in ("log", "metrics", "tokens", "saliency", "embeddings"):
    try:
        __import__(f"wit_world.imports.{_name}")
    except ImportError:
        # Not one of this kind's.
        pass


def log(level, text):
    """Writes a line to the host's log; `level` is "debug", "info", "warn" or "error"."""
    host = _host("log")
    host.write(host.Level[level.upper()], text)


def add(counter, amount=1.0):
    """Adds to a counter on the host's metrics page."""
    _host("metrics").add(counter, float(amount))


def count_tokens(text):
    """Number of tokens of the text."""
    return _host("tokens").count(text)


def token_ends(text):
    """Where each token ends, in characters."""
    offsets = Offsets(text)
    return [offsets.chars(end) for end in _host("tokens").boundaries(text)]


def encode_tokens(text):
    """Id of each token in the model's vocabulary."""
    return list(_host("tokens").encode(text))


def surprisal(text):
    """Pairs of where a token ends, in characters, and its surprisal in bits. PolicyError where the host cannot say."""
    offsets = Offsets(text)
    scored = _or_policy_error(_host("saliency").score, text)
    return [(offsets.chars(one.end), one.surprisal_bits) for one in scored]


def embed(text):
    """A unit vector for a text. PolicyError where the host cannot say."""
    return _or_policy_error(_host("embeddings").embed, text)


def _host(name):
    host = getattr(_imports, name, None)
    if host is None:
        raise PolicyError(f"`{name}` is not offered to this kind of policy, or this is not a component")
    return host


def _or_policy_error(function, text):
    try:
        return function(text)
    except _Err as error:
        raise PolicyError(error.value) from None
