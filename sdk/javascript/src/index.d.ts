/**
 * The JavaScript SDK for Jackfield policies.
 *
 * A policy is a class: its constructor is given the configuration (`rules.toml`, as an object), one method is called once
 * a turn or step. `export const { lifecycle, routing } = router(MyPolicy);` makes it the component's policy. Whatever it
 * throws is the error of that call; `null` and `undefined` mean the same, and what is left out has its default.
 *
 * A call is a pure function of its arguments: no clock, no randomness, and nothing that a call keeps is seen by the next.
 */

/// <reference path="./imports.d.ts" />

export * from "./types.js";

import type {
  Budget, Decision, Description, Dialog, Edit, Interest, Message, Next, Part, Plan, Request, Span, Target, Transition,
  Turn, Verdict, Window,
} from "./types.js";

/** A policy's class. An error of the constructor refuses the activation; its text is shown to the operator. */
export interface PolicyClass<Policy> {
  /** Static: what the policy says of itself. */
  readonly description: Description;
  /** `config` is valid by the description's `configSchema`. Must be deterministic: it runs again in each new instance. */
  new (config: any): Policy;
}

export interface SlotExtractor {
  /** `recent` is never empty; its last message is the user's words of this turn. Nothing answered: nothing changes. */
  extract(turn: Turn, recent: Message[], dialog: Dialog): Transition | null | undefined | void;
}
export interface Router {
  /** `fleet` is never empty; its first target is the host's own choice. */
  route(turn: Turn, request: Request, fleet: Target[]): Decision;
}
export interface Compressor {
  /** Called once a turn that is to be compressed. */
  compress(turn: Turn, parts: Part[], budget: Budget): Edit[] | null | undefined | void;
}
export interface OutputFilter {
  /** What the host looks for. Left out, or without watches: every window comes to `review`. */
  interests?(): Interest;
  /** Called for windows of unsent text, of several streams at once. A window without a verdict passes. */
  review(windows: Window[]): Verdict[] | null | undefined | void;
}

/** What the component exports. */
export interface Lifecycle {
  describe(): unknown;
  configure(config: string): void;
}

export function slotExtractor(policy: PolicyClass<SlotExtractor>): { lifecycle: Lifecycle; slotExtraction: object };
export function router(policy: PolicyClass<Router>): { lifecycle: Lifecycle; routing: object };
export function compressor(policy: PolicyClass<Compressor>): { lifecycle: Lifecycle; compression: object };
export function outputFilter(policy: PolicyClass<OutputFilter>): { lifecycle: Lifecycle; outputFiltering: object };

/** Run by this plan. */
export function run(plan: Plan): Decision;
/** Generate on this target, everything else left to the host. */
export function runOn(target: Target): Decision;
/** Answer now; the model is not called. For routers, and as the `next` of slot extractors. */
export function answer(text: string): { tag: "answer"; val: string };
/** Refuse with a status of 400 to 599. */
export function refuse(status: number, reason: string): Decision;
/** Go on to the model with these messages instead. */
export function prompt(messages: Message[]): Next;

/** Length in UTF-8 bytes. A lone surrogate counts as U+FFFD, which stands in its place once it leaves the policy. */
export function utf8Length(text: string): number;

/** Between a text's UTF-8 bytes, in which the contract counts, and the indices of JavaScript. */
export class Offsets {
  constructor(text: string);
  /** The byte offset of an index; within a surrogate pair, that of the pair. */
  byte(index: number): number;
  /** The index of a byte offset; within a scalar, that of the scalar. */
  index(byte: number): number;
  /** The span of `text.slice(start, end)`. */
  span(start: number, end: number): Span;
  /** The text of a span. */
  slice(span: Span): string;
}

/** A text made even for matching: full-width forms narrowed, letters in lower case. Knows where each part came from. */
export class Folded {
  constructor(original: string);
  /** The folded text. */
  readonly text: string;
  /** Whether the term, folded too, stands in the text by the rule of `findTerm`. */
  has(term: string | Folded): boolean;
  /** The span in the original text where it first does. */
  find(term: string | Folded): Span | null;
  /** The span of the original text that `text.slice(start, end)` came from: whole scalars. */
  span(start: number, end: number): Span;
}

/**
 * Where `term` first stands in `text`, as indices. An ASCII letter or digit at an edge of the term must not touch another
 * one outside, so that `cat` is not found in `category`, but is in `我的cat呢`. An empty term is never found.
 */
export function findTerm(text: string, term: string): { start: number; end: number } | null;
/** Full-width forms in ASCII (`３` → `3`, `－` → `-`, the ideographic space → space), all else as it is; the same length. */
export function narrow(text: string): string;
/** Whether there is nothing but white space by Unicode, which \u200b and \ufeff are not. */
export function isBlank(text: string): boolean;
/** The value of a digit, ASCII or full-width. */
export function digit(c: string): number | null;
/** Whether it is one Chinese character: the unified ideographs, their extensions and 〇. */
export function isHan(c: string): boolean;
