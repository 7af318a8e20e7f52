// Drops what a prompt does not need to be understood (greetings, thanks, fillers, repeated confirmations, vague tails) by
// the lists of the rules. The same policy as plugins/compress-courtesy, with its rules, its schema and its cases.

import { type Budget, type Compressor, type Edit, type Part, type Turn, compressor, utf8Length } from "jackfield";

import configSchema from "./config.schema.json";
import { deletions, edges } from "./find";
import { type Candidate, worthwhile } from "./plan";
import { type Config, Rules } from "./rules";
import { type Range, rangesOf, spansOf } from "./text";

class CompressCourtesy implements Compressor {
  static description = { name: "compress-courtesy", version: "0.1.0", configSchema };

  private readonly rules: Rules;

  constructor(config: Config) {
    this.rules = new Rules(config);
  }

  compress(turn: Turn, parts: Part[], { promptTokens, keepTokens, usPerToken }: Budget): Edit[] {
    const { when } = this.rules;
    if (promptTokens <= keepTokens || promptTokens < when.least_prompt_tokens) return [];
    const candidates = this.candidates(parts);
    if (candidates.length === 0) return [];
    const bytes = parts.reduce((sum, part) => sum + utf8Length(part.message.text), 0);
    const worth = worthwhile(candidates, {
      tokensPerByte: promptTokens / bytes,
      usPerToken,
      leastTokens: when.least_saved_tokens,
      leastUs: when.least_saved_us,
    });
    return worth.map(({ message, at }) => ({ message, at }));
  }

  /** All deletions of a prompt, in its order. */
  private candidates(parts: Part[]): Candidate[] {
    const lastUser = parts.findLastIndex((part) => part.message.role === "user");
    let behind = parts.reduce((sum, part) => sum + part.cachedBytes, 0);
    return parts.flatMap((part, message) => {
      behind -= part.cachedBytes;
      const cachedBehind = behind;
      const spans = spansOf(part.message.text, this.deletions(part, message === lastUser));
      return spans.map((at) => ({ message, at, breaksBytes: Math.max(part.cachedBytes - at.start, 0) + cachedBehind }));
    });
  }

  private deletions({ message: { role, text }, protected: spans }: Part, lastUser: boolean): Range[] {
    const { roles, last_user_message } = this.rules.when;
    if (!roles.includes(role) || (lastUser && last_user_message === "keep")) return [];
    const found = deletions(this.rules, text, rangesOf(text, spans));
    return lastUser ? edges(text, found) : found;
  }
}

export const { lifecycle, compression } = compressor(CompressCourtesy);
