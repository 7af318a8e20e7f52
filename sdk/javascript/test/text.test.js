import assert from "node:assert/strict";
import { test } from "node:test";

import { Folded, Offsets, digit, findTerm, isBlank, isHan, narrow, utf8Length } from "../src/index.js";

/** Everything that makes the two ways of counting differ, and what does not. */
const texts = [
  "", "plain ascii", "naïve", "你好，AB-1234 到哪了？", "😀 a 👩‍👧‍👦 b", "a\r\nb\r\n", "zero\u200dwidth\u200b", "e\u0301", "𠀀汉",
];

test("byte offsets are those of the encoder, at every index", () => {
  const encoder = new TextEncoder();
  for (const text of texts) {
    const offsets = new Offsets(text);
    assert.equal(utf8Length(text), encoder.encode(text).length);
    let index = 0;
    for (const scalar of [...text, ""]) {
      const byte = encoder.encode(text.slice(0, index)).length;
      assert.equal(offsets.byte(index), byte);
      assert.equal(offsets.index(byte), index);
      index += scalar.length;
    }
  }
});

test("an offset within a scalar counts as its beginning", () => {
  const offsets = new Offsets("a😀b");
  assert.equal(offsets.byte(2), 1);
  assert.deepEqual([1, 2, 3, 4, 5, 6, 99].map((byte) => offsets.index(byte)), [1, 1, 1, 1, 3, 4, 4]);
  assert.deepEqual(offsets.span(1, 3), { start: 1, end: 5 });
  assert.equal(offsets.slice({ start: 1, end: 5 }), "😀");
  assert.equal(offsets.byte(99), 6);
});

test("a lone surrogate counts as what stands in its place", () => {
  assert.equal(utf8Length("a\ud83d"), 4);
  assert.equal(new Offsets("\udc00b").byte(1), 3);
});

test("full-width forms become ASCII and the rest stays", () => {
  assert.equal(new Folded("编号ＡＢ－１２３４\u3000Ok，👩‍👧").text, "编号ab-1234 ok,👩‍👧");
  assert.equal(narrow("３Ａ－\u3000～"), "3A- ~");
  assert.equal(new Folded("ΟΔΟΣ").text, "οδοσ");
});

test("a match in folded text maps back to the bytes of the original", () => {
  const original = "😀编号ＡＢ－１２，Ｘ";
  const folded = new Folded(original);
  assert.equal(new Offsets(original).slice(folded.find("AB-12")), "ＡＢ－１２");
  assert.ok(folded.has(new Folded("ab-12")) && !folded.has("ab-1"));
  const length = utf8Length(original);
  assert.deepEqual(folded.span(0, folded.text.length), { start: 0, end: length });
  assert.deepEqual(folded.span(folded.text.length, folded.text.length), { start: length, end: length });
  assert.deepEqual(folded.span(1, 2), { start: 0, end: 4 }, "half of a pair is the whole of it");
});

test("a letter that grows in lower case maps back whole", () => {
  const original = "aİb中";
  const folded = new Folded(original);
  const slice = (start, end) => new Offsets(original).slice(folded.span(start, end));
  assert.equal(folded.text, "ai\u0307b中");
  assert.equal(slice(1, 2), "İ");
  assert.equal(slice(2, 3), "İ");
  assert.equal(slice(2, 4), "İb");
  assert.equal(slice(4, 5), "中");
});

test("terms keep ASCII words whole and touch Chinese freely", () => {
  assert.deepEqual(findTerm("category cat", "cat"), { start: 9, end: 12 });
  assert.equal(findTerm("category", "cat"), null);
  assert.deepEqual(findTerm("我的cat呢", "cat"), { start: 2, end: 5 });
  assert.deepEqual(findTerm("要10个", "10"), { start: 1, end: 3 });
  assert.equal(findTerm("要100个", "10"), null);
  assert.deepEqual(findTerm("c++ code", "c++"), { start: 0, end: 3 });
  assert.equal(findTerm("anything", ""), null);
});

test("white space is what Unicode says it is", () => {
  assert.ok(["", " \t\r\n", "\u3000\u0085\u00a0\u2028"].every(isBlank));
  assert.ok(!["\u200b", "\ufeff", "\u001c", " a "].some(isBlank));
});

test("digits are ASCII or full-width only", () => {
  assert.deepEqual(["7", "７", "七", "٧", ""].map(digit), [7, 7, null, null, null]);
  assert.ok(["汉", "㐀", "𠀀", "〇"].every(isHan) && !["か", "A", "", "汉汉"].some(isHan));
});
