"""Refuses what is too long and answers what has a fixed answer; everything else runs as the host would have it."""

from jackfield import Description, Folded, Refusal, beside


class Policy:
    description = Description("{{name}}", "0.1.0", beside(__file__))

    def __init__(self, config):
        self.max_prompt_tokens = config.get("max_prompt_tokens")
        self.replies = [(Folded(reply["word"]), reply["text"]) for reply in config.get("reply", [])]

    def route(self, turn, request, fleet):
        tokens, most = request.prompt_tokens, self.max_prompt_tokens
        if most is not None and tokens > most:
            return Refusal(413, f"the prompt has {tokens} tokens, more than {most}")
        asked = Folded(request.last_user_text)
        return next((text for word, text in self.replies if asked.find(word)), None)
