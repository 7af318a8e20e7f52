// Lists of phrases, found by how they begin.

import { SPACE, UNEVEN, type View, fitsWhole, fold, isPlain, trim } from "./text";

/** A list in both languages. */
export interface Words {
  zh?: string[];
  en?: string[];
}

/** Half of a surrogate pair: no text from the host holds it. */
export const BREAK = "\ud800";

/**
 * A list of phrases. A call asks for few of them, and has no table made for it beforehand: to search one long string, as
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

  /** End of the longest phrase that starts at this place. English ones stand at the edges of words. */
  longestAt(view: View, at: number): number | null {
    const { folded: text, spaced } = view;
    const first = text[at];
    const phrases = this.groups.get(first) ?? this.group(first);
    if (phrases.length === 0 || !isEdge(first, text[at - 1])) return null;
    let longest = at;
    for (const phrase of phrases) {
      let end = at;
      if (text.startsWith(phrase, at)) end += phrase.length;
      else if (spaced) end = looseEnd(phrase, view, at);
      if (end > longest && isEdge(text[end - 1], text[end])) longest = end;
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
    if (fitsWhole(evenPhrases, this.zh) && fitsWhole(evenAscii, this.en)) return;
    const { zh = [], en = [] } = this.words;
    const folded = [...zh, ...en].map((phrase) => trim(fold(phrase)));
    // A space of a phrase takes in all that stand there: a second one is never found.
    this.zh = between(folded.filter((phrase) => phrase !== "" && !phrase.includes("  ")));
    this.en = "";
  }
}

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

/** Where a phrase ends that starts at this place, one space of it standing for several; `at` where it does not. */
function looseEnd(phrase: string, view: View, at: number): number {
  const text = view.folded;
  if (!text.slice(at, at + phrase.length).includes("  ")) return at;
  let end = at;
  for (const [n, word] of phrase.split(" ").entries()) {
    const start = n > 0 ? view.skipSpaces(end, text.length) : end;
    if ((n > 0 && start === end) || !text.startsWith(word, start)) return at;
    end = start + word.length;
  }
  return end;
}

/** Whether a phrase may begin or end in `inner` beside `outer`. */
function isEdge(inner: string, outer: string | undefined): boolean {
  return outer === undefined || !isPlain(inner) || !(isPlain(outer) || "'-_@".includes(outer));
}
