#!/usr/bin/env python3
"""A model of random weights whose every row is whole blocks of 256, so that it can be had in each quantisation.

    synthetic.py BASE.gguf OUT.gguf

The default model's rows of 576 cannot be K-quants. This one does as much work a token (120 M multiply-adds against 106 M), with
heads and feed-forward in the same proportions, and takes tokenizer and template from BASE. What it says is nonsense; its
weights have the spread of trained ones, so that what comes out of each layer does, too. F16; llama-quantize makes the rest.
"""

import sys

import gguf
import numpy

LAYERS, WIDTH, FFN, HEADS, KV_HEADS, HEAD = 24, 512, 2048, 8, 4, 64
OTHER = {
    "general.name": "Synthetic 120M", "general.file_type": 1, "llama.block_count": LAYERS, "llama.embedding_length": WIDTH,
    "llama.feed_forward_length": FFN, "llama.attention.head_count": HEADS, "llama.attention.head_count_kv": KV_HEADS,
}
LEFT_OUT = ("GGUF.", "general.architecture", "general.basename", "general.finetune", "general.size_label",
            "general.quantization_version")


def main():
    base, out = sys.argv[1:]
    reader = gguf.GGUFReader(base)
    writer = gguf.GGUFWriter(out, "llama")
    for key, field in reader.fields.items():
        if not key.startswith(LEFT_OUT):
            value = OTHER.get(key, field.contents())
            writer.add_key_value(key, value, field.types[0], field.types[-1] if len(field.types) > 1 else None)
    kinds = numpy.array(reader.fields["tokenizer.ggml.token_type"].contents())
    for name, values in tensors(kinds):
        writer.add_tensor(name, values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def tensors(kinds):
    random = numpy.random.default_rng(512)

    def matrix(rows, cols, size=1.0):
        return (random.standard_normal((rows, cols), dtype=numpy.float32) * (size / cols**0.5)).astype(numpy.float16)

    ones = numpy.ones(WIDTH, dtype=numpy.float32)
    embedding = matrix(len(kinds), WIDTH)
    # Control tokens have no direction, so that none is ever said.
    embedding[kinds != gguf.TokenType.NORMAL] = 0
    yield "token_embd.weight", embedding
    added = (2 * LAYERS) ** -0.5
    for layer in range(LAYERS):
        p = f"blk.{layer}."
        yield p + "attn_norm.weight", ones
        yield p + "attn_q.weight", matrix(HEADS * HEAD, WIDTH)
        yield p + "attn_k.weight", matrix(KV_HEADS * HEAD, WIDTH)
        yield p + "attn_v.weight", matrix(KV_HEADS * HEAD, WIDTH)
        yield p + "attn_output.weight", matrix(WIDTH, HEADS * HEAD, added)
        yield p + "ffn_norm.weight", ones
        yield p + "ffn_gate.weight", matrix(FFN, WIDTH)
        yield p + "ffn_up.weight", matrix(FFN, WIDTH)
        yield p + "ffn_down.weight", matrix(WIDTH, FFN, added)
    yield "output_norm.weight", ones


if __name__ == "__main__":
    main()
