// Masks names, and ends an answer before a forbidden one. The host looks for them; this is called only where it found one.

import { outputFilter, utf8Length } from "jackfield";

import configSchema from "./config.schema.json";

/** Index of the watch for forbidden names. */
const FORBIDDEN = 1;

// A name goes into a pattern as it is, and everything that means something there is ASCII.
const notPlain = /[^A-Za-z0-9\u0080-\u{10ffff}]/u;

class Names {
  static description = { name: "{{name}}", version: "0.1.0", configSchema };

  constructor({ mask, names, forbidden = [] }) {
    const odd = [...names, ...forbidden].find((name) => notPlain.test(name));
    if (odd !== undefined) throw new Error(`\`${odd}\` has more in it than letters and digits`);
    this.mask = mask;
    this.names = names;
    this.forbidden = forbidden;
  }

  interests() {
    // One pattern for all names of a list, so that no two of its hits overlap.
    const watch = (name, names) => ({ name, regex: `(?i:${names.join("|")})` });
    const watches = [watch("names", this.names)];
    if (this.forbidden.length > 0) watches.push(watch("forbidden", this.forbidden));
    return { watches };
  }

  review(windows) {
    return windows.map((seen, window) => this.verdict(window, seen));
  }

  verdict(window, { pending, hits }) {
    const forbidden = hits.find((hit) => hit.watch === FORBIDDEN);
    const masked = hits.filter((hit) => hit.watch !== FORBIDDEN && !(forbidden && hit.at.end > forbidden.at.start));
    return {
      window,
      replace: masked.map(({ at }) => ({ at, text: this.mask })),
      holdBytes: forbidden ? utf8Length(pending) - forbidden.at.start : 0,
      stop: forbidden ? "a forbidden name" : null,
    };
  }
}

export const { lifecycle, outputFiltering } = outputFilter(Names);
