"""What componentize-py makes the component of a output filter of."""

import sys

# The author's folder is where modules come from: nothing is written there.
sys.dont_write_bytecode = True

import app
from wit_world import exports
from wit_world.exports import output_filtering

from jackfield.component import Component
from jackfield.types import Verdict

_component = Component(app.Policy, output_filtering, "review", list[Verdict])
Lifecycle = _component.Lifecycle


class OutputFiltering(exports.OutputFiltering):
    def interests(self):
        return _component.interests()

    def review(self, windows):
        return _component.call(windows)
