"""What componentize-py makes the component of a router of."""

import sys

# The author's folder is where modules come from: nothing is written there.
sys.dont_write_bytecode = True

import app
from wit_world import exports
from wit_world.exports import routing

from jackfield.component import Component
from jackfield.types import Decision

_component = Component(app.Policy, routing, "route", Decision)
Lifecycle = _component.Lifecycle


class Routing(exports.Routing):
    def route(self, turn, request, fleet):
        return _component.call(turn, request, fleet)
