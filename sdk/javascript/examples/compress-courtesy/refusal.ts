// What no phrase of the rules may hold, since it could take meaning with it: negations, digits, signs.

import { isBlank } from "jackfield";

import { BREAK, type Phrases, phrasesOf } from "./phrases";
import { UNEVEN, WORD, fitsWhole, fold } from "./text";

const words = "not|no|never|none|nothing|nobody|nor|without|cannot|neither|dont";
/** In a folded text. 非常 and 特别 hold the character of a negation and are none. */
const negation = new RegExp(
  [
    "[不没沒无無勿未莫甭]|非(?!常)|(?<![特分差级告区辨识类性个派])[别別]",
    `n't(?![a-z0-9])|(?<![a-z0-9])(?:${words})(?![a-z0-9])`,
  ].join("|"),
);
const digit = /\p{N}/u;
const sign = new RegExp(`[^${WORD} '’]`, "u");

/** Why a phrase must not be in a list of things to drop; null for one that may. */
export function refusal(phrase: string): string | null {
  if (isBlank(phrase)) return "is empty";
  if (digit.test(phrase)) return "holds a digit";
  if (negation.test(fold(phrase))) return "holds a negation";
  return sign.test(phrase) ? "holds a sign: clauses are compared without their punctuation" : null;
}

// Most English words begin like no negation, and need no second look.
const doubtful = "n[oe]|cannot|dont|without";
const english = phrasesOf(`[abe-mo-vx-z][a-z]*|(?!${doubtful})[a-z]+(?:'(?!t|${doubtful})[a-z]*)?`);
// Of small letters, breaks and Chinese characters those that folding does not change and no negation holds.
const plain = `[^\\0-\`nw{-\\u4dff\\ua000-\\ud7ff\\ud801-\\uffff${UNEVEN}不没沒无無勿未莫甭非别別]*`;
const chinese = new RegExp(`${plain}(?:(?:非(?=常)|(?<=特)别)${plain})*`, "y");

/**
 * Whether surely none of these phrases is to be refused, nor changed by folding. Asked before each call, and therefore in
 * one sweep; what is seldom found in a list is left to `refusal`.
 */
export function surelyHarmless(lists: Phrases[]): boolean {
  const all = (language: "zh" | "en") => lists.map((list) => list[language]).join("");
  return fitsWhole(chinese, all("zh")) && fitsWhole(english, all("en"));
}
