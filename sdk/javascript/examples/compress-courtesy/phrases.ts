// Lists of phrases, found by how they begin.

import { SPACE, UNEVEN, type View, fitsWhole, fold, isPlain, isWide, trim, wideGap } from "./text";

/** A list in both languages. */
export interface Words {
  zh?: string[];
  en?: string[];
}

/** Half of a surrogate pair: no text from the host holds it. */
export const BREAK = "\ud800";

/**
 * A list of phrases. One space of a phrase stands for any number, and between two Chinese characters for none as well: 谢谢 大家
 * and 谢谢大家 are one. A call asks for few of them, and has no table made for it beforehand: to search one long string, as
 * the engine itself does it, costs less than to make a table of all.
 */
export class Phrases {
  /** Each phrase between two breaks. */
  zh: string;
  /** The same; of ASCII alone as soon as they are even. */
  en: string;
  /** Whether they are known to be folded, with single spaces within and none around. */
  even = false;
  /** By their first unit, as far as it was asked for. */
  private readonly groups = new Map<string, string[]>();

  constructor(private readonly words: Words) {
    this.zh = between(words.zh);
    this.en = between(words.en);
  }

  /** End of the longest phrase that starts at this place and ends by `limit`. English ones stand at the edges of words. */
  longestAt(view: View, at: number, limit: number): number | null {
    const { folded: text, spaced } = view;
    const first = text[at];
    const phrases = this.groups.get(first) ?? this.group(first);
    if (phrases.length === 0 || !isEdge(first, text[at - 1])) return null;
    let longest = at;
    for (const phrase of phrases) {
      let end = at;
      if (text.startsWith(phrase, at)) end += phrase.length;
      else if (spaced) end = looseEnd(phrase, view, at);
      if (end > longest && end <= limit && isEdge(text[end - 1], text[end])) longest = end;
    }
    return longest > at ? longest : null;
  }

  /** Whether a phrase ends with this unit. */
  endWith(last: string): boolean {
    if (!this.even) this.makeEven();
    return this.zh.includes(last + BREAK) || this.en.includes(last + BREAK);
  }

  private group(first: string): string[] {
    if (!this.even) this.makeEven();
    const group: string[] = [];
    collect(this.zh, first, group);
    if (first <= "\x7f") collect(this.en, first, group);
    this.groups.set(first, group);
    return group;
  }

  private makeEven(): void {
    this.even = true;
    if (fitsWhole(evenPhrases, this.zh) && !wideGap.test(this.zh) && fitsWhole(evenAscii, this.en)) return;
    const { zh = [], en = [] } = this.words;
    const folded = [...zh, ...en].map((phrase) => trim(fold(phrase)).replace(spaces, " ").replace(wideGaps, ""));
    this.zh = between(folded.filter((phrase) => phrase !== ""));
    this.en = "";
  }
}

const spaces = / +/g;
const wideGaps = new RegExp(wideGap, "gu");
const evenPhrases = phrasesOf(`[^${BREAK}${SPACE}${UNEVEN}]+`);
const evenAscii = phrasesOf("[!-@[-~]+");

/** A pattern for lists: phrases of such words, with single spaces between them, and breaks around each phrase. */
export function phrasesOf(word: string): RegExp {
  return new RegExp(`(?:${BREAK}(?:(?:${word})(?: (?:${word}))*${BREAK})+)*`, "uy");
}

function between(phrases: string[] = []): string {
  return phrases.length > 0 ? BREAK + phrases.join(BREAK) + BREAK : "";
}

function collect(list: string, first: string, group: string[]): void {
  for (let at = list.indexOf(BREAK + first); at >= 0; ) {
    const end = list.indexOf(BREAK, at + 1);
    group.push(list.slice(at + 1, end));
    at = list.indexOf(BREAK + first, end);
  }
}

/** Where a phrase ends that starts at this place, however many spaces stand there; `at` where it does not. */
function looseEnd(phrase: string, view: View, at: number): number {
  const text = view.folded;
  let end = at;
  let before = " ";
  for (const c of phrase) {
    if (text[end] === " " && isWide(before) && isWide(c)) end = view.skipSpaces(end, text.length);
    if (!text.startsWith(c, end)) return at;
    end += c.length;
    if (c === " ") end = view.skipSpaces(end, text.length);
    before = c;
  }
  return end;
}

/** Whether a phrase may begin or end in `inner` beside `outer`. */
function isEdge(inner: string, outer: string | undefined): boolean {
  return outer === undefined || !isPlain(inner) || !(isPlain(outer) || "'-_@".includes(outer));
}
