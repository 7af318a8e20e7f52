"""The component's side of a policy: what the host calls, by the generated bindings' types. Works in a component only."""

from componentize_py_types import Err
from wit_world import exports
from wit_world.imports import types as generated

from .answers import Caller, message
from .convert import Lower, lift
from .describe import Description
from .types import Interest


class Component:
    """Made when the component is built: what is wrong here is said to the author then."""

    def __init__(self, policy_class, kind, name, answer):
        """`kind`: the generated module of what this kind of policy exports; `name`: its function, and the type that answers."""
        self._caller = Caller(policy_class)
        self._lower = Lower(generated, kind)
        # Made now, since what is made in a call is lost after it.
        self._name, self._lower_answer = name, self._lower.of(answer)
        self._asks_interests = hasattr(kind, "Interest")
        self._interest = None
        description = self._lower(self._caller.describe(), Description, "description")

        class Lifecycle(exports.Lifecycle):
            def describe(_):
                return description

            def configure(_, config):
                _or_error(self._configure, config)

        self.Lifecycle = Lifecycle

    def _configure(self, config):
        self._caller.configure(config)
        if self._asks_interests:
            # Here, where an exception still has a message.
            self._interest = self._lower(self._caller.interests(), Interest, "interests")

    def interests(self):
        return self._interest

    def call(self, *arguments):
        """The answer of the policy's function."""

        def call():
            answer = getattr(self._caller, self._name)(*map(lift, arguments))
            return self._lower_answer(answer, lambda: "the answer")

        return _or_error(call)


def _or_error(function, *arguments):
    """An exception that is not `Err` would end the call without a message."""
    try:
        return function(*arguments)
    except BaseException as error:
        raise Err(message(error)) from None
