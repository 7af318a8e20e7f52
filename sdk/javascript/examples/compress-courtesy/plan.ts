// Which deletions are worth it. A target that already holds the KV of the prompt's first bytes loses what it holds from the
// first edit on, so an early edit must save more than it breaks.

import type { Span } from "jackfield";

/** A deletion of a message. */
export interface Candidate {
  message: number;
  at: Span;
  /** Cached bytes of the prompt from `at.start` on: those that an edit here makes worthless. */
  breaksBytes: number;
}

export interface Costs {
  tokensPerByte: number;
  usPerToken: number;
  /** Least saving, in tokens and in microseconds. */
  leastTokens: number;
  leastUs: number;
}

/**
 * The best tail of the candidates, which are in the order of the prompt: once the prefix is broken at some place, every
 * later edit is free. Empty when no tail saves enough.
 *
 * All that is worth it goes, not just enough for the budget: what a rule drops depends on the words alone, so that the
 * prompt of the next turn starts with the same text and finds it in the cache.
 */
export function worthwhile(candidates: Candidate[], costs: Costs): Candidate[] {
  let savedBytes = 0;
  let best = 0;
  let first = candidates.length;
  for (let n = candidates.length - 1; n >= 0; n -= 1) {
    const { at, breaksBytes } = candidates[n];
    savedBytes += at.end - at.start;
    // Dropped bytes that were cached cost nothing before: they are saved on one side and broken on the other.
    const tokens = (savedBytes - breaksBytes) * costs.tokensPerByte;
    if (tokens > best) {
      best = tokens;
      first = n;
    }
  }
  const slowEnough = costs.usPerToken <= 0 || best * costs.usPerToken >= costs.leastUs;
  return best >= costs.leastTokens && slowEnough ? candidates.slice(first) : [];
}
