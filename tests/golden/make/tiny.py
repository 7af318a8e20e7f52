#!/usr/bin/env python3
"""Tiny random models, one for each architecture and quantisation, and llama.cpp's logits for them.

    python tiny.py SCRATCH_FOLDER ../tiny.json

The files are not stored: a test builds the same tensors from this rule.

- `stream(name)`: seed = FNV-1a 64 of the tensor's name; word k (from 0) = mix(seed + (k + 1) * 0x9E3779B97F4A7C15) with
  SplitMix64's `mix`; its bytes little end first.
- F32, F16, BF16 weights: element i = (byte i - 128) / 1024. Norms: 0.5 + byte i / 256. Biases: (byte i - 128) / 256.
  rope_freqs: 1 + byte i / 32. All are exact in their type.
- Quantised weights: the stream itself is the blocks, random quants and random block scales alike; then each f16 field at
  offset o of a block (SCALES below) becomes base * (1 + (byte o of the block & 3) / 4).

Two runs of llama.cpp for each: on the file as it is (8-bit activations, F16 cache) and on the same weights widened to F32
by the gguf package's own dequantiser (F32 cache). The second is the reference and is stored; how far the first is from
it, relative to the spread of the logits, is stored as `noise`.
"""

import pathlib
import sys

import gguf
import numpy
from gguf import GGMLQuantizationType as T

import gguf_files
import llama

LAYERS, WIDTH, FFN, VOCAB, PROMPT = 2, 256, 512, 260, 48
KEPT = [0, PROMPT - 1]  # the positions whose logits are stored

# type: [(offset of an f16 in the block, base)]
SCALES = {
    T.Q4_0: [(0, 2.0**-6)],
    T.Q4_1: [(0, 2.0**-6), (2, -7.5 * 2.0**-6)],
    T.Q5_0: [(0, 2.0**-7)],
    T.Q5_1: [(0, 2.0**-7), (2, -15.5 * 2.0**-7)],
    T.Q8_0: [(0, 2.0**-10)],
    T.Q2_K: [(80, 2.0**-8), (82, 1.5 * 2.0**-8)],
    T.Q3_K: [(108, 2.0**-9)],
    T.Q4_K: [(0, 2.0**-12), (2, 7.5 * 2.0**-12)],
    T.Q5_K: [(0, 2.0**-13), (2, 15.5 * 2.0**-13)],
    T.Q6_K: [(208, 2.0**-14)],
}
PLAIN = [T.F32, T.F16, T.BF16]

# name: architecture, heads, kv heads, head width, tied head, further metadata, extra tensors
SHAPES = {
    "llama": dict(architecture="llama", heads=4, kv_heads=2, head=64, tied=True, more={"rope.dimension_count": 64}),
    "llama-freqs": dict(
        architecture="llama", heads=4, kv_heads=4, head=64, tied=False, freqs=True,
        more={"rope.dimension_count": 64, "rope.freq_base": 500000.0},
    ),
    "llama-linear": dict(
        architecture="llama", heads=4, kv_heads=1, head=64, tied=True,
        more={"rope.dimension_count": 64, "rope.scaling.type": "linear", "rope.scaling.factor": 4.0},
    ),
    "llama-narrow": dict(
        architecture="llama", heads=4, kv_heads=2, head=32, tied=False,
        more={"rope.dimension_count": 32, "attention.key_length": 32, "attention.value_length": 32},
    ),
    "qwen2": dict(architecture="qwen2", heads=4, kv_heads=2, head=64, tied=False, bias=True, more={"rope.freq_base": 1000000.0}),
    "qwen3": dict(
        architecture="qwen3", heads=4, kv_heads=2, head=128, tied=True, norms=True,
        more={"rope.freq_base": 1000000.0, "attention.key_length": 128, "attention.value_length": 128},
    ),
}
CASES = [("llama", kind) for kind in [*PLAIN, *SCALES]]
CASES += [(name, kind) for name in ("qwen2", "qwen3") for kind in (T.F32, T.F16, T.Q4_1, T.Q8_0, T.Q4_K, T.Q6_K)]
CASES += [(name, T.F32) for name in ("llama-freqs", "llama-linear", "llama-narrow")]


def stream(name, count):
    seed = 0xCBF29CE484222325
    for byte in name.encode():
        seed = ((seed ^ byte) * 0x100000001B3) % 2**64
    with numpy.errstate(over="ignore"):
        z = numpy.uint64(seed) + numpy.arange(1, (count + 7) // 8 + 1, dtype=numpy.uint64) * numpy.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> numpy.uint64(30))) * numpy.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> numpy.uint64(27))) * numpy.uint64(0x94D049BB133111EB)
        z = z ^ (z >> numpy.uint64(31))
    return z.astype("<u8").view(numpy.uint8)[:count].copy()


def floats(name, count, offset, scale):
    return ((stream(name, count).astype(numpy.float32) + numpy.float32(offset)) * numpy.float32(scale)).astype(numpy.float32)


def weight(name, kind, count):
    """The bytes of a matrix of `count` elements."""
    if kind in PLAIN:
        values = floats(name, count, -128, 1 / 1024)
        if kind == T.F32:
            return values.view(numpy.uint8)
        if kind == T.F16:
            return values.astype(numpy.float16).view(numpy.uint8)
        return (values.view(numpy.uint32) >> 16).astype(numpy.uint16).view(numpy.uint8)
    elements, size = gguf.GGML_QUANT_SIZES[kind]
    blocks = stream(name, count // elements * size).reshape(-1, size)
    for offset, base in SCALES[kind]:
        factor = 1 + (blocks[:, offset] & 3).astype(numpy.float32) / 4
        blocks[:, offset : offset + 2] = (factor * numpy.float32(base)).astype("<f2").view(numpy.uint8).reshape(-1, 2)
    return blocks.reshape(-1)


def tensors(shape, kind, widen):
    """[(name, shape innermost first, type, bytes)]; `widen` turns the matrices into F32."""
    out = []

    def matrix(name, cols, rows):
        data = weight(name, kind, cols * rows)
        if widen and kind != T.F32:
            wide = gguf.quants.dequantize(data.reshape(rows, -1), kind).astype(numpy.float32)
            out.append((name, [cols, rows], T.F32, numpy.ascontiguousarray(wide).view(numpy.uint8).reshape(-1)))
        else:
            out.append((name, [cols, rows], kind, data))

    def vector(name, count, offset, scale):
        out.append((name, [count], T.F32, floats(name, count, offset, scale).view(numpy.uint8)))

    q, kv = shape["heads"] * shape["head"], shape["kv_heads"] * shape["head"]
    matrix("token_embd.weight", WIDTH, VOCAB)
    for layer in range(LAYERS):
        p = f"blk.{layer}."
        vector(p + "attn_norm.weight", WIDTH, 128, 1 / 256)
        matrix(p + "attn_q.weight", WIDTH, q)
        matrix(p + "attn_k.weight", WIDTH, kv)
        matrix(p + "attn_v.weight", WIDTH, kv)
        matrix(p + "attn_output.weight", q, WIDTH)
        if shape.get("bias"):
            vector(p + "attn_q.bias", q, -128, 1 / 256)
            vector(p + "attn_k.bias", kv, -128, 1 / 256)
            vector(p + "attn_v.bias", kv, -128, 1 / 256)
        if shape.get("norms"):
            vector(p + "attn_q_norm.weight", shape["head"], 128, 1 / 256)
            vector(p + "attn_k_norm.weight", shape["head"], 128, 1 / 256)
        vector(p + "ffn_norm.weight", WIDTH, 128, 1 / 256)
        matrix(p + "ffn_gate.weight", WIDTH, FFN)
        matrix(p + "ffn_up.weight", WIDTH, FFN)
        matrix(p + "ffn_down.weight", FFN, WIDTH)
    vector("output_norm.weight", WIDTH, 128, 1 / 256)
    if not shape["tied"]:
        matrix("output.weight", WIDTH, VOCAB)
    if shape.get("freqs"):
        vector("rope_freqs.weight", shape["head"] // 2, 32, 1 / 32)
    return out


def byte_tokens():
    """GPT-2's alphabet for the 256 bytes, in byte order, one merged token and three control tokens."""
    shown = [*range(33, 127), *range(161, 173), *range(174, 256)]
    hidden = [b for b in range(256) if b not in shown]
    return [chr(b) if b in shown else chr(256 + hidden.index(b)) for b in range(256)] + ["ab", "<|a|>", "<|b|>", "<|c|>"]


def write(path, shape, kind, widen):
    values = gguf_files.shape_values(
        shape["architecture"], 512, WIDTH, FFN, LAYERS, shape["heads"], shape["kv_heads"], **shape["more"]
    )
    values |= {
        "tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": "gpt-2", "tokenizer.ggml.tokens": byte_tokens(),
        "tokenizer.ggml.token_type": [1] * 257 + [3] * 3, "tokenizer.ggml.merges": ["a b"],
        "tokenizer.ggml.bos_token_id": 257, "tokenizer.ggml.eos_token_id": 258,
    }
    gguf_files.write(path, shape["architecture"], values, tensors(shape, kind, widen))


def logits(path, prompt, kv):
    with llama.loaded(path) as model, llama.context(model, 128, kv=kv) as ctx:
        return ctx.feed(prompt, every=True)


def main():
    scratch, out = map(pathlib.Path, sys.argv[1:])
    prompt = [int(it) for it in stream("prompt", PROMPT)]
    cases = []
    for name, kind in CASES:
        path = scratch / "tiny.gguf"
        write(path, SHAPES[name], kind, widen=True)
        exact = logits(path, prompt, llama.F32)
        write(path, SHAPES[name], kind, widen=False)
        own = logits(path, prompt, llama.F16)
        noise = float(numpy.sqrt(((own - exact) ** 2).mean()) / exact.std())
        print(f"{name:14} {kind.name:5} spread {exact.std():.3f} noise {noise:.5f}")
        rows = [[round(float(x), 3) for x in exact[i]] for i in KEPT]
        cases.append({"shape": name, "type": kind.name, "noise": round(noise, 5), "argmax": exact.argmax(axis=1).tolist(), "logits": rows})
    meta = {"made_by": "make/tiny.py", "gguf": "0.19.0", **llama.version(), "prompt": prompt, "kept": KEPT}
    lines = ['{"meta":' + llama.dump(meta) + ',"cases":[', ",\n".join(llama.dump(it) for it in cases), "]}"]
    out.write_bytes(("\n".join(lines) + "\n").encode("utf-8"))


if __name__ == "__main__":
    main()
