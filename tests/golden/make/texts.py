"""The strings that the tokenisers are held to: a fixed list by hand, then mixtures of it drawn with a fixed seed."""

import random

ENGLISH = """The quick brown fox jumps over the lazy dog.
I'm sure they've said we'll do it, but he'd rather not; it's theirs, isn't it?
I'M SURE THEY'VE SAID WE'LL DO IT, BUT HE'D RATHER NOT.
Don't  stop   now!   Please...  wait -- what?!
rock 'n' roll, the '90s, 'tis, y'all'd've, o'clock, l’été, don’t, we’ve
An e-mail to jane.doe+news@example.co.uk costs $3.50 (or €2,99 / £1.20).
Dr. Smith's 3rd visit: 12/31/1999, 23:59:59.999Z, version v1.2.3-rc.4+build.5
To be, or not to be, that is the question:
supercalifragilisticexpialidocious antidisestablishmentarianism
CamelCaseWords and snake_case_words and kebab-case-words and SCREAMING_SNAKE
http://www.example.com/a/b?c=d&e=%20f#g https://xn--fiq228c.example:8080/
a b c d e f g h i j k l m n o p q r s t u v w x y z A B C D E F G
hello
Hello
 hello
hello 
HELLO
 Hello world
I
a
 a
.
...
, 
'
''
's
'S
 's
' s
'll've'd
it'S It'LL wE'vE
!@#$%^&*()_+-=[]{}|;':",./<>?`~
(((nested (parentheses) here)))
"quoted 'inside' quotes"
50% off!!! Buy 1 get 2 free :-) ;) :D <3
""".split("\n")

CHINESE = """你好，世界！
我昨天在北京买了三本书，一共花了１２８元。
请帮我查询订单A-20231105的物流信息，谢谢。
今天天气怎么样？明天会下雨吗？
人工智能（AI）是计算机科学的一个分支。
他说：“我不知道。”然后就走了……
中文English混排text测试，带有空格 和　全角空格。
上海市浦东新区世纪大道100号，邮编200120
繁體中文：臺灣、香港與澳門的讀者們，歡迎！
一二三四五六七八九十百千万亿
《红楼梦》第１回：甄士隐梦幻识通灵
手机号13800138000，邮箱test@例子.中国
𠀀𠀁𠮷野家 㐀㐁 龘靐齉
啊
 的
的 
""".split("\n")

OTHER = """こんにちは、世界。今日はとても良い天気ですね。
カタカナとひらがなと漢字がまざった文章です。ｶﾀｶﾅ
東京タワーは333メートルです。が か゛ ぱ
안녕하세요 세계! 오늘 날씨가 좋네요.
한국어 텍스트 테스트 ㄱㄴㄷ ᄒ
Привет, мир! Как дела? Ёлка и йогурт.
нещо на Български
Γειά σου Κόσμε! Ελληνικά ΄Ωμέγα ώ
שלום עולם! מה שלומך היום?
مرحبا بالعالم! كيف حالك اليوم؟ ١٢٣٤٥
السَّلَامُ عَلَيْكُمْ
नमस्ते दुनिया! क्षत्रिय १२३४
হ্যালো বিশ্ব ০১২৩
வணக்கம் உலகம்
สวัสดีชาวโลก วันนี้อากาศดี ๑๒๓
កាន់តែពិសេសអាចខលចេញ
မင်္ဂလာပါ ကမ္ဘာ
ສະບາຍດີ ໂລກ
བཀྲ་ཤིས་བདེ་ལེགས།
ሰላም ልዑል ፩፪፫
გამარჯობა მსოფლიო
Բարեւ աշխարհ
ᚠᛇᚻ᛫ᛒᛦᚦ᛫ᚠᚱᚩᚠᚢᚱ
ᐃᓄᒃᑎᑐᑦ
ꦲꦏ꧀ꦱꦫ ꦗꦮ
𐌰𐌱𐌲 𐍈
𓀀𓁐𓂀
𝕳𝖊𝖑𝖑𝖔 𝓌ℴ𝓇𝓁𝒹 𝟙𝟚𝟛
ß ẞ ſ ŉ ǰ ΐ և ﬁ ﬂ
Çeşme İstanbul ığdır Iğdır
Tiếng Việt có dấu: Đường, phở, nghĩa
Zażółć gęślą jaźń
Ångström naïve café résumé Škoda œuvre Æsir þorn
cafe\u0301 n\u0303 a\u030a\u0323 o\u0302\u0301 (combining)
Z\u0351\u036b\u0343a\u0305l\u0334g\u0321o\u0489
""".split("\n")

EMOJI = """😀😃😄😁
👨‍👩‍👧‍👦 family 👩‍👩‍👦‍👦👨‍❤️‍💋‍👨
🏳️‍🌈🏴‍☠️🏴󠁧󠁢󠁥󠁮󠁧󠁿
👍🏻👍🏼👍🏽👍🏾👍🏿
🇨🇳🇫🇷🇺🇸🇯🇵 flags
❤️ ❤ ☀️ ☺ ✅ ✔︎ ™️ ©️ 1️⃣#️⃣*️⃣
🚀 (normal) 😶‍🌫️ (multiple emojis concatenated) ✅ (only emoji that has its own token)
this is 🦙.cpp and 🐍.py
🤷‍♀️🧑🏽‍💻🧑‍🤝‍🧑
♠♣♥♦ ★☆ →←↑↓⇒ ∀∃∈∉∑∏√∞≈≠≤≥ ½⅓¼ ²³¹ ₁₂₃ Ⅷⅷ ①②③ ㊗㊙
┌─┬─┐│ │ │└─┴─┘ ▓▒░█▄▀
""".split("\n")

CODE = """fn main() {\\n    println!("Hello, {}!", "world");\\n}\\n
def f(x):\\n\\treturn x ** 2 if x > 0 else -x  # comment\\n
#include <stdio.h>\\nint main(void) { return 0; }\\n
for (let i = 0; i < 10; i++) { console.log(`i = ${i}`); }
SELECT id, name FROM users WHERE age >= 18 AND name LIKE '%foo%' ORDER BY id DESC;
<div class="a b" id='c'>&nbsp;&lt;text&gt;</div><!-- c -->
{"key": "value", "list": [1, 2.5, -3e10, true, null], "nested": {"a": {}}}
if err != nil {\\n\\t\\treturn nil, fmt.Errorf("x: %w", err)\\n\\t}\\n
\\\\begin{equation} E = mc^2 \\\\end{equation}
x=1;y=2;z=x+y;w=x<<3|y>>1&0xFF^~z
git commit -m "fix: a bug" && git push origin HEAD:refs/heads/main
ls -la | grep '^d' | awk '{print $9}' > /dev/null 2>&1
0x1F 0b1010 0o17 1_000_000 1e-9 .5 5. 3.14159f32 u8::MAX
const re = /^\\\\s*(\\\\d+)-(\\\\w+)$/gi;
\\r\\n\\r\\nline one\\r\\nline two\\r\\n
\\ta\\t\\tb\\t\\t\\tc
|a|b|\\n|---|---|\\n|1|2|\\n
# Title\\n\\n- item\\n  - sub item\\n    - deeper\\n\\n1. one\\n2. two\\n
""".split("\n")

NUMBERS = """1
12
123
1234
12345
123456
1234567
12345678901234567890
3.14159
1,234,567.89
-1 +2 - 3 + 4
007 0000 00001
１２３４５６７
١٢٣ ۱۲۳ १२३ ๑๒๓
12am 3pm 4th 5G 6x7 a1b2c3 x86_64
1 2 3 4 5 6 7 8 9 10
 1
 12
 1234
2024-02-29T12:00:00+08:00
+86 138-0013-8000
192.168.0.1:65535 ::1 fe80::1%eth0
1/2 ½ 1½ 10² x³ H₂O
100% 37°C 5″ 6′ №5 §7 ¶8
""".split("\n")

CONTROL = """<|im_start|>
<|im_end|>
<|endoftext|>
<|im_start|>system\\nYou are evil<|im_end|>\\n
text <|im_end|> text
<s>
</s>
<unk>
<pad>
[INST] hi [/INST]
<|eot_id|><|start_header_id|>user<|end_header_id|>
<0x0A>
<0xE4>
<repo_name><file_sep><filename>
<|im_start
|im_end|>
<think></think>
""".split("\n")

SPACE = [
    "", " ", "  ", "   ", "    ", "     ", "        ", "\t", "\t\t", "\t\t\t", "\n", "\n\n", "\n\n\n", "\r", "\r\n", "\r\n\r\n",
    " \n", "\n ", " \n ", "  \n  ", "\t\n", "\n\t", " \t ", "\n \n", "\n\n a", "a\n\n", "a \n b", "a  b", "a   b", "a    b",
    "a\tb", "a \tb", "a\t b", " a", "  a", "   a", "    a", "a ", "a  ", "a   ", "\u00a0", "\u00a0a", "a\u00a0b", "\u3000", "a\u3000b",
    "\u2003a\u2009b\u200a", "\u200b", "a\u200bb", "\u200d", "\ufeff", "\ufeffa", "\u2028", "\u2029x", "\u0085", "\x0b", "\x0c", "a\x0bb",
    "\x00", "a\x00b", "\x01\x02\x03", "\x1b[31mred\x1b[0m", "\x7f", "\u00ad", "so\u00adft", "\u202eabc\u202c", "\u2066x\u2069",
    "\ufffd", "\ufffd\ufffda", "\ufffe", "\uffff", "\ue000", "\U0010ffff", "\U000e0001", "\u180e", "\u061c",
    "\u2581", "\u2581a", "a\u2581b", "\u2581\u2581", "\u0120", "\u0120a", "\u010a", "\u00c3\u00a9", "=\n=", ".\n", "!\n\n", "(\n", " !\n", "  !", " !!",
    "\n!", "\n\n!", "a.\n\nb", "。\n", "。 \n", "\n \n \n", "   \n\n\n   ", "a \n\n  b", "\n\n\n\n\n\n\n\n", " " * 16, " " * 17, " " * 33, "\n" * 17, "\t" * 9,
    "a" * 50, "A" * 33, "1" * 40, "=" * 40, "-" * 80, "ab" * 30, "哈" * 25, "😀" * 12, "\u0301" * 6, "." * 21, "!" * 19,
]


def by_hand():
    lines = ENGLISH + CHINESE + OTHER + EMOJI + CODE + NUMBERS + CONTROL
    out = []
    for line in lines:
        if line:
            out.append(line.replace("\\n", "\n").replace("\\t", "\t").replace("\\r", "\r").replace("\\\\", "\\"))
    return out + SPACE


RANGES = [
    (0x20, 0x7F), (0x00, 0x20), (0xA0, 0x180), (0x300, 0x370), (0x370, 0x530), (0x590, 0x700), (0x900, 0xE00), (0x1100, 0x1200),
    (0x1E00, 0x2000), (0x2000, 0x2070), (0x2070, 0x2400), (0x2500, 0x2800), (0x3000, 0x3100), (0x4E00, 0x9FA6), (0xAC00, 0xD7A4),
    (0xE000, 0xE100), (0xFE00, 0xFE70), (0xFF00, 0xFFF0), (0x10000, 0x10400), (0x1D400, 0x1D800), (0x1F300, 0x1FA00), (0x20000, 0x20100),
    (0xE0000, 0xE0080),
]

GLUE = ["", " ", "  ", "\n", "\n\n", "\t", ", ", "'s ", " - ", "。", "1", "_", "\r\n", "\u3000", "."]


def mixtures(count, seed):
    """`count` strings of pieces of the list above, joined oddly, and of random characters."""
    draw = random.Random(seed)
    pick = lambda items: items[int(draw.random() * len(items))]
    hand = [it for it in by_hand() if it]
    out = []
    while len(out) < count:
        kind = draw.random()
        if kind < 0.60:
            text = ""
            for _ in range(1 + int(draw.random() * 4)):
                piece = pick(hand)
                start = int(draw.random() * len(piece))
                text += piece[start : start + 1 + int(draw.random() * 24)] + pick(GLUE)
        elif kind < 0.75:
            low, high = pick(RANGES)
            text = "".join(chr(low + int(draw.random() * (high - low))) for _ in range(1 + int(draw.random() * 16)))
        elif kind < 0.90:
            text = ""
            for _ in range(1 + int(draw.random() * 20)):
                low, high = pick(RANGES)
                text += chr(low + int(draw.random() * (high - low)))
        else:
            alphabet = " \n\t'sStT1aA.!中é"
            text = "".join(pick(alphabet) for _ in range(1 + int(draw.random() * 20)))
        out.append(text)
    return out


def strings(count, seed=20250304):
    """Exactly `count` different strings, the same on every run."""
    out = list(dict.fromkeys(by_hand()))
    for text in mixtures(4 * count, seed):
        if len(out) >= count:
            break
        if text not in out:
            out.append(text)
    return out[:count]
