"""The utterance as scanners see it: folded, one character for each of the original, so that both have the same places."""

import re
import string
from collections import defaultdict

# Characters read at most; what follows is a paste, not something said to a customer service.
MAX_CHARS = 16 * 1024

# Unicode's White_Space; `str.strip` by itself takes four control characters more.
WHITE_SPACE = "\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))

# Chinese characters, the rare planes left out; for a class of `re`.
CJK = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"

_SPACES = "\xa0\u202f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))
_DASHES = "\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe63"
_FULL_WIDTH = "".join(map(chr, range(0xFF01, 0xFF5F)))
_HALF_WIDTH = "".join(map(chr, range(0x21, 0x7F))).lower()

# Of the characters that rules and scanners use.
_TRADITIONAL = (
    "後個號點禮週兩這訂單買數來換變時廣東灣慶漢長瀋蘇濟陽連門寧爾鄭貴蘭廈嗎麼為沒別請詢問電話幾過給轉網從會對還無聯絡認確"
    "實謝煩幫現發貨遞達狀態進運麗濱龍紹興溫齊島煙臺許僅萬歲錯頭樣條張開關簡體報誰應該讓說滬馬臨鎮鄉萊當錢費筆雙類間內"
)
_SIMPLIFIED = (
    "后个号点礼周两这订单买数来换变时广东湾庆汉长沈苏济阳连门宁尔郑贵兰厦吗么为没别请询问电话几过给转网从会对还无联络认确"
    "实谢烦帮现发货递达状态进运丽滨龙绍兴温齐岛烟台许仅万岁错头样条张开关简体报谁应该让说沪马临镇乡莱当钱费笔双类间内"
)

_FOLD = str.maketrans(
    string.ascii_uppercase + _FULL_WIDTH + _SPACES + _DASHES + "‘’“”" + _TRADITIONAL,
    string.ascii_lowercase + _HALF_WIDTH + " " * len(_SPACES) + "-" * len(_DASHES) + "''\"\"" + _SIMPLIFIED,
)

# Punctuation that ends a clause, when folded.
_CLAUSE_ENDS = ",.!?;。、…\n\r"
_CLAUSE_END = re.compile(f"[{_CLAUSE_ENDS}]")


def fold(text):
    """Full-width forms, case, dashes, spaces, quotation marks and common traditional characters made even, one to one."""
    return text.translate(_FOLD)


class Text(str):
    """The folded characters of a text; `original` has them as they were written."""

    def __new__(cls, original):
        original = original[:MAX_CHARS]
        text = super().__new__(cls, fold(original))
        text.original = original
        return text


def is_word(c):
    """Whether a folded character is a letter or a digit of ASCII."""
    return c.isascii() and c.isalnum()


def clause_around(text, at):
    """The range between punctuation or line ends around `at`."""
    return range(max(text.rfind(c, 0, at) for c in _CLAUSE_ENDS) + 1, clause_end(text, at))


def clause_end(text, at):
    """Where the clause ends that goes on at `at`."""
    found = _CLAUSE_END.search(text, at)
    return found.start() if found else len(text)


class Phrases:
    """Phrases of the rules, each with a value of the caller's. At one place the longest is found; of two that are the same
    the first counts.

    A space of a phrase stands for any run of spaces. A phrase that starts or ends in an ASCII letter or digit does so at the
    edge of a word. Outer spaces do not count, and an empty phrase is never found.
    """

    def __init__(self, valued):
        self._values = {}
        for phrase, value in valued:
            self._values.setdefault(fold(phrase.strip(WHITE_SPACE)), value)
        self._values.pop("", None)
        self._phrases = tuple(self._values)
        pattern = re.compile(_any_of(self._phrases))
        # The phrase that starts at a place, and the first one from a place on.
        self.match, self.search = pattern.match, pattern.search

    def value(self, found):
        """The value of a phrase that was found."""
        return self._values[re.sub(" +", " ", found[0])]

    def within(self, text, start, stop):
        """Phrases that lie whole in this part, by their start; the longest at each place, which may overlap."""
        # Nothing beyond is searched, so that many short parts of a long text cost no more than the text. What is cut off
        # there may look like a phrase, or hide a longer one: the second look is at the whole.
        while beginning := self.search(text, start, stop + 1):
            found = self.match(text, beginning.start())
            if found and found.end() <= stop:
                yield found
            start = beginning.start() + 1

    def are_in(self, text, start, stop):
        return any(self.within(text, start, stop))

    def end_before(self, text, stop):
        """Whether one of the phrases ends right before `stop`, spaces between not counted."""
        while text.endswith(" ", 0, stop):
            stop -= 1
        # Nearly always there is none, and this is the fast way to know.
        return text.endswith(self._phrases, 0, stop) and any(
            text.endswith(phrase, 0, stop) and _has_edges(text, stop - len(phrase), stop) for phrase in self._phrases
        )


def phrases(words):
    """Phrases without values."""
    return Phrases((word, None) for word in words)


def _any_of(phrases):
    """A pattern for all of them. Each begins with a plain character: so `re` passes quickly over what begins none."""
    by_first = defaultdict(list)
    for phrase in sorted(phrases, key=len, reverse=True):
        by_first[phrase[0]].append(_rest(phrase))
    firsts = [f"{_first(first)}(?:{'|'.join(rests)})" for first, rests in by_first.items()]
    return "|".join(firsts) or "(?!)"


def _first(c):
    return rf"{c}(?<![0-9a-z]{c})" if is_word(c) else re.escape(c)


def _rest(phrase):
    spaced = re.escape(phrase[1:]).replace(r"\ ", " +(?! )")
    return spaced + "(?![0-9a-z])" if is_word(phrase[-1]) else spaced


def _has_edges(text, start, stop):
    """Whether what stands here is not a part of a longer word of ASCII letters or digits."""
    starts = start == 0 or not (is_word(text[start - 1]) and is_word(text[start]))
    ends = stop == len(text) or not (is_word(text[stop - 1]) and is_word(text[stop]))
    return starts and ends
