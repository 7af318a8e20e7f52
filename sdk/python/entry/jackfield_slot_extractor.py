"""What componentize-py makes the component of a slot extractor of."""

import sys

# The author's folder is where modules come from: nothing is written there.
sys.dont_write_bytecode = True

import app
from wit_world import exports
from wit_world.exports import slot_extraction

from jackfield.component import Component
from jackfield.types import Transition

_component = Component(app.Policy, slot_extraction, "extract", Transition)
Lifecycle = _component.Lifecycle


class SlotExtraction(exports.SlotExtraction):
    def extract(self, turn, recent, dialog):
        return _component.call(turn, recent, dialog)
