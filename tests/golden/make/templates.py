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

CHATML = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
MISTRAL = ["<s>", "</s>", "[INST]", "[/INST]", "[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]", "[TOOL_RESULTS]", "[/TOOL_RESULTS]", "[TOOL_CALLS]"]

# What each model's tokenizer configuration hands to its template as bos_token and eos_token, and its control tokens.
TOKENS = {
    "deepseek-r1-distill-qwen": (
        "<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>", ["<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>", "<｜User｜>", "<｜Assistant｜>"],
    ),
    "glm-4.6": (None, "<|endoftext|>", ["<|endoftext|>", "[gMASK]", "<sop>", "<|system|>", "<|user|>", "<|assistant|>", "<|observation|>"]),
    "gpt-oss": (
        "<|startoftext|>", "<|return|>",
        ["<|startoftext|>", "<|return|>", "<|start|>", "<|end|>", "<|message|>", "<|channel|>", "<|constrain|>", "<|call|>"],
    ),
    "granite-3.3": (
        "<|end_of_text|>", "<|end_of_text|>",
        ["<|end_of_text|>", "<|start_of_role|>", "<|end_of_role|>", "<|tool_call|>", "<|start_of_cite|>", "<|end_of_cite|>"],
    ),
    "mistral-7b-v0.2": ("<s>", "</s>", ["<s>", "</s>"]),
    "mistral-nemo": ("<s>", "</s>", MISTRAL),
    "mistral-small-3.2": ("<s>", "</s>", [*MISTRAL, "[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]", "[CALL_ID]", "[ARGS]"]),
    "phi-3.5-mini": ("<s>", "<|endoftext|>", ["<s>", "<|endoftext|>", "<|system|>", "<|user|>", "<|assistant|>", "<|end|>"]),
    "phi-4": ("<|endoftext|>", "<|im_end|>", [*CHATML, "<|im_sep|>"]),
    "qwen2.5": (None, "<|im_end|>", CHATML),
    "qwen3": (None, "<|im_end|>", CHATML),
    "qwen3-coder": (None, "<|im_end|>", CHATML),
    "smollm2": ("<|im_start|>", "<|im_end|>", CHATML),
    "smollm3": ("<|begin_of_text|>", "<|im_end|>", ["<|begin_of_text|>", "<|end_of_text|>", "<|im_start|>", "<|im_end|>"]),
}


class FixedClock(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return NOW


def normalised(message):
    """What the host does before any template sees a message: no content is empty content, and the arguments of a
    call, which the API carries as JSON in a string, are an object."""
    message = json.loads(json.dumps(message))
    message["content"] = message["content"] or ""
    for call in message.get("tool_calls", []):
        if isinstance(call["function"]["arguments"], str):
            call["function"]["arguments"] = json.loads(call["function"]["arguments"])
    return message


def render(template, bos, eos, conversation):
    special = {"bos_token": bos, "eos_token": eos}
    try:
        texts, _ = chat_template_utils.render_jinja_template(
            [[normalised(it) for it in conversation["messages"]]],
            tools=conversation.get("tools"),
            chat_template=template,
            add_generation_prompt=conversation["add_generation_prompt"],
            **{name: token for name, token in special.items() if token is not None},
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
        bos, eos, control = TOKENS[path.stem]
        cases = {name: render(template, bos, eos, it) for name, it in conversations.items()}
        expected[path.stem] = {"bos_token": bos, "eos_token": eos, "control": control, "cases": cases}
    out = {
        "made_by": "make/templates.py",
        "transformers": transformers.__version__,
        "jinja2": jinja2.__version__,
        "now": NOW.isoformat(),
        "templates": expected,
    }
    text = json.dumps(out, ensure_ascii=False, indent=1) + "\n"
    (folder / "expected.json").write_bytes(text.encode("utf-8"))


if __name__ == "__main__":
    main()
