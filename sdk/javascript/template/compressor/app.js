// Drops a greeting at the beginning of the user's messages.

import { compressor, isBlank, utf8Length } from "jackfield";

import configSchema from "./config.schema.json";

class NoGreetings {
  static description = { name: "{{name}}", version: "0.1.0", configSchema };

  constructor({ greetings }) {
    this.greetings = greetings;
  }

  compress(turn, parts, budget) {
    return parts.flatMap((part, message) => {
      const end = this.greetingBytes(part);
      return end > 0 ? [{ message, at: { start: 0, end }, replacement: "" }] : [];
    });
  }

  /** Length of the greeting that may be dropped from this message; 0 where there is none. */
  greetingBytes({ message: { role, text }, protected: spans, cachedBytes }) {
    // What the target holds already costs nothing, and an edit there would make it compute everything again.
    if (role !== "user" || cachedBytes > 0) return 0;
    const greeting = this.greetings.find((greeting) => text.startsWith(greeting));
    if (!greeting || isBlank(text.slice(greeting.length))) return 0;
    // The contract counts bytes of UTF-8, JavaScript does not.
    const end = utf8Length(greeting);
    return spans.some((span) => span.start < end) ? 0 : end;
  }
}

export const { lifecycle, compression } = compressor(NoGreetings);
