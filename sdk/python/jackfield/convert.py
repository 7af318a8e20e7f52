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
        self._made = {}

    def __call__(self, value, hint, path):
        """`path` names the value in errors; the functions take one that gives it, which costs nothing where nothing is wrong."""
        return self.of(hint)(value, lambda: path)

    def of(self, hint):
        """The function for values of this type: made once, since it takes long to find out what a type says."""
        # Types of `typing` take longer to compare than to write.
        key = repr(hint)
        if key not in self._made:
            self._made[key] = self._make(hint)
        return self._made[key]

    def _make(self, hint):
        origin = get_origin(hint)
        if hint in _CASES:
            return self._case(hint)
        if origin is Union:
            inner = self.of(Union[tuple(one for one in get_args(hint) if one is not type(None))])
            return lambda value, path: None if value is None else inner(value, path)
        if origin is list:
            return self._list(self.of(get_args(hint)[0]))
        if origin is Literal:
            return self._enum(hint)
        if is_dataclass(hint):
            return self._record(hint)
        return lambda value, path: _plain(value, hint, path)

    def _class(self, name):
        return next(getattr(module, name) for module in self._generated if hasattr(module, name))

    def _case(self, hint):
        cases = []
        for own, name in _CASES[hint].items():
            made = self._class(name)
            if own is type(None):
                cases.append((own, lambda value, path, made=made: made()))
            elif name in _WRAPPERS:
                inner = self.of(get_type_hints(own)["value"])
                cases.append((own, lambda value, path, made=made, inner=inner: made(inner(value.value, path))))
            else:
                inner = self.of(next(one for one in get_args(hint) if (get_origin(one) or one) is own))
                cases.append((own, lambda value, path, made=made, inner=inner: made(inner(value, path))))
        called = ", ".join(own.__name__ for own in _CASES[hint])

        def case(value, path):
            for own, make in cases:
                if isinstance(value, own):
                    return make(value, path)
            raise _wrong(value, "one of " + called, path)

        return case

    def _list(self, inner):
        def each(value, path):
            if value is None:
                return []
            if not isinstance(value, (list, tuple)):
                raise _wrong(value, "a list", path)
            return [inner(one, lambda: f"{path()}[{at}]") for at, one in enumerate(value)]

        return each

    def _enum(self, hint):
        names, members = get_args(hint), self._class(_ENUMS[hint])

        def enum(value, path):
            if value not in names:
                raise _wrong(value, "one of " + ", ".join(names), path)
            return members[value.upper()]

        return enum

    def _record(self, hint):
        made = self._class(hint.__name__)
        fields = [
            (field, _THERE.get(field, field), self.of(inner))
            for field, inner in get_type_hints(hint, include_extras=True).items()
        ]

        def record(value, path):
            if not isinstance(value, hint):
                raise _wrong(value, f"a {hint.__name__}", path)
            given = {
                there: inner(getattr(value, field), lambda: f"{path()}.{field}") for field, there, inner in fields
            }
            return made(**given)

        return record


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
    return TypeError(f"{path()} is {value!r}, which is not {wanted}")
