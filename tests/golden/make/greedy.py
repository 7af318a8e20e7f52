#!/usr/bin/env python3
"""Greedy continuations by llama.cpp of the prompts in prompts.py.

    python greedy.py MODEL.gguf ../greedy.json
    python greedy.py MODEL.gguf --noise SCRATCH_FOLDER

The second form writes nothing into the repository: it prints how far llama.cpp's own configurations are from one
another (batch of 1 or 512, flash attention, F32 cache, and the same weights widened to F32, so that activations are
not rounded to 8 bits), which is what the tolerances of the tests rest on. SCRATCH_FOLDER gets the F32 file (540 MB).

User text is tokenised as text: control tokens are parsed in the template's own text only. 64 tokens each, the
largest logit at every step, going on through any end token.
"""

import json
import pathlib
import sys

import jinja2
import numpy

import llama
import prompts

STEPS = 64
TEMPLATE = pathlib.Path(__file__).parent.parent / "templates" / "smollm2.jinja"
FLAGS = {"n_threads": 1, "n_batch": 512, "n_ubatch": 512, "flash_attn": False, "type_k": "f16", "type_v": "f16"}


def chat_ids(model, messages):
    """Renders with marks around what users wrote, and tokenises it apart from the template's text.

    The marks are private-use characters, which the template passes through. llama.cpp merges nothing across a
    control token, but a template's text and a user's do touch ("user\\n" + content), so those two are joined again
    before tokenising: only the control tokens themselves are cut out.
    """
    open_mark, close_mark = "\ue123", "\ue124"
    environment = jinja2.Environment(trim_blocks=True, lstrip_blocks=True)
    template = environment.from_string(TEMPLATE.read_bytes().decode("utf-8"))
    marked = [{**it, "content": open_mark + it["content"] + close_mark} for it in messages]
    text = template.render(messages=marked, add_generation_prompt=True)
    ids, plain, inside, at = [], "", False, 0
    controls = {"<|im_start|>": 1, "<|im_end|>": 2}
    while at < len(text):
        control = next((it for it in controls if text.startswith(it, at)), None)
        if text[at] in (open_mark, close_mark):
            inside, at = text[at] == open_mark, at + 1
        elif control and not inside:
            ids += model.tokenize(plain) + [controls[control]]
            plain, at = "", at + len(control)
        else:
            plain, at = plain + text[at], at + 1
    return ids + model.tokenize(plain)


def all_prompts(model):
    for name, messages in prompts.CHATS.items():
        yield {"name": name, "messages": messages, "prompt": chat_ids(model, messages)}
    for name, text in prompts.RAW.items():
        yield {"name": name, "text": text, "prompt": model.tokenize(text)}


def number(x, digits=3):
    return round(float(x), digits)


def greedy(ctx, prompt):
    """Tokens, gap to the second at each step, the second, and the five largest logits of the first step."""
    ctx.clear()
    logits = ctx.feed(prompt)
    tokens, gaps, seconds = [], [], []
    five = [[int(i), number(logits[i])] for i in numpy.argsort(-logits, kind="stable")[:5]]
    for _ in range(STEPS):
        first, second = numpy.argsort(-logits, kind="stable")[:2]
        tokens.append(int(first))
        seconds.append(int(second))
        gaps.append(number(logits[first] - logits[second]))
        logits = ctx.feed([int(first)])
    return {"tokens": tokens, "seconds": seconds, "gaps": gaps, "top5": five}


def reference(path, out):
    with llama.loaded(path) as model, llama.context(model, 4096) as ctx:
        cases = []
        for case in all_prompts(model):
            cases.append({**case, **greedy(ctx, case["prompt"])})
            print(case["name"], len(case["prompt"]), ctx_text(model, cases[-1]["tokens"][:12]), flush=True)
    meta = {"made_by": "make/greedy.py", "file_sha256": llama.sha256(path), "steps": STEPS, "flags": FLAGS, **llama.version()}
    lines = ['{"meta":' + llama.dump(meta) + ',"cases":[', ",\n".join(llama.dump(it) for it in cases), "]}"]
    out.write_bytes(("\n".join(lines) + "\n").encode("utf-8"))


def ctx_text(model, ids):
    return [llama.api.llama_vocab_get_text(model.vocab, it).decode() for it in ids]


def forced(path, cases, **options):
    """Logits at the 64 steps of each case with the reference's tokens fed: [cases * 64, vocab]."""
    rows = []
    with llama.loaded(path) as model, llama.context(model, 4096, **options) as ctx:
        for case in cases:
            ctx.clear()
            rows.append(ctx.feed(case["prompt"] + case["tokens"][:-1], every=True)[-STEPS:])
    return numpy.concatenate(rows)


def noise(path, scratch):
    stored = pathlib.Path(__file__).parent.parent / "greedy.json"
    cases = [it for it in json.loads(stored.read_text(encoding="utf-8"))["cases"] if len(it["prompt"]) < 600][::3]
    wide = scratch / "f32.gguf"
    if not wide.exists():
        llama.quantize(path, wide, 0)
    base = forced(path, cases)
    kinds = {
        "batch 1": (path, {"batch": 1}),
        "flash attention": (path, {"flash": True}),
        "F32 cache": (path, {"kv": llama.F32}),
        "weights widened to F32": (wide, {}),
    }
    order = numpy.argsort(-base, axis=1, kind="stable")[:, :2]
    rows = numpy.arange(len(base))
    gap = base[rows, order[:, 0]] - base[rows, order[:, 1]]
    print(f"{len(base)} steps; gap below 0.1: {(gap < 0.1).mean():.3f}, 0.25: {(gap < 0.25).mean():.3f}, 0.5: {(gap < 0.5).mean():.3f}")
    for name, (file, options) in kinds.items():
        other = forced(file, cases, **options)
        moved = numpy.abs((other - base)[rows, order[:, 0]] - (other - base)[rows, order[:, 1]])
        parted = other.argmax(axis=1) != order[:, 0]
        worst = gap[parted].max() if parted.any() else 0.0
        second = (other.argmax(axis=1)[parted] == order[parted, 1]).mean() if parted.any() else 1.0
        print(
            f"{name}: logits rms {numpy.sqrt(((other - base) ** 2).mean()):.4f} max {numpy.abs(other - base).max():.3f}; "
            f"gap moved rms {numpy.sqrt((moved**2).mean()):.4f} p99 {numpy.quantile(moved, 0.99):.3f} max {moved.max():.3f}; "
            f"parted {parted.mean():.4f} of steps, largest gap there {worst:.3f}, to the second {second:.3f}",
            flush=True,
        )


def main():
    path = pathlib.Path(sys.argv[1])
    if sys.argv[2] == "--noise":
        noise(path, pathlib.Path(sys.argv[3]))
    else:
        reference(path, pathlib.Path(sys.argv[2]))


if __name__ == "__main__":
    main()
