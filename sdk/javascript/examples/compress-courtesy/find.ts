// What can go from one text: ranges that rise and do not touch what must stay. Everything is a pure deletion, so that what
// is left is the original with holes.

import { isBlank } from "jackfield";

import { type Clause, Strength, split } from "./clauses";
import { Kept } from "./guard";
import type { Phrases } from "./phrases";
import type { Rules } from "./rules";
import { type Range, SPACE, WIDE, WORD, View, fitsAt, isPlain, isSpace } from "./text";

/** Deletions of a text; none when no word would be left. */
export function deletions(rules: Rules, source: string, given: Range[]): Range[] {
  const found = new Finder(rules, new View(source), new Kept(source, given)).all();
  return found.length > 0 && leavesWord(source, found) ? found : [];
}

/** Those deletions with nothing but other deletions and white space before them, or behind them. */
export function edges(source: string, all: Range[]): Range[] {
  const inside = all.findIndex(({ start }, n) => !isBlank(source.slice(n > 0 ? all[n - 1].end : 0, start)));
  if (inside < 0) return all;
  const last = all.findLastIndex(({ end }, n) => !isBlank(source.slice(end, all[n + 1]?.start)));
  return [...all.slice(0, inside), ...all.slice(Math.max(inside, last + 1))];
}

const word = new RegExp(`[${WORD}]`, "u");

function leavesWord(source: string, found: Range[]): boolean {
  let from = 0;
  for (const { start, end } of found) {
    if (word.test(source.slice(from, start))) return true;
    from = end;
  }
  return word.test(source.slice(from));
}

/**
 * What is to become of a clause: it stays, it goes as a whole, or it is made of confirmations alone, of which the last
 * starts at this place.
 */
type Fate = "keep" | "drop" | number;

const spaceOrWide = new RegExp(`[${SPACE}${WIDE}]`, "uy");
const upperCase = /\p{Uppercase}/u;

class Finder {
  private readonly text: string;
  /** What the rules would drop, as far as it may go. */
  private readonly claims: Range[] = [];
  /** The space that was found last. */
  private space = -1;

  constructor(
    private readonly rules: Rules,
    private readonly view: View,
    private readonly kept: Kept,
  ) {
    this.text = view.folded;
  }

  all(): Range[] {
    const clauses = split(this.text, this.kept);
    const fates = this.fates(clauses);
    this.confirmations(clauses, fates);
    for (let n = 0; n < clauses.length; n += 1) if (fates[n] === "keep") this.within(clauses[n]);
    this.wholeClauses(clauses, fates);
    // Two rules may claim the same characters: the first keeps them.
    let end = 0;
    return this.claims.sort((one, other) => one.start - other.start).filter((range) => {
      const free = range.start >= end;
      if (free) end = range.end;
      return free;
    });
  }

  private claim(start: number, end: number): void {
    if (start < end && !this.kept.touches(start, end) && !this.glues(start, end)) this.claims.push({ start, end });
  }

  /** Whether what stands around a deletion would become one word, or part of a URL or quotation before it. */
  private glues(start: number, end: number): boolean {
    const { text, kept } = this;
    if (start === 0 || end === text.length) return false;
    if (kept.has(start - 1) && (kept.has(end) || !fitsAt(spaceOrWide, text, end))) return true;
    return isPlain(text[start - 1]) && isPlain(text[end]);
  }

  private fates(clauses: Clause[]): Fate[] {
    const fates: Fate[] = [];
    while (fates.length < clauses.length) {
      const last = this.spanned(clauses, fates.length);
      if (last === null) fates.push(this.fate(clauses[fates.length]));
      else while (fates.length <= last) fates.push("drop");
    }
    return fates;
  }

  /** The last of the clauses from `first` on that are one phrase: 谢谢 大家, between which only a space separates. */
  private spanned(clauses: Clause[], first: number): number | null {
    const { start, end, strength } = clauses[first];
    if (strength !== Strength.Space) return null;
    const stop = this.phraseAt(start, this.text.length, this.rules.whole);
    if (stop === null || stop <= end) return null;
    let last = first;
    while (clauses[last].end < stop) last += 1;
    return clauses[last].end === stop ? last : null;
  }

  private fate({ start, end }: Clause): Fate {
    if (start === end || this.kept.touches(start, end)) return "keep";
    const { confirm, whole, lead } = this.rules;
    return this.covered(start, end, confirm) ?? (this.covered(start, end, whole, lead) === null ? "keep" : "drop");
  }

  /** Whether this is made of such phrases alone: where the last of them starts. */
  private covered(start: number, limit: number, list: Phrases, other?: Phrases): number | null {
    let last = start;
    for (let at = start; at < limit; at = this.view.skipSpaces(at, limit)) {
      last = at;
      const end = this.phraseAt(at, limit, list, other);
      if (end === null) return null;
      at = end;
    }
    return last;
  }

  /** End of the longest phrase of one list or the other that starts here, ends by `limit` and is no trap. */
  private phraseAt(at: number, limit: number, list: Phrases, other?: Phrases): number | null {
    const end = Math.max(list.longestAt(this.view, at, limit) ?? at, other?.longestAt(this.view, at, limit) ?? at);
    if (end === at || this.kept.touches(at, end)) return null;
    const trap = this.rules.trap.longestAt(this.view, at, limit);
    return trap !== null && trap > end ? null : end;
  }

  /** 好的好的 → 好的; of clauses of confirmations in a row the last stays. */
  private confirmations(clauses: Clause[], fates: Fate[]): void {
    clauses.forEach(({ start, next, strength }, n) => {
      const last = fates[n];
      if (typeof last !== "number") return;
      const followed = typeof fates[n + 1] === "number" && strength < Strength.Line;
      this.claim(start, followed ? next : last);
    });
  }

  /** The start, the end and the inside of a clause that stays. */
  private within(clause: Clause): void {
    const start = this.leadEnd(clause);
    const end = this.tailStart(start, clause.end);
    this.claim(clause.start, start);
    this.claim(end, clause.end);
    this.inner(start, end);
  }

  /** Behind the leading phrases. Greetings without punctuation (你好请问…) go when a leading phrase follows them. */
  private leadEnd({ start, end: limit }: Clause): number {
    const { lead, whole } = this.rules;
    let safe = start;
    for (let at = start; at < limit; ) {
      const opened = this.phraseAt(at, limit, lead);
      const end = opened ?? this.phraseAt(at, limit, whole);
      if (end === null) break;
      at = this.view.skipSpaces(end, limit);
      if (opened !== null) safe = at;
    }
    return safe < limit ? safe : start;
  }

  /** Before a trailing phrase and its spaces. */
  private tailStart(start: number, limit: number): number {
    const { view, text, kept, rules } = this;
    if (start === limit || !rules.tail.endWith(text[limit - 1])) return limit;
    let at = start + 1;
    const isTail = () => rules.tail.longestAt(view, at, limit) === limit && !this.trapped(start, at, limit) && !kept.touches(at, limit);
    while (at < limit && !isTail()) at += 1;
    if (at >= limit) return limit;
    while (at > start && text[at - 1] === " ") at -= 1;
    return at > start ? at : limit;
  }

  /** Whether a trap that starts from `start` on, and ends by `limit`, covers `at`. */
  private trapped(start: number, at: number, limit: number): boolean {
    for (let from = start; from <= at; from += 1) {
      const end = this.rules.trap.longestAt(this.view, from, limit);
      if (end !== null && end > at) return true;
    }
    return false;
  }

  /** um, uh: with the spaces behind, between spaces only, and never in capitals (UM is a name). */
  private inner(start: number, limit: number): void {
    const { view, text, kept, rules } = this;
    for (let at = start; at < limit; ) {
      const end = rules.inner.longestAt(view, at, limit);
      const between = end !== null && end < limit && text[end] === " " && !kept.has(end);
      if (between && !upperCase.test(view.source.slice(at + 1, end))) {
        const next = view.skipSpaces(end, limit);
        this.claim(at, next);
        at = next;
      } else {
        at = this.spaceFrom(at) + 1;
      }
    }
  }

  /** Where the next space stands. The places asked for rise, so that no part of the text is searched twice. */
  private spaceFrom(at: number): number {
    if (this.space < at) {
      const found = this.text.indexOf(" ", at);
      this.space = found < 0 ? Infinity : found;
    }
    return this.space;
  }

  /** Runs of clauses that go, with one of the two pieces of punctuation around them: the stronger one stays. */
  private wholeClauses(clauses: Clause[], fates: Fate[]): void {
    for (let n = 0; n < clauses.length; n += 1) {
      if (fates[n] !== "drop") continue;
      const first = n;
      while (fates[n + 1] === "drop") n += 1;
      this.run(clauses, first, n);
    }
  }

  /** Clauses `first` to `last` go. */
  private run(clauses: Clause[], first: number, last: number): void {
    let { start } = clauses[first];
    const { end, next, strength } = clauses[last];
    const before = clauses[first - 1];
    const atEnd = last === clauses.length - 1;
    if (before && (before.strength < strength || (atEnd && before.strength < Strength.Stop))) {
      // …，谢谢！ keeps the mark behind; …，谢谢 at the end of the text loses the comma too.
      this.claim(before.end, end);
      return;
    }
    if (before && atEnd) while (start > before.end && isSpace(this.text[start - 1])) start -= 1;
    this.claim(start, next);
  }
}
