import unittest

from jackfield import Folded, Span, find_term, is_blank


class TextTest(unittest.TestCase):
    def test_a_match_in_folded_text_maps_back_to_the_original_characters(self):
        original = "😀编号ＡＢ－１２，Ｘ"
        at = Folded(original).find(Folded("AB-12"))
        self.assertEqual(original[at.start : at.end], "ＡＢ－１２")

    def test_a_letter_that_grows_in_lower_case_maps_back_whole(self):
        at = Folded("-İb中").find(Folded("i\u0307b"))
        self.assertEqual(at, Span(1, 3))

    def test_terms_keep_ascii_words_whole_and_touch_han_freely(self):
        self.assertEqual(find_term("category cat", "cat"), Span(9, 12))
        self.assertIsNone(find_term("category", "cat"))
        self.assertEqual(find_term("我的cat呢", "cat"), Span(2, 5))
        self.assertIsNone(find_term("要100个", "10"))
        self.assertEqual(find_term("c++ code", "c++"), Span(0, 3))
        self.assertIsNone(find_term("anything", ""))

    def test_white_space_is_unicodes(self):
        self.assertTrue(is_blank("\r\n\u3000\u0085"))
        self.assertFalse(is_blank("\u200b"))
        self.assertFalse(is_blank("\x1c"))
