"""Between the records of `jackfield.types` and those that are generated from the contract.

What goes to the host is held to the types first: the generated code ends the call without a message where one is wrong.
"""

from dataclasses import is_dataclass
from enum import Enum
from typing import Annotated, Literal, Union, get_args, get_origin, get_type_hints

from . import types

# A case of a variant, and what stands for it here.
_CASES = {
    types.Value: {
        types.Text: "Value_Text",
        types.Number: "Value_Number",
        types.Boolean: "Value_Boolean",
        types.Date: "Value_Date",
        types.Choice: "Value_Choice",
    },
    types.Grammar: {
        types.JsonSchema: "Grammar_JsonSchema",
        types.Regex: "Grammar_Regex",
        types.Lark: "Grammar_Lark",
    },
    types.Next: {type(None): "Next_Model", list: "Next_Prompt", str: "Next_Answer"},
    types.Decision: {types.Plan: "Decision_Run", str: "Decision_Answer", types.Refusal: "Decision_Refuse"},
}
_WRAPPERS = {name: own for cases in (_CASES[types.Value], _CASES[types.Grammar]) for own, name in cases.items()}
_ENUMS = {types.Role: "Role", types.Mode: "Mode"}
# Fields that count bytes there and characters here.
_THERE = {"cached": "cached_bytes", "hold": "hold_bytes"}
_HERE = {there: here for here, there in _THERE.items()}


def lift(value):
    """What came from the host, in our own types."""
    if isinstance(value, (str, int, float)) or value is None:
        return value
    if isinstance(value, list):
        return [lift(one) for one in value]
    if isinstance(value, Enum):
        return value.name.lower()
    name = type(value).__name__
    if name in _WRAPPERS:
        return _WRAPPERS[name](value.value)
    given = {_HERE.get(field, field): lift(one) for field, one in vars(value).items()}
    return getattr(types, name)(**given)


class Lower:
    """Makes what goes to the host of our own types."""

    def __init__(self, *generated):
        """`generated`: modules in which a record's or a case's class is found by its name."""
        self._generated = generated
        self._hints = {}

    def __call__(self, value, hint, path):
        """`path` names the value in errors."""
        origin = get_origin(hint)
        if hint in _CASES:
            return self._case(value, hint, path)
        if origin is Union:
            inner = tuple(one for one in get_args(hint) if one is not type(None))
            return None if value is None else self(value, Union[inner], path)
        if origin is list:
            return self._list(value, get_args(hint)[0], path)
        if origin is Literal:
            return self._enum(value, hint, path)
        if is_dataclass(hint):
            return self._record(value, hint, path)
        return _plain(value, hint, path)

    def _class(self, name):
        return next(getattr(module, name) for module in self._generated if hasattr(module, name))

    def _case(self, value, hint, path):
        cases = _CASES[hint]
        own = next((own for own in cases if isinstance(value, own)), None)
        if own is None:
            raise _wrong(value, "one of " + ", ".join(case.__name__ for case in cases), path)
        made = self._class(cases[own])
        if value is None:
            return made()
        if cases[own] in _WRAPPERS:
            return made(_plain(value.value, get_type_hints(own)["value"], path))
        inner = next(one for one in get_args(hint) if (get_origin(one) or one) is own)
        return made(self(value, inner, path))

    def _list(self, value, hint, path):
        if value is None:
            return []
        if not isinstance(value, (list, tuple)):
            raise _wrong(value, "a list", path)
        return [self(one, hint, f"{path}[{at}]") for at, one in enumerate(value)]

    def _enum(self, value, hint, path):
        if value not in get_args(hint):
            raise _wrong(value, "one of " + ", ".join(get_args(hint)), path)
        return self._class(_ENUMS[hint])[value.upper()]

    def _record(self, value, hint, path):
        if not isinstance(value, hint):
            raise _wrong(value, f"a {hint.__name__}", path)
        if hint not in self._hints:
            self._hints[hint] = get_type_hints(hint, include_extras=True)
        given = {
            _THERE.get(field, field): self(getattr(value, field), inner, f"{path}.{field}")
            for field, inner in self._hints[hint].items()
        }
        return self._class(hint.__name__)(**given)


def _plain(value, hint, path):
    if get_origin(hint) is Annotated:
        most = get_args(hint)[1]
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= most:
            raise _wrong(value, f"a whole number from 0 to {most}", path)
    elif hint is float:
        if not isinstance(value, (int, float)) or isinstance(value, bool):
            raise _wrong(value, "a number", path)
        return float(value)
    elif not isinstance(value, hint):
        raise _wrong(value, f"a {hint.__name__}", path)
    elif hint is str and not value.isascii():
        # Half of a surrogate pair is no character; encoding it says so.
        value.encode()
    return value


def _wrong(value, wanted, path):
    return TypeError(f"{path} is {value!r}, which is not {wanted}")
