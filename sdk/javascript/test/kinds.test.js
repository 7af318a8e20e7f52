import assert from "node:assert/strict";
import { test } from "node:test";

import { answer, compressor, outputFilter, prompt, refuse, router, run, runOn, slotExtractor } from "../src/index.js";

const description = { name: "tried", version: "1.0.0" };
const dialog = { state: "asked", slots: [], schema: 0 };

/** The exports of a policy whose one method is `work`, configured. */
function configured(kind, method, work, config = "{}") {
  class Policy {
    static description = description;
  }
  Policy.prototype[method] = work;
  const exports = kind(Policy);
  exports.lifecycle.configure(config);
  return exports;
}

const route = (work) => configured(router, "route", work).routing.route({}, {}, [{ model: "small" }]);
const extract = (work) => configured(slotExtractor, "extract", work).slotExtraction.extract({}, [], dialog);
const review = (work) => configured(outputFilter, "review", work).outputFiltering.review([]);

/** What was thrown, which must be a text. */
function thrown(work) {
  try {
    work();
  } catch (error) {
    assert.equal(typeof error, "string");
    return error;
  }
  return assert.fail("nothing was thrown");
}

test("what is left out has its default, null and undefined alike", () => {
  const plan = route((turn, request, fleet) => runOn(fleet[0])).val;
  assert.equal(plan.mode, "generate");
  assert.equal(plan.priority, 100);
  assert.deepEqual([plan.task, plan.deadlineMs, plan.guidance, plan.minimalOutput], [null, null, null, false]);
  const same = route(() => run({ target: "small", task: null, priority: null, attributes: null })).val;
  assert.deepEqual(same, plan);
  for (const nothing of [undefined, null, {}]) {
    const expected = { state: "asked", set: [], clear: [], next: { tag: "model" }, attributes: [] };
    assert.deepEqual(extract(() => nothing), expected);
  }
  assert.deepEqual(review(() => undefined), []);
  const slot = { name: "city", value: { tag: "choice", val: "上海" } };
  assert.deepEqual(extract(() => ({ set: [slot] })).set, [{ ...slot, source: null, confidence: 1 }]);
});

test("every case of the variants crosses", () => {
  assert.deepEqual(route(() => answer("hi")), { tag: "answer", val: "hi" });
  assert.deepEqual(route(() => refuse(429, "later")), { tag: "refuse", val: { status: 429, reason: "later" } });
  assert.deepEqual(extract(() => ({ next: "model" })).next, { tag: "model" });
  const messages = [{ role: "user", text: "x" }];
  assert.deepEqual(extract(() => ({ next: prompt(messages) })).next, { tag: "prompt", val: messages });
});

test("what does not fit is an error that names its place", () => {
  const plan = (fields) => () => route(() => run({ target: "small", ...fields }));
  for (const [work, expected] of [
    [plan({ maxTokens: -1 }), "run.maxTokens: -1 is not a whole number from 0 to 4294967295"],
    [plan({ priority: 1.5 }), "run.priority: 1.5 is not a whole number from 0 to 255"],
    [plan({ maxTokens: 10n }), "run.maxTokens: 10 is not a whole number from 0 to 4294967295"],
    [plan({ mode: "run" }), 'run.mode: "run" is not one of generate, classify, embed'],
    [plan({ guidance: { stop: "。" } }), 'run.guidance.stop: "。" is not an array'],
    [plan({ compressTo: "half" }), 'run.compressTo: "half" is not a number'],
    [() => route(() => ({ tag: "ask" })), '"ask" is not one of run, answer, refuse'],
    [() => route(() => undefined), "undefined is not one of run, answer, refuse"],
    [() => route(() => answer(null)), "answer: null is not a text"],
    [() => review(() => [{ window: 0, replace: [{ at: { start: 0 }, text: "" }] }]),
      "[0].replace[0].at.end: undefined is not a whole number from 0 to 4294967295"],
    [() => extract(() => ({ set: [{ name: "n", value: "x" }] })),
      '[0].value: "x" is not one of text, number, boolean, date, choice'],
  ]) {
    assert.ok(thrown(work).endsWith(expected), `${thrown(work)} | ${expected}`);
  }
  assert.match(thrown(plan({ maxToken: 1 })), /^run: there is no field `maxToken`; there are target, mode, /);
  for (const late of [() => route(async () => answer("x")), () => extract(async () => ({})), () => review(async () => [])]) {
    assert.match(thrown(late), /a policy answers at once: no `async`/);
  }
  assert.equal(thrown(() => extract(() => [])), "an array is not an object of fields");
});

test("whatever is thrown is a text", () => {
  const error = (value) => thrown(() => route(() => { throw value; }));
  assert.equal(error(new Error("no words")), "no words");
  assert.equal(error("no words"), "no words");
  assert.match(error(new RangeError("too far")), /^RangeError: too far/);
  for (const value of [undefined, null, 7, {}, Symbol("s"), Object.create(null)]) {
    assert.match(error(value), /^thrown: /);
  }
  assert.equal(error(new Error("half \ud83d")), "half \ufffd");
});

test("an error of another kind says where", () => {
  const failing = configured(router, "route", function route(turn) { return turn.no.such; });
  assert.match(thrown(() => failing.routing.route({}, {}, [])), /^TypeError: .*\(in .*route\)$/);
});

test("lone surrogates are replaced, and 32 bits are the same number in the engine's hands", () => {
  assert.equal(route(() => answer("a\ud83d")).val, "a\ufffd");
  assert.equal(route(() => run({ target: "s", maxTokens: 4294967295 })).val.maxTokens >>> 0, 4294967295);
});

test("what the engine hands over as a negative number is the large one that was meant", () => {
  const turn = { seed: -1294967296 };
  const routed = configured(router, "route", (turn, request, fleet) =>
    answer([turn.seed, request.promptTokens, request.maxTokens, fleet[0].freeBlocks].join()));
  const request = { promptTokens: -1, messages: 1, maxTokens: null };
  const target = { queueDepth: 0, freeBlocks: -2147483648, cachedTokens: 0 };
  assert.equal(routed.routing.route(turn, request, [target]).val, "3000000000,4294967295,,2147483648");
  const budgeted = configured(compressor, "compress", (turn, parts, { keepTokens }) => {
    throw new Error(String(keepTokens));
  });
  assert.equal(thrown(() => budgeted.compression.compress({ seed: 0 }, [], { keepTokens: -1 })), "4294967295");
  const reviewed = configured(outputFilter, "review", ([{ streamId }]) => [{ window: 0, stop: String(streamId) }]);
  assert.equal(reviewed.outputFiltering.review([{ streamId: -1 }])[0].stop, "4294967295");
});

test("the configuration is parsed, and an error of the constructor refuses it", () => {
  class Echo {
    static description = { ...description, configSchema: { type: "object" } };
    constructor({ words }) {
      if (words === "") throw new Error("no words");
      this.words = words;
    }
    route() {
      return answer(this.words);
    }
  }
  const { lifecycle, routing } = router(Echo);
  assert.equal(lifecycle.describe().configSchema, '{"type":"object"}');
  assert.equal(thrown(() => routing.route({}, {}, [])), "called before it was configured");
  lifecycle.configure('{"words": "一"}');
  assert.equal(thrown(() => lifecycle.configure('{"words": ""}')), "no words");
  assert.equal(routing.route({}, {}, []).val, "一");
});

test("an output filter says what it looks for once it is configured", () => {
  class Filter {
    static description = description;
    constructor({ regex }) {
      this.regex = regex;
    }
    interests() {
      return { watches: [{ name: "w", regex: this.regex }] };
    }
    review() {}
  }
  const { lifecycle, outputFiltering } = outputFilter(Filter);
  lifecycle.configure('{"regex": "[0-9]+"}');
  assert.deepEqual(outputFiltering.interests().watches, [{ name: "w", regex: "[0-9]+" }]);
  assert.match(thrown(() => lifecycle.configure("{}")), /^watches\[0\]\.regex: undefined is not a text$/);
});

test("a class that is no policy of its kind is refused while it is built", () => {
  assert.throws(() => compressor(class { static description = description; }), /a method `compress`/);
  assert.throws(() => router(undefined), /a method `route`/);
  assert.throws(() => router(class { route() {} }), /undefined is not an object of fields/);
  assert.throws(() => router(class { static description = { name: "x" }; route() {} }), /version: undefined/);
});

test("asking for the time is an error that says where it is, an instant given is read", () => {
  const Clock = globalThis.Date;
  try {
    const error = "a policy has no clock: the time is turn.now.unixMs";
    assert.equal(thrown(() => route(() => answer(String(Date.now())))), error);
    assert.equal(thrown(() => route(() => answer(String(new Date())))), error);
    assert.equal(route(() => answer(new Date(0).toISOString())).val, "1970-01-01T00:00:00.000Z");
  } finally {
    globalThis.Date = Clock;
  }
});
