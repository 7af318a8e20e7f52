"""Dialogs over HTTP: what is said, a turn of it with one server, and what the turn cost."""

import http.client
import json
import random
import time
from collections import defaultdict, namedtuple

import peers

# Common words, most of them one token with the space before.
WORDS = (peers.ROOT / "host/bench/src/words.txt").read_text().split()
SYSTEM_TOKENS = 200
USER_TOKENS = 20
ANSWER_TOKENS = 24
# A turn that takes longer has no figure.
LIMIT_S = 300

# ttft_ms: from the request to the first text. computed: tokens of the prompt that no cache had; None where the server does
# not say. sent: bytes of the request's body.
Cost = namedtuple("Cost", "ttft_ms computed sent")


class Dialog:
    """What the user says: the same to every server, and never said before."""

    def __init__(self, place, number):
        self.id = f"talk-{BEGUN}-{place}-{number}"

    def new(self, turn):
        """The messages that a turn adds, counted from 0."""
        user = {"role": "user", "content": self.text(f"user {turn}", USER_TOKENS)}
        return [user] if turn else [{"role": "system", "content": self.text("system", SYSTEM_TOKENS)}, user]

    def text(self, part, tokens):
        return " ".join(random.Random(f"{self.id} {part}").choices(WORDS, k=tokens))


class Side:
    """A server, and the dialogs as they went with it.

    Each side goes on from its own answers. All answers have the same length; and what a server has said itself it has in its
    cache, so that none is made to read another's words.
    """

    def __init__(self, server, in_sessions):
        self.server = server
        self.in_sessions = in_sessions
        self.said = defaultdict(list)

    def turn(self, dialog):
        """The dialog's next turn."""
        said = self.said[dialog.id]
        new = dialog.new(sum(message["role"] == "user" for message in said))
        said += new
        # What is not a session's is sent whole. llama-server looks for it in its caches by default; it is said all the same.
        rest = ({"session": dialog.id, "messages": new} if self.in_sessions else
                {"messages": said, "cache_prompt": True})
        cost, answer = self.ask(rest)
        said.append({"role": "assistant", "content": answer})
        return cost

    def ask(self, rest):
        body = json.dumps({"model": "default", "max_tokens": ANSWER_TOKENS, "temperature": 0, "ignore_eos": True,
                           "stream": True, "stream_options": {"include_usage": True}, **rest}).encode()
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=LIMIT_S)
        try:
            connection.connect()
            begun = time.perf_counter()
            connection.request("POST", "/v1/chat/completions", body, {"content-type": "application/json"})
            first, text, usage = self.follow(connection.getresponse())
        except (OSError, http.client.HTTPException) as failure:
            raise peers.Failed(f"{self.server.name}: {failure}") from None
        finally:
            connection.close()
        if usage.get("completion_tokens") != ANSWER_TOKENS:
            raise peers.Failed(f"{self.server.name}: an answer of {ANSWER_TOKENS} tokens was asked for, not {usage}")
        cached = (usage.get("prompt_tokens_details") or {}).get("cached_tokens")
        computed = None if cached is None else usage["prompt_tokens"] - cached
        return Cost((first - begun) * 1e3, computed, len(body)), text

    def follow(self, answer):
        """When the first text came, all of it, and the usage."""
        if answer.status != 200:
            raise peers.Failed(f"{self.server.name}: status {answer.status}: {answer.read(200).decode(errors='replace')}")
        first, text, usage = None, "", {}
        for line in answer:
            if not line.startswith(b"data: {"):
                continue
            event = json.loads(line[len("data: "):])
            usage = event.get("usage") or usage
            for choice in event.get("choices", []):
                piece = choice["delta"].get("content")
                if piece:
                    first = first or time.perf_counter()
                    text += piece
        if first is None:
            raise peers.Failed(f"{self.server.name}: an answer without text")
        return first, text, usage


BEGUN = time.time_ns() // 1_000_000
