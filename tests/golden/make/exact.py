"""The llama architecture in numpy, in 32-bit floats throughout: what a file's weights mean, with nothing rounded on the way.

Weights are widened by the gguf package's own dequantiser. Written from the architecture's definition, for a test's sake:
one sequence, no cache, nothing fast.
"""

import gguf
import numpy


class Exact:
    def __init__(self, path):
        self.reader = gguf.GGUFReader(path)
        self.tensors = {it.name: it for it in self.reader.tensors}
        self.layers = self.number("block_count")
        self.heads = self.number("attention.head_count")
        self.kv_heads = self.number("attention.head_count_kv")
        self.width = self.number("embedding_length")
        self.head = self.width // self.heads
        self.eps = self.number("attention.layer_norm_rms_epsilon")
        self.base = self.number("rope.freq_base")

    def number(self, key):
        return self.reader.fields[f"llama.{key}"].contents()

    def weight(self, name):
        """[rows, cols] or [len]."""
        it = self.tensors[name]
        wide = gguf.quants.dequantize(it.data, it.tensor_type).astype(numpy.float32)
        return wide.reshape([int(n) for n in reversed(it.shape)])

    def logits(self, tokens):
        """[tokens, vocab]"""
        embedding = self.weight("token_embd.weight")
        x = embedding[tokens]
        turn = self.turns(len(tokens))
        for layer in range(self.layers):
            of = lambda part: self.weight(f"blk.{layer}.{part}.weight")  # noqa: E731
            normed = self.norm(x, of("attn_norm"))
            q = self.split(normed @ of("attn_q").T, self.heads)
            k = self.split(normed @ of("attn_k").T, self.kv_heads)
            v = self.split(normed @ of("attn_v").T, self.kv_heads)
            x = x + self.attend(self.turned(q, turn), self.turned(k, turn), v) @ of("attn_output").T
            normed = self.norm(x, of("ffn_norm"))
            gate = normed @ of("ffn_gate").T
            x = x + (gate / (1 + numpy.exp(-gate)) * (normed @ of("ffn_up").T)) @ of("ffn_down").T
        head = self.weight("output.weight") if "output.weight" in self.tensors else embedding
        return self.norm(x, self.weight("output_norm.weight")) @ head.T

    def norm(self, x, weight):
        return x / numpy.sqrt((x * x).mean(axis=-1, keepdims=True) + self.eps) * weight

    def split(self, x, heads):
        """[heads, tokens, head]"""
        return x.reshape(len(x), heads, self.head).transpose(1, 0, 2)

    def turns(self, count):
        """Cosines and sines, [tokens, head / 2] each."""
        frequencies = float(self.base) ** (-numpy.arange(0, self.head, 2) / self.head)
        angles = numpy.arange(count)[:, None] * frequencies[None, :]
        return numpy.cos(angles).astype(numpy.float32), numpy.sin(angles).astype(numpy.float32)

    @staticmethod
    def turned(x, turn):
        """Neighbours are a pair: the order of rows in GGUF files of this architecture."""
        (cos, sin), (a, b) = turn, (x[..., 0::2], x[..., 1::2])
        out = numpy.empty_like(x)
        out[..., 0::2], out[..., 1::2] = a * cos - b * sin, a * sin + b * cos
        return out

    def attend(self, q, k, v):
        """[tokens, heads * head]"""
        count = q.shape[1]
        later = numpy.triu(numpy.full((count, count), -numpy.inf, dtype=numpy.float32), 1)
        shared = self.heads // self.kv_heads
        out = numpy.empty_like(q)
        for head in range(self.heads):
            scores = q[head] @ k[head // shared].T / numpy.float32(self.head**0.5) + later
            weights = numpy.exp(scores - scores.max(axis=1, keepdims=True))
            out[head] = weights / weights.sum(axis=1, keepdims=True) @ v[head // shared]
        return out.transpose(1, 0, 2).reshape(count, -1)
