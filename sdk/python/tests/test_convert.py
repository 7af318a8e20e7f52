import unittest
from dataclasses import make_dataclass
from enum import Enum
from types import SimpleNamespace

from jackfield import Choice, Decision, Edit, Guidance, JsonSchema, Message, Plan, Refusal, Slot, Span, Transition
from jackfield.convert import Lower, lift


def record(name, fields=("value",)):
    return make_dataclass(name, fields)


CASES = (
    *(f"Value_{case}" for case in ("Text", "Number", "Boolean", "Date", "Choice")),
    *(f"Grammar_{case}" for case in ("JsonSchema", "Regex", "Lark")),
    *(f"Decision_{case}" for case in ("Run", "Answer", "Refuse")),
    *(f"Next_{case}" for case in ("Prompt", "Answer")),
)
GENERATED = SimpleNamespace(
    Span=record("Span", ["start", "end"]),
    Edit=record("Edit", ["message", "at", "replacement"]),
    Slot=record("Slot", ["name", "value", "source", "confidence"]),
    Transition=record("Transition", ["state", "set", "clear", "next", "attributes"]),
    Plan=record("Plan", list(Plan.__dataclass_fields__)),
    Guidance=record("Guidance", ["stop", "bias", "grammar"]),
    Refusal=record("Refusal", ["status", "reason"]),
    Mode=Enum("Mode", ["GENERATE", "CLASSIFY", "EMBED"]),
    Next_Model=record("Next_Model", []),
    Bias=record("Bias", ["text", "logit"]),
    Field=record("Field", ["name", "value"]),
    Message=record("Message", list(Message.__dataclass_fields__)),
    Role=Enum("Role", ["SYSTEM", "USER", "ASSISTANT", "TOOL"]),
    **{name: record(name) for name in CASES},
)


class ConvertTest(unittest.TestCase):
    def setUp(self):
        self.lower = Lower(GENERATED)

    def test_what_goes_out_and_comes_back_is_the_same(self):
        slot = Slot("city", Choice("上海"), Span(0, 2), 0.5)
        lowered = self.lower(slot, Slot, "slot")
        self.assertEqual(type(lowered.value).__name__, "Value_Choice")
        self.assertEqual(lift(lowered), slot)

    def test_short_answers_become_cases(self):
        plan = self.lower(Plan("small", guidance=Guidance(grammar=JsonSchema("{}"))), Decision, "answer")
        self.assertEqual((plan.value.target, plan.value.mode), ("small", GENERATED.Mode.GENERATE))
        self.assertEqual(plan.value.guidance.grammar.value, "{}")
        self.assertEqual(self.lower("hello", Decision, "answer"), GENERATED.Decision_Answer("hello"))
        self.assertEqual(self.lower(Refusal(429, "busy"), Decision, "answer").value.status, 429)
        self.assertEqual(self.lower(Transition("s"), Transition, "answer").next, GENERATED.Next_Model())

    def test_none_in_place_of_a_list_is_an_empty_one(self):
        self.assertEqual(self.lower(Transition("s", set=None, clear=None), Transition, "answer").clear, [])

    def test_what_does_not_fit_is_named_with_its_place(self):
        wrong = [
            (Edit(0, Span(0, 1), None), Edit, "answer.replacement is None, which is not a str"),
            (Edit(0, Span(0, True)), Edit, "answer.at.end is True, which is not a whole number"),
            (Edit(-1, Span(0, 1)), Edit, "answer.message is -1, which is not a whole number from 0"),
            (Edit(0, (0, 1)), Edit, r"answer.at is \(0, 1\), which is not a Span"),
            (Plan("a", priority=256), Decision, "answer.priority is 256, which is not a whole number from 0 to 255"),
            (Plan("a", mode="think"), Decision, "answer.mode is 'think', which is not one of generate"),
            (7, Decision, "answer is 7, which is not one of Plan, str, Refusal"),
            (Transition("s", clear="city"), Transition, "answer.clear is 'city', which is not a list"),
        ]
        for value, hint, said in wrong:
            with self.assertRaisesRegex(TypeError, said):
                self.lower(value, hint, "answer")

    def test_half_of_a_surrogate_pair_is_an_error(self):
        with self.assertRaises(UnicodeEncodeError):
            self.lower("\ud800", Decision, "answer")
