// What is known of single characters, and the places of a text: indices of JavaScript inside, bytes of UTF-8 outside.

import { Offsets, type Span, utf8Length } from "jackfield";

/** A half-open range of a text, in indices of JavaScript. */
export interface Range {
  start: number;
  end: number;
}

// For the inside of a character class, in patterns with the flag `u`.
export const SPACE = String.raw`\p{White_Space}`;
export const WORD = String.raw`\p{Alphabetic}\p{N}`;
/** Chinese, Japanese and Korean letters and full-width punctuation: what is written without spaces. */
export const WIDE = String.raw`\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef\u{20000}-\u{323af}`;

const small = "abcdefghijklmnopqrstuvwxyz";
const capital = small.toUpperCase();
const digits = "0123456789";
const fullWidth = (text: string) => text.replace(/./g, (c) => String.fromCharCode(c.charCodeAt(0) + 0xfee0));
const folds = new Map<string, string>();
for (const [from, to] of [
  [capital, small],
  [fullWidth(capital), small],
  [fullWidth(small), small],
  [fullWidth(digits), digits],
  ["’\u3000\u00a0", "'  "],
  ["謝請問煩麽麼嗎個說對擾託幫們這類東見誒嘍", "谢请问烦么么吗个说对扰托帮们这类东见诶喽"],
]) {
  for (let at = 0; at < from.length; at += 1) folds.set(from[at], to[at]);
}
/** What folding changes, for the inside of a character class. */
export const UNEVEN = [...folds.keys()].join("");
const even = new RegExp(`[^${UNEVEN}]*`, "y");
const uneven = new RegExp(`[${UNEVEN}]`, "g");

/**
 * Case, width, spaces, apostrophes and a few traditional characters made even, one to one: what is found in the folded text
 * stands at the same place of the text. Chinese punctuation keeps its form.
 */
export function fold(text: string): string {
  return fitsWhole(even, text) ? text : text.replace(uneven, (c) => folds.get(c)!);
}

/** A letter or digit of ASCII, in a folded text. */
export function isPlain(c: string): boolean {
  return (c >= "a" && c <= "z") || (c >= "0" && c <= "9");
}

const spaces = new Set(
  "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a" +
    "\u2028\u2029\u202f\u205f\u3000",
);

export function isSpace(c: string): boolean {
  return spaces.has(c);
}

const outerSpaces = new RegExp(`^[${SPACE}]+|[${SPACE}]+$`, "gu");

export function trim(text: string): string {
  return text.replace(outerSpaces, "");
}

/** Whether the pattern, a sticky one, fits at this place. */
export function fitsAt(pattern: RegExp, text: string, at: number): boolean {
  pattern.lastIndex = at;
  return pattern.test(text);
}

/** Whether the pattern, a sticky one, takes in all of the text. */
export function fitsWhole(pattern: RegExp, text: string): boolean {
  return fitsAt(pattern, text, 0) && pattern.lastIndex === text.length;
}

/** A space between Chinese characters, which says nothing. */
export const wideGap = new RegExp(`(?<=[${WIDE}]) (?=[${WIDE}])`, "u");
const wide = new RegExp(`^[${WIDE}]`, "u");

/** Whether a character is one of those that are written without spaces. */
export function isWide(c: string): boolean {
  return wide.test(c);
}

/** A text to look at. */
export class View {
  readonly folded: string;
  /** Whether it has spaces where a phrase may have fewer: after others, or between Chinese characters. */
  readonly spaced: boolean;

  constructor(readonly source: string) {
    this.folded = fold(source);
    this.spaced = this.folded.includes("  ") || wideGap.test(this.folded);
  }

  /** Behind the spaces at this place. */
  skipSpaces(from: number, limit: number): number {
    let at = from;
    while (at < limit && this.folded[at] === " ") at += 1;
    return at;
  }
}

/** The bytes of ranges that rise. */
export function spansOf(text: string, ranges: Range[]): Span[] {
  let index = 0;
  let byte = 0;
  const byteAt = (next: number) => {
    byte += utf8Length(text.slice(index, next));
    index = next;
    return byte;
  };
  return ranges.map(({ start, end }) => ({ start: byteAt(start), end: byteAt(end) }));
}

/** The indices of spans. */
export function rangesOf(text: string, spans: Span[]): Range[] {
  if (spans.length === 0) return [];
  const offsets = new Offsets(text);
  return spans.map(({ start, end }) => ({ start: offsets.index(start), end: offsets.index(end) }));
}
