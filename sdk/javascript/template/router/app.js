// Refuses what is too long and answers what has a fixed answer; everything else runs as the host would have it.

import { Folded, answer, refuse, router, runOn } from "jackfield";

import configSchema from "./config.schema.json";

class FixedReplies {
  static description = { name: "{{name}}", version: "0.1.0", configSchema };

  constructor({ max_prompt_tokens = Infinity, reply = [] }) {
    this.maxPromptTokens = max_prompt_tokens;
    this.replies = reply.map(({ word, text }) => ({ word: new Folded(word), text }));
  }

  route(turn, request, fleet) {
    const tokens = request.promptTokens;
    if (tokens > this.maxPromptTokens) {
      return refuse(413, `the prompt has ${tokens} tokens, more than ${this.maxPromptTokens}`);
    }
    const asked = new Folded(request.lastUserText);
    const reply = this.replies.find(({ word }) => asked.has(word));
    if (reply) return answer(reply.text);
    if (fleet.length === 0) throw new Error("the fleet is empty");
    return runOn(fleet[0]);
  }
}

export const { lifecycle, routing } = router(FixedReplies);
