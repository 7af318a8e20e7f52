#!/usr/bin/env python3
"""Renders every template of tests/golden/templates with every conversation, through transformers itself.

    python templates.py ../templates

Rewrites expected.json in that folder. A rendering that raises is recorded as {"error": ...}. The clock that
`strftime_now` reads is fixed. Needs: transformers, jinja2.
"""

import datetime
import json
import pathlib
import sys

import jinja2
import transformers
from transformers.utils import chat_template_utils

NOW = datetime.datetime(2025, 3, 4, 15, 9, 26)

# The special tokens that each model's tokenizer configuration hands to its template.
TOKENS = {
    "deepseek-r1-distill-qwen": ("<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>"),
    "glm-4.6": ("", "<|endoftext|>"),
    "gpt-oss": ("<|startoftext|>", "<|return|>"),
    "granite-3.3": ("<|end_of_text|>", "<|end_of_text|>"),
    "mistral-7b-v0.2": ("<s>", "</s>"),
    "mistral-nemo": ("<s>", "</s>"),
    "mistral-small-3.2": ("<s>", "</s>"),
    "phi-3.5-mini": ("<s>", "<|endoftext|>"),
    "phi-4": ("<|endoftext|>", "<|im_end|>"),
    "qwen2.5": ("", "<|im_end|>"),
    "qwen3": ("", "<|im_end|>"),
    "qwen3-coder": ("", "<|im_end|>"),
    "smollm2": ("<|im_start|>", "<|im_end|>"),
    "smollm3": ("<|begin_of_text|>", "<|im_end|>"),
}


class FixedClock(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return NOW


def render(template, tokens, conversation):
    try:
        texts, _ = chat_template_utils.render_jinja_template(
            [conversation["messages"]],
            tools=conversation.get("tools"),
            chat_template=template,
            add_generation_prompt=conversation["add_generation_prompt"],
            bos_token=tokens[0],
            eos_token=tokens[1],
        )
        return {"text": texts[0]}
    except Exception as error:  # whatever a template can raise is its answer
        return {"error": f"{type(error).__name__}: {error}"}


def main():
    folder = pathlib.Path(sys.argv[1])
    chat_template_utils.datetime = FixedClock
    conversations = json.loads((folder / "conversations.json").read_text(encoding="utf-8"))
    expected = {}
    for path in sorted(folder.glob("*.jinja")):
        template = path.read_bytes().decode("utf-8")
        tokens = TOKENS[path.stem]
        cases = {name: render(template, tokens, it) for name, it in conversations.items()}
        expected[path.stem] = {"bos_token": tokens[0], "eos_token": tokens[1], "cases": cases}
    out = {
        "made_by": "make/templates.py",
        "transformers": transformers.__version__,
        "jinja2": jinja2.__version__,
        "now": NOW.isoformat(),
        "templates": expected,
    }
    text = json.dumps(out, ensure_ascii=False, indent=1) + "\n"
    (folder / "expected.json").write_bytes(text.encode("utf-8"))


main()
