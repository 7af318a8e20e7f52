#!/usr/bin/env python3
"""What llama.cpp makes of a thousand strings with the vocabulary of a GGUF file.

    python tokens.py MODEL.gguf ../tokens.jsonl

Special tokens are not parsed and nothing is added. The first line tells how it was made; each other line is
[text, ids].
"""

import pathlib
import sys

import llama
import texts


def main():
    path, out = map(pathlib.Path, sys.argv[1:])
    with llama.loaded(path, vocab_only=True) as model:
        lines = [{"made_by": "make/tokens.py", "file_sha256": llama.sha256(path), **llama.version()}]
        lines += [[text, model.tokenize(text)] for text in texts.strings(1000)]
    out.write_bytes("".join(llama.dump(line) + "\n" for line in lines).encode("utf-8"))


if __name__ == "__main__":
    main()
