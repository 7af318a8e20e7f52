"""Drops a greeting at the beginning of the user's messages."""

from jackfield import Description, Edit, Span, beside, is_blank


class Policy:
    description = Description("{{name}}", "0.1.0", beside(__file__))

    def __init__(self, config):
        self.greetings = config["greetings"]

    def compress(self, turn, parts, budget):
        lengths = [self.droppable(part) for part in parts]
        return [Edit(message, Span(0, length)) for message, length in enumerate(lengths) if length]

    def droppable(self, part):
        """How much of the beginning of this message may be dropped."""
        text = part.message.text
        length = next((len(greeting) for greeting in self.greetings if text.startswith(greeting)), 0)
        is_protected = any(span.start < length for span in part.protected)
        # What the target holds already costs nothing, and an edit there would make it compute everything again.
        is_free = part.cached == 0
        keep = part.message.role != "user" or not is_free or is_protected or is_blank(text[length:])
        return 0 if keep else length
