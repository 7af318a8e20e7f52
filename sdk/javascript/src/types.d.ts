/** The types of `wit/policy.wit`, where their meaning and what the host checks is written. Offsets are UTF-8 bytes. */

/** Absent: `null`, `undefined` or left out. What comes from the host has `null` or `undefined`. */
export type Option<T> = T | null | undefined;

export type Role = "system" | "user" | "assistant" | "tool";
export interface Span { start: number; end: number }
export interface Message { role: Role; text: string }
export interface Instant { unixMs: number; utcOffsetMinutes: number }
export interface Field { name: string; value: string }
export type Value =
  | { tag: "text" | "date" | "choice"; val: string }
  | { tag: "number"; val: number }
  | { tag: "boolean"; val: boolean };
export interface Slot {
  name: string;
  value: Value;
  source?: Option<Span>;
  /** 0 to 1; 1 when left out. */
  confidence?: Option<number>;
}
export interface Edit { message: number; at: Span; replacement?: Option<string> }

export interface Turn {
  id: string;
  tenant: string;
  session?: Option<string>;
  task?: Option<string>;
  locale: string;
  now: Instant;
  seed: number;
  headers: Field[];
  attributes: Field[];
}

export interface Description {
  name: string;
  /** Semantic version. */
  version: string;
  /** JSON Schema of the configuration, as an object or written out; `{}` accepts anything. */
  configSchema?: object | string;
  dialogSchema?: number;
  readsDialogSchemas?: number[];
  attributes?: Field[];
}

export interface Dialog { state: string; slots: Slot[]; schema: number }
export type Next = "model" | { tag: "model" } | { tag: "prompt"; val: Message[] } | { tag: "answer"; val: string };
export interface Transition {
  /** As it was, when left out. */
  state?: Option<string>;
  set?: Option<Slot[]>;
  clear?: Option<string[]>;
  /** `"model"` when left out. */
  next?: Option<Next>;
  attributes?: Option<Field[]>;
}

export type Mode = "generate" | "classify" | "embed";
export interface Target {
  model: string;
  modes: Mode[];
  queueDepth: number;
  freeBlocks: number;
  cachedTokens: number;
  ttftP50Ms: number;
  attributes: Field[];
}
export interface Request {
  promptTokens: number;
  messages: number;
  lastUserText: string;
  slots: Slot[];
  wantedModel: string;
  maxTokens?: Option<number>;
  attributes: Field[];
}
export type Grammar = { tag: "json-schema" | "regex" | "lark"; val: string };
export interface Guidance {
  stop?: Option<string[]>;
  bias?: Option<{ text: string; logit: number }[]>;
  grammar?: Option<Grammar>;
}
export interface Plan {
  target: string;
  /** `"generate"` when left out. */
  mode?: Option<Mode>;
  task?: Option<string>;
  /** 0 is the most urgent; 100 when left out. */
  priority?: Option<number>;
  deadlineMs?: Option<number>;
  maxTokens?: Option<number>;
  draftTokens?: Option<number>;
  exitThreshold?: Option<number>;
  compressTo?: Option<number>;
  minimalOutput?: Option<boolean>;
  keepCacheS?: Option<number>;
  guidance?: Option<Guidance>;
  attributes?: Option<Field[]>;
}
export type Decision =
  | { tag: "run"; val: Plan }
  | { tag: "answer"; val: string }
  | { tag: "refuse"; val: { status: number; reason: string } };

export interface Part { message: Message; protected: Span[]; cachedBytes: number }
export interface Budget { keepTokens: number; promptTokens: number; usPerToken: number }

export interface Interest {
  /** `regex` is in the syntax of Rust's `regex` crate. */
  watches?: Option<{ name: string; regex: string }[]>;
  sentTailBytes?: Option<number>;
  tokenProbabilities?: Option<boolean>;
  attributes?: Option<Field[]>;
}
export interface Hit { watch: number; at: Span; cut: boolean }
export interface Window {
  streamId: number;
  sentTail: string;
  pending: string;
  hits: Hit[];
  tokens: { end: number; probability: number }[];
  final: boolean;
}
export interface Verdict {
  window: number;
  replace?: Option<{ at: Span; text: string }[]>;
  holdBytes?: Option<number>;
  stop?: Option<string>;
}
