"""What componentize-py makes the component of a compressor of."""

import sys

# The author's folder is where modules come from: nothing is written there.
sys.dont_write_bytecode = True

import app
from wit_world import exports
from wit_world.exports import compression

from jackfield.component import Component
from jackfield.types import Edit

_component = Component(app.Policy, compression, "compress", list[Edit])
Lifecycle = _component.Lifecycle


class Compression(exports.Compression):
    def compress(self, turn, parts, budget):
        return _component.call(turn, parts, budget)
