#!/usr/bin/env python3
"""Two small vocabularies, one in SentencePiece's manner and one byte-level BPE, and what llama.cpp makes of 300 strings.

    python vocab.py LICENSE SCRATCH_FOLDER ..

Writes spm.jsonl and bpe.jsonl. The first line of each holds the vocabulary and the variants of metadata that were
tried; each other line is [text, [variants, ids], ...]: the variants (numbers) that gave the same ids stand together.

The byte-level BPE is trained *without* splitting, so its merges run across spaces, digits and punctuation: wherever a
pre-tokeniser draws a boundary, the ids show it. Both vocabularies also hold control tokens, a user-defined token, and
words that no merge leads to (llama3's `ignore_merges` finds them, the others do not).
"""

import io
import json
import pathlib
import sys

import sentencepiece
import tokenizers

import gguf_files
import llama
import prompts
import texts

NORMAL, UNKNOWN, CONTROL, USER, BYTE = 1, 2, 3, 4, 6
ADDED = [("<|im_start|>", CONTROL), ("<|im_end|>", CONTROL), ("<think>", USER)]
UNREACHABLE = ["ĠParis", "Hello", "Ġworld", "2024", "ä½łå¥½"]
PRE = [
    "default", "gpt-2", "smollm", "llama-bpe", "qwen2", "tekken", "deepseek-llm", "deepseek-coder", "deepseek-v3", "deepseek-r1-qwen",
    "starcoder", "refact", "command-r", "falcon", "olmo", "dbrx", "smaug-bpe", "stablelm2", "gpt-4o", "qwen35", "glm4", "chatglm-bpe",
    "minerva-7b", "megrez", "exaone", "viking", "codeshell", "seed-coder", "hunyuan", "bloom",
]
SPM = [{"add_space_prefix": True, "add_bos_token": True}, {"add_space_prefix": False, "add_bos_token": False}]


def corpus(licence):
    return [*licence.read_text().split("\n\n"), *prompts.long_text(24).split("\n\n"), *texts.by_hand()]


def train_spm(lines):
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(line for text in lines for line in text.split("\n") if line and "\0" not in line),
        model_writer=model, model_type="bpe", vocab_size=700, byte_fallback=True, character_coverage=0.985, split_digits=True,
        normalization_rule_name="identity", remove_extra_whitespaces=False, allow_whitespace_only_pieces=True, num_threads=1,
        minloglevel=2,
    )
    it = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    tokens, scores, types = [], [], []
    for i in range(it.get_piece_size()):
        tokens.append(it.id_to_piece(i))
        scores.append(it.get_score(i))
        types.append(BYTE if it.is_byte(i) else UNKNOWN if it.is_unknown(i) else CONTROL if it.is_control(i) else NORMAL)
    for token, kind in ADDED:
        tokens.append(token)
        scores.append(-1000.0)
        types.append(kind)
    return {"tokens": tokens, "scores": scores, "types": types}


def train_bpe(lines):
    it = tokenizers.Tokenizer(tokenizers.models.BPE())
    it.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    alphabet = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    trainer = tokenizers.trainers.BpeTrainer(vocab_size=700, min_frequency=2, initial_alphabet=alphabet, show_progress=False)
    it.train_from_iterator(lines, trainer)
    trained = json.loads(it.to_str())["model"]
    tokens = sorted(trained["vocab"], key=trained["vocab"].get)
    merges = [m if isinstance(m, str) else " ".join(m) for m in trained["merges"]]
    types = [NORMAL] * len(tokens)
    for token in UNREACHABLE:
        if token not in tokens:
            tokens.append(token)
            types.append(NORMAL)
    for token, kind in ADDED:
        tokens.append(token)
        types.append(kind)
    return {"tokens": tokens, "merges": merges, "types": types}


def ids_of(path, values, strings, add_special=False):
    shape = gguf_files.shape_values("llama", 512, 32, 32, 1, 1, 1, **{"rope.dimension_count": 32})
    gguf_files.write(path, "llama", {**shape, **values})
    with llama.loaded(path, vocab_only=True) as model:
        return [model.tokenize(text, add_special=add_special) for text in strings]


def grouped(text, results):
    groups = {}
    for variant, ids in enumerate(results):
        groups.setdefault(tuple(ids), []).append(variant)
    return [text, *[[variants, list(ids)] for ids, variants in groups.items()]]


def save(path, header, strings, results):
    lines = [{"made_by": "make/vocab.py", **llama.version(), **header}]
    lines += [grouped(text, [it[i] for it in results]) for i, text in enumerate(strings)]
    path.write_bytes("".join(llama.dump(line) + "\n" for line in lines).encode("utf-8"))


def main():
    licence, scratch, out = map(pathlib.Path, sys.argv[1:])
    lines, strings = corpus(licence), texts.strings(300)

    spm = train_spm([*lines[: -len(texts.by_hand())], *texts.ENGLISH, *texts.CHINESE])  # the rest falls back to bytes
    values = {
        "tokenizer.ggml.model": "llama", "tokenizer.ggml.tokens": spm["tokens"], "tokenizer.ggml.scores": spm["scores"],
        "tokenizer.ggml.token_type": spm["types"], "tokenizer.ggml.bos_token_id": 1, "tokenizer.ggml.eos_token_id": 2,
        "tokenizer.ggml.unknown_token_id": 0,
    }
    results = [
        ids_of(scratch / "spm.gguf", {**values, **{f"tokenizer.ggml.{k}": v for k, v in it.items()}}, strings) for it in SPM
    ]
    save(out / "spm.jsonl", {"variants": SPM, **spm}, strings, results)

    bpe = train_bpe(lines)
    values = {
        "tokenizer.ggml.model": "gpt2", "tokenizer.ggml.tokens": bpe["tokens"], "tokenizer.ggml.merges": bpe["merges"],
        "tokenizer.ggml.token_type": bpe["types"], "tokenizer.ggml.bos_token_id": bpe["tokens"].index("<|im_start|>"),
        "tokenizer.ggml.eos_token_id": bpe["tokens"].index("<|im_end|>"), "tokenizer.ggml.add_bos_token": False,
    }
    results = [ids_of(scratch / "bpe.gguf", {**values, "tokenizer.ggml.pre": pre}, strings) for pre in PRE]
    save(out / "bpe.jsonl", {"variants": PRE, **bpe}, strings, results)
    shown = {pre: sum(map(len, it)) for pre, it in zip(PRE, results)}
    print(len(spm["tokens"]), len(bpe["tokens"]), len(bpe["merges"]), shown)


if __name__ == "__main__":
    main()
