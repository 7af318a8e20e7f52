// What is never touched, whatever the rules say: code, quotations, JSON, URLs, and what the host protects.

import { type Range, SPACE, WIDE, WORD, fitsAt } from "./text";

/** What must stay of a text. */
export class Kept {
  /** Rising; none touches the next. */
  private readonly ranges: Range[] = [];

  constructor(source: string, given: Range[]) {
    const all = [...given, ...specials(source)].filter(({ start, end }) => start < end);
    for (const { start, end } of all.sort((one, other) => one.start - other.start)) {
      const last = this.ranges.at(-1);
      if (last && start <= last.end) last.end = Math.max(last.end, end);
      else this.ranges.push({ start, end });
    }
  }

  /** Whether what stands at this place must stay. */
  has(at: number): boolean {
    return this.touches(at, at + 1);
  }

  /** Whether anything of this must stay. */
  touches(start: number, end: number): boolean {
    return this.next(start).start < end;
  }

  /** The first range that ends behind `at`. */
  next(at: number): Range {
    let low = 0;
    let high = this.ranges.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.ranges[middle].end > at) high = middle;
      else low = middle + 1;
    }
    return this.ranges[low] ?? NONE;
  }
}

const NONE: Range = { start: Infinity, end: Infinity };

/** By its opening mark what a quotation holds: all up to the closing mark, without one to the end of the paragraph. */
const quotations = new Map(
  ["``", "“”", "‘’", "「」", "『』", "《》", "«»", '""', "＂＂"].map(([open, close]) => [
    open,
    new RegExp(`[^${close}\\n]*(?:\\n(?!\\n)[^${close}\\n]*)*${close}?`, "y"),
  ]),
);
/** 'so': only where it closes in its line; otherwise it is an apostrophe. */
const singleQuotation = new RegExp(`[^\\n]*?'(?![${WORD}])`, "uy");

const marks = [...quotations.keys()].join("");
/** The letters of a URL may be full-width from the second on. */
const scheme = String.raw`[hH](?=[tTｔＴ]{2}[pPｐＰ][sSｓＳ]?:\/\/)|[wW](?=[wWｗＷ]{2}\.)`;
const special = [
  "```",
  `[${marks}{[]`,
  `(?<![${WORD}])'`,
  "(?<![^\\n])(?:~~~|>)",
  `(?:${scheme})[^${SPACE}${WIDE}]*`,
];
/** How something special begins; of a URL all of it. One look at a character tells for most that nothing does. */
const opening = new RegExp(`(?=[${marks}{['~>hHwW])(?:${special.join("|")})`, "gu");

/** What is special by its form, in the text's order. */
function specials(source: string): Range[] {
  const found: Range[] = [];
  let unclosed = 0;
  opening.lastIndex = 0;
  for (let match = opening.exec(source); match !== null; match = opening.exec(source)) {
    const [mark] = match;
    const start = match.index;
    // Where one single quote of a line does not close, none behind it does: looking each time would take forever.
    if (mark === "'" && start < unclosed) continue;
    const end = specialEnd(source, mark, start + mark.length);
    if (end === null) {
      unclosed = lineEnd(source, start);
    } else {
      found.push({ start, end });
      opening.lastIndex = end;
    }
  }
  return found;
}

/** End of what this mark begins, which ends at `from`; null for an apostrophe. */
function specialEnd(source: string, mark: string, from: number): number | null {
  const quotation = mark === "'" ? singleQuotation : quotations.get(mark);
  if (quotation) return fitsAt(quotation, source, from) ? quotation.lastIndex : null;
  switch (mark) {
    case "```":
    case "~~~":
      return fenceEnd(source, mark, from);
    case "{":
    case "[":
      return bracketEnd(source, from);
    case ">":
      return lineEnd(source, from);
    default:
      return from;
  }
}

function fenceEnd(source: string, fence: string, from: number): number {
  const at = source.indexOf(fence, from);
  return at < 0 ? source.length : at + fence.length;
}

const bracketOrString = /[{}[\]]|"[^"\\]*(?:\\[^][^"\\]*)*"?/g;

/** Behind the bracket that closes the one before, strings skipped; an open one protects the rest of the text. */
function bracketEnd(source: string, from: number): number {
  let depth = 1;
  bracketOrString.lastIndex = from;
  for (let match = bracketOrString.exec(source); match !== null; match = bracketOrString.exec(source)) {
    if (match[0] === "{" || match[0] === "[") depth += 1;
    else if (match[0] === "}" || match[0] === "]") depth -= 1;
    if (depth === 0) return bracketOrString.lastIndex;
  }
  return source.length;
}

function lineEnd(source: string, from: number): number {
  const at = source.indexOf("\n", from);
  return at < 0 ? source.length : at;
}
