// The shapes of what policies answer, after wit/policy.wit. Fields that may be left out have their defaults here.

import { flag, list, number, oneOf, option, or, record, text, u16, u32, u8, variant } from "./shape.js";

const attributes = list(record({ name: text, value: text }));
const span = record({ start: u32, end: u32 });
const message = record({ role: oneOf("system", "user", "assistant", "tool"), text });
const value = variant({ text, number, boolean: flag, date: text, choice: text });
const slot = record({ name: text, value, source: option(span), confidence: or(number, 1) });

/** JSON, written out or as the value it stands for. */
const json = (schema) => text(typeof schema === "object" ? JSON.stringify(schema) : schema);

export const description = record({
  name: text,
  version: text,
  configSchema: or(json, "{}"),
  dialogSchema: or(u32, 0),
  readsDialogSchemas: list(u32),
  attributes,
});

export const transition = record({
  state: option(text),
  set: list(slot),
  clear: list(text),
  next: or(variant({ model: null, prompt: list(message), answer: text }), { tag: "model" }),
  attributes,
});

const guidance = record({
  stop: list(text),
  bias: list(record({ text, logit: number })),
  grammar: option(variant({ "json-schema": text, regex: text, lark: text })),
});

const plan = record({
  target: text,
  mode: or(oneOf("generate", "classify", "embed"), "generate"),
  task: option(text),
  priority: or(u8, 100),
  deadlineMs: option(u32),
  maxTokens: option(u32),
  draftTokens: option(u8),
  exitThreshold: option(number),
  compressTo: option(number),
  minimalOutput: or(flag, false),
  keepCacheS: option(u32),
  guidance: option(guidance),
  attributes,
});

export const decision = variant({ run: plan, answer: text, refuse: record({ status: u16, reason: text }) });

export const edits = list(record({ message: u32, at: span, replacement: or(text, "") }));

export const interest = record({
  watches: list(record({ name: text, regex: text })),
  sentTailBytes: or(u16, 0),
  tokenProbabilities: or(flag, false),
  attributes,
});

export const verdicts = list(
  record({
    window: u32,
    replace: list(record({ at: span, text })),
    holdBytes: or(u32, 0),
    stop: option(text),
  }),
);

// What an author writes for the variants.

export const run = (plan) => ({ tag: "run", val: plan });
export const runOn = (target) => run({ target: target.model });
export const answer = (words) => ({ tag: "answer", val: words });
export const refuse = (status, reason) => ({ tag: "refuse", val: { status, reason } });
export const prompt = (messages) => ({ tag: "prompt", val: messages });
