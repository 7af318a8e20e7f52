// Remembers the city that the user named.

import { Folded, slotExtractor } from "jackfield";

import configSchema from "./config.schema.json";

class Cities {
  static description = { name: "{{name}}", version: "0.1.0", configSchema, dialogSchema: 1 };

  constructor({ cities, forget = [] }) {
    this.cities = cities.map((name) => ({ name, folded: new Folded(name) }));
    this.forget = forget.map((word) => new Folded(word));
  }

  extract(turn, recent, dialog) {
    const text = new Folded(recent.at(-1).text);
    if (this.forget.some((word) => text.has(word))) return { state: "", clear: ["city"] };
    const city = this.city(text);
    // What is left out stays as it is.
    return city ? { state: "city-known", set: [city] } : {};
  }

  /** The first city of the rules that is in the text, as a slot. */
  city(text) {
    for (const { name, folded } of this.cities) {
      const source = text.find(folded);
      if (source) return { name: "city", value: { tag: /** @type {const} */ ("choice"), val: name }, source };
    }
    return null;
  }
}

export const { lifecycle, slotExtraction } = slotExtractor(Cities);
