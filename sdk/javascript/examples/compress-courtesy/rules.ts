// The shape of `rules.toml`, which the host holds to the schema, and the rules made ready.

import type { Role } from "jackfield";

import { Phrases, type Words } from "./phrases";
import { refusal, surelyHarmless } from "./refusal";

/** The rule file. */
export interface Config {
  when: When;
  /** May be dropped where they are a clause of their own. */
  whole: Words;
  /** May be dropped from the start of a clause. */
  lead: Words;
  /** May be dropped from the end of a clause. */
  tail: Words;
  /** May be dropped anywhere in an English clause. */
  inner: Words;
  /** Of several in a row the last is kept. */
  confirm: Words;
  /** Longer words that start like a phrase and are none: never dropped. */
  trap: Words;
}

/** `[when]`: when it is worth it. */
export interface When {
  /** Prompts of fewer tokens are left alone. */
  least_prompt_tokens: number;
  /** Savings below these are not worth an edit: in tokens that need not be computed, and in microseconds of the target. */
  least_saved_tokens: number;
  least_saved_us: number;
  /** The last message of the user stays byte for byte, or what lies between courtesy at its very start and end. */
  last_user_message: "keep" | "edges";
  /** Whose messages may be edited. By the schema never the system's or a tool's. */
  roles: Role[];
}

export class Rules {
  readonly when: When;
  readonly whole: Phrases;
  readonly lead: Phrases;
  readonly tail: Phrases;
  readonly inner: Phrases;
  readonly confirm: Phrases;
  readonly trap: Phrases;

  constructor({ when, whole, lead, tail, inner, confirm, trap }: Config) {
    this.when = when;
    this.whole = new Phrases(whole);
    this.lead = new Phrases(lead);
    this.tail = new Phrases(tail);
    this.inner = new Phrases(inner);
    this.confirm = new Phrases(confirm);
    this.trap = new Phrases(trap);
    const dropped = [this.whole, this.lead, this.tail, this.inner, this.confirm];
    if (surelyHarmless(dropped)) for (const list of dropped) list.even = true;
    else refuseHarmful({ whole, lead, tail, inner, confirm });
    if (!Number.isFinite(when.least_saved_tokens) || !Number.isFinite(when.least_saved_us)) {
      throw new Error("when: least_saved_tokens and least_saved_us must be numbers");
    }
  }
}

/** Refuses phrases that could take a negation, a number or a quotation with them. */
function refuseHarmful(lists: Record<string, Words>): void {
  for (const [list, { zh = [], en = [] }] of Object.entries(lists)) {
    for (const phrase of [...zh, ...en]) {
      const why = refusal(phrase);
      if (why) throw new Error(`${list}: \`${phrase}\` ${why}; it must not be dropped`);
    }
  }
}
