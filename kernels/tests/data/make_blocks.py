"""Writes blocks.bin: random blocks of each GGML type and their values by an independent implementation.

    pip install gguf numpy && python make_blocks.py

For each type: u32 type number, u32 bytes, the bytes, u32 values, the values as f32; all little-endian.
"""

import pathlib
import struct

import numpy as np
from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType as Type
from gguf.quants import dequantize

VALUES = 1024
# Where a block keeps its 16-bit floats: random bits there could be infinite, so they get random numbers instead.
FLOATS = {
    Type.F16: [0], Type.BF16: [], Type.F32: [],
    Type.Q4_0: [0], Type.Q4_1: [0, 2], Type.Q5_0: [0], Type.Q5_1: [0, 2], Type.Q8_0: [0],
    Type.Q2_K: [80, 82], Type.Q3_K: [108], Type.Q4_K: [0, 2], Type.Q5_K: [0, 2], Type.Q6_K: [208],
}


def blocks(kind, rng):
    elems, size = GGML_QUANT_SIZES[kind]
    count = VALUES // elems
    if kind == Type.F32:
        return rng.normal(0, 1, count).astype(np.float32).view(np.uint8)
    if kind == Type.BF16:
        return rng.normal(0, 1, count).astype(np.float32).view(np.uint16)[1::2].copy().view(np.uint8)
    data = rng.integers(0, 256, (count, size), dtype=np.uint8)
    for at in FLOATS[kind]:
        scales = (rng.normal(0, 1, count) * 10.0 ** rng.integers(-4, 1, count)).astype(np.float16)
        data[:, at:at + 2] = scales.view(np.uint8).reshape(count, 2)
    return data.reshape(-1)


def main():
    rng = np.random.default_rng(20)
    with open(pathlib.Path(__file__).with_name("blocks.bin"), "wb") as out:
        for kind in FLOATS:
            data = blocks(kind, rng)
            values = np.ascontiguousarray(dequantize(data, kind), dtype=np.float32).reshape(-1)
            assert values.size == VALUES and np.isfinite(values).all(), kind
            out.write(struct.pack("<II", int(kind), data.size) + data.tobytes())
            out.write(struct.pack("<I", values.size) + values.tobytes())


main()
