// Clauses: what stands between two pieces of punctuation. Phrases are compared with whole clauses or with their edges,
// never with letters inside one, so that 好的 is found in 好的，… and not in 好的公司.

import type { Kept } from "./guard";
import { type Range, SPACE, WIDE, isSpace } from "./text";

/** How much a piece of punctuation separates, the least first. */
export enum Strength {
  /** Nothing: the end of the text. */
  None,
  /** A space beside Chinese text. */
  Space,
  /** A comma, colon or dash. */
  Comma,
  /** The end of a sentence. */
  Stop,
  /** The end of a line. */
  Line,
}

/** A clause, without spaces around its words, and the punctuation behind it. */
export interface Clause extends Range {
  /** Where the next clause starts: behind the punctuation and its spaces. */
  next: number;
  /** Of the strongest piece of punctuation behind it. */
  strength: Strength;
}

const strengths = new Map<string, Strength>();
for (const c of "\n\r") strengths.set(c, Strength.Line);
for (const c of "。！？!?；;….") strengths.set(c, Strength.Stop);
for (const c of "，、：～—,:~") strengths.set(c, Strength.Comma);

// Signs of ASCII separate in some places only.
const separator = [
  String.raw`[\n\r。！？!?；;…，、：～—]`,
  String.raw`\.(?=[.${SPACE}]|$)`,
  String.raw`,(?!\d)|(?<!\d),`,
  String.raw`:(?=[${SPACE}]|$)`,
  String.raw`(?<=[${WIDE}])(?::|~(?!\d)| (?=[${WIDE}]))`,
].join("|");
/** Separators and spaces. One look at a character tells for most that none begins there. */
const gap = new RegExp(`(?=[${[...strengths.keys()].join("")} ])(?:${separator})(?:${separator}|[${SPACE}])*`, "gu");

/** Splits a folded text. What is kept never separates. */
export function split(text: string, kept: Kept): Clause[] {
  const clauses: Clause[] = [];
  let start = 0;
  while (start < text.length && isSpace(text[start]) && !kept.has(start)) start += 1;
  while (start < text.length) {
    const { start: end, end: next } = gapFrom(text, start, kept);
    clauses.push({ start, end: trimmed(text, start, end, kept), next, strength: strength(text, end, next) });
    start = next;
  }
  return clauses;
}

/** The next punctuation with its spaces; where there is none, the end of the text. */
function gapFrom(text: string, from: number, kept: Kept): Range {
  gap.lastIndex = from;
  for (let match = gap.exec(text); match !== null; match = gap.exec(text)) {
    const stays = kept.next(match.index);
    if (match.index < stays.start) return { start: match.index, end: Math.min(gap.lastIndex, stays.start) };
    gap.lastIndex = stays.end;
  }
  return { start: text.length, end: text.length };
}

/** The end without the white space before it. */
function trimmed(text: string, start: number, end: number, kept: Kept): number {
  let last = end;
  while (last > start && isSpace(text[last - 1]) && !kept.has(last - 1)) last -= 1;
  return last;
}

/** Of a gap, in which whatever is not white space separates, and so does its beginning. */
function strength(text: string, start: number, end: number): Strength {
  let strongest = start < end ? Strength.Space : Strength.None;
  for (let at = start; at < end; at += 1) strongest = Math.max(strongest, strengths.get(text[at]) ?? strongest);
  return strongest;
}
