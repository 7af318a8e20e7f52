#!/usr/bin/env python3
"""How far this host and llama.cpp are from full precision on the same file, over a text.

    cargo build --release --workspace --examples
    python distance.py FILE.gguf [FILE.gguf …] [--text TEXT] [--logits PROGRAM] [--store ../distance.json]

Full precision is exact.py: the file's own weights, widened, and every activation a 32-bit float. Printed for each file, over
the first 2,048 tokens of the text (ARCHITECTURE.md): the mean of KL(exact ‖ other) over all positions, its standard error and
99th percentile, how often the most likely token is the same, and perplexity. llama.cpp runs as the bench has it: flash
attention, an F16 cache, batches of 512. That it agrees with exact.py when it is given the widened weights and an F32 cache is
printed too: two implementations that share nothing.

`--store` keeps what the test needs, for the first file: the tokens, and at every fourth position the sixteen most likely
tokens of exact.py with their log-probabilities; and how far llama.cpp is from those, as far as sixteen tell.
"""

import argparse
import pathlib
import subprocess
import tempfile

import numpy

import llama
from exact import Exact

ROOT = pathlib.Path(__file__).resolve().parents[3]
TOKENS = 2048
EVERY, BEST = 4, 16


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=pathlib.Path, metavar="FILE.gguf")
    parser.add_argument("--text", type=pathlib.Path, default=ROOT / "ARCHITECTURE.md")
    parser.add_argument("--logits", type=pathlib.Path, default=ROOT / "target/release/examples/logits", metavar="PROGRAM")
    parser.add_argument("--store", type=pathlib.Path, metavar="FILE")
    args = parser.parse_args()
    print(f"{'file':<40}{'logits of':<24}{'mean KL':>10}{'±':>9}{'99 %':>9}{'same best':>11}{'perplexity':>12}")
    for file in args.files:
        ids = tokenise(file, args.text)
        exact = log_softmax(Exact(file).logits(ids))
        report(file, "exact", exact, exact, ids)
        report(file, "ours", exact, log_softmax(ours(args.logits, file, ids)), ids)
        peer = log_softmax(theirs(file, ids, flash=True, kv=llama.F16))
        report(file, "llama.cpp", exact, peer, ids)
        if args.store and file == args.files[0]:
            store(args.store, file, ids, exact, peer)
        with tempfile.TemporaryDirectory() as folder:
            wide = pathlib.Path(folder) / "wide.gguf"
            llama.quantize(file, wide, 0)
            report(file, "llama.cpp, widened", exact, log_softmax(theirs(wide, ids, flash=False, kv=llama.F32)), ids)


def tokenise(file, text):
    with llama.loaded(file, vocab_only=True) as model:
        return model.tokenize(text.read_text(encoding="utf-8"))[:TOKENS]


def ours(program, file, ids):
    with tempfile.TemporaryDirectory() as folder:
        given, out = pathlib.Path(folder) / "ids", pathlib.Path(folder) / "logits"
        given.write_text(" ".join(map(str, ids)))
        subprocess.run([program, file, given, out], check=True)
        return numpy.fromfile(out, dtype="<f4").reshape(len(ids), -1)


def theirs(file, ids, flash, kv):
    with llama.loaded(file) as model, llama.context(model, TOKENS, threads=2, flash=flash, kv=kv) as ctx:
        return ctx.feed(ids, every=True)


def log_softmax(logits):
    """In place, row by row: the arrays are large."""
    for row in logits:
        wide = row.astype(numpy.float64)
        row[:] = wide - (wide.max() + numpy.log(numpy.exp(wide - wide.max()).sum()))
    return logits


def report(file, name, exact, other, ids):
    kl = numpy.array([(numpy.exp(p, dtype=numpy.float64) * (p.astype(numpy.float64) - q)).sum() for p, q in zip(exact, other)])
    same = (exact.argmax(axis=1) == other.argmax(axis=1)).mean()
    told = -numpy.mean([row[following] for row, following in zip(other, ids[1:])])
    print(f"{file.name[-38:]:<40}{name:<24}{kl.mean():>10.2e}{kl.std() / len(kl) ** 0.5:>9.0e}{numpy.quantile(kl, 0.99):>9.1e}"
          f"{same:>11.4f}{numpy.exp(told):>12.3f}", flush=True)


def store(out, file, ids, exact, peer):
    cases, distances = [], []
    for at in range(0, len(ids), EVERY):
        best = numpy.argsort(-exact[at], kind="stable")[:BEST]
        known = [round(float(it), 4) for it in exact[at][best]]
        cases.append([at, [int(it) for it in best], known])
        distances.append(coarse(numpy.array(known), peer[at][best].astype(numpy.float64)))
    meta = {"made_by": "make/distance.py", "file_sha256": llama.sha256(file), "gguf": "0.19.0", "numpy": numpy.__version__,
            **llama.version(), "llama_cpp_mean_kl": float(f"{numpy.mean(distances):.3e}"), "tokens": ids}
    lines = ['{"meta":' + llama.dump(meta) + ',"cases":[', ",\n".join(llama.dump(it) for it in cases), "]}"]
    out.write_bytes(("\n".join(lines) + "\n").encode("utf-8"))


def coarse(exact, other):
    """KL of the distributions in which all that is not among the best is one."""
    p, q = numpy.exp(exact), numpy.exp(other)
    rest = (1 - p.sum(), 1 - q.sum())
    return (p * (exact - other)).sum() + (rest[0] * numpy.log(rest[0] / rest[1]) if min(rest) > 0 else 0)


if __name__ == "__main__":
    main()
