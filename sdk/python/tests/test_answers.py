import unittest

from jackfield import (
    Budget,
    Description,
    Dialog,
    Edit,
    Hit,
    Message,
    Part,
    PolicyError,
    Replacement,
    Request,
    Slot,
    Span,
    Target,
    Text,
    Transition,
    Turn,
    Verdict,
    Window,
)
from jackfield.answers import Caller, message

FAMILY = "👩‍👧"


def caller(**functions):
    """A configured policy of these functions."""
    made = Caller(type("Policy", (), {"description": Description("p", "1"), "__init__": lambda self, config: None, **functions}))
    made.configure("{}")
    return made


class OffsetsTest(unittest.TestCase):
    def test_sources_of_slots_become_bytes(self):
        text = f"{FAMILY}\r\n上海"
        at = Span(5, 7)
        self.assertEqual(text[at.start : at.end], "上海")
        policy = caller(extract=lambda *_: Transition("s", set=[Slot("city", Text("上海"), at)]))
        transition = policy.extract(Turn(), [Message("user", text)], Dialog())
        source = transition.set[0].source
        self.assertEqual(text.encode()[source.start : source.end].decode(), "上海")

    def test_what_is_protected_and_cached_comes_in_characters_and_edits_go_out_in_bytes(self):
        def compress(policy, turn, parts, budget):
            self.assertEqual((parts[0].protected, parts[0].cached), ([Span(1, 2)], 2))
            return [Edit(0, parts[0].protected[0])]

        part = Part(Message("user", "😀上b"), [Span(4, 7)], cached=7)
        self.assertEqual(caller(compress=compress).compress(Turn(), [part], Budget()), [Edit(0, Span(4, 7))])

    def test_hits_come_in_characters_and_replacements_and_what_is_held_go_out_in_bytes(self):
        def review(policy, windows):
            return [Verdict(0, [Replacement(windows[0].hits[0].at, "*")], hold=1)]

        window = Window(pending="😀夜莺😀", hits=[Hit(0, Span(4, 10))])
        self.assertEqual(caller(review=review).review([window]), [Verdict(0, [Replacement(Span(4, 10), "*")], hold=4)])

    def test_offsets_outside_of_the_text_are_errors_that_name_them(self):
        policy = caller(compress=lambda *_: [Edit(0, Span(0, 9))])
        with self.assertRaisesRegex(ValueError, "span.end is 9, outside of a text of 2 characters"):
            policy.compress(Turn(), [Part(Message("user", "上海"))], Budget())
        policy = caller(review=lambda *_: [Verdict(1)])
        with self.assertRaisesRegex(IndexError, "window 1, of 1"):
            policy.review([Window()])


class NothingTest(unittest.TestCase):
    def test_none_is_the_answer_that_changes_nothing(self):
        policy = caller(**{name: lambda *_: None for name in ("extract", "route", "compress", "review", "interests")})
        transition = policy.extract(Turn(), [Message("user", "x")], Dialog("asked"))
        self.assertEqual(transition, Transition("asked"))
        self.assertEqual(policy.route(Turn(), Request(), [Target("small"), Target("big")]).target, "small")
        self.assertEqual((policy.compress(Turn(), [], Budget()), policy.review([])), ([], []))
        self.assertEqual(policy.interests().watches, [])


class ErrorsTest(unittest.TestCase):
    def said(self, function):
        try:
            function()
        except Exception as error:
            return message(error)

    def test_an_exception_is_said_with_its_type_and_the_authors_line(self):
        self.assertRegex(self.said(lambda: {}["mask"]), r"^KeyError: 'mask' \(test_answers.py, line \d+\)$")

    def test_a_policy_error_is_said_as_it_is(self):
        def refuse():
            raise PolicyError("not today")

        self.assertEqual(self.said(refuse), "not today")

    def test_a_call_before_configure_says_so(self):
        class Policy:
            description = Description("p", "1")

        self.assertEqual(self.said(lambda: Caller(Policy).review([])), "called before it was configured")
