/** A plan but for its target, which the fleet of the turn decides. */
export class PlanRule {
  /** The rule's own fields, filled up from the defaults, and checked. */
  constructor(rule, own, usual) {
    this.rule = rule;
    this.fields = fill(own, usual);
    this.mode = this.fields.mode ?? "generate";
    check(this.fields);
  }

  /** The plan for this turn; nothing where no target does what is asked. */
  plan({ turn, request }, fleet) {
    const { fields, mode } = this;
    const able = fleet.filter((target) => target.modes.includes(mode));
    const target = this.target(able, request);
    if (!target) return undefined;
    return {
      target: target.model,
      mode,
      task: fields.task ?? turn.task,
      priority: fields.priority,
      deadlineMs: fields.deadline_ms,
      maxTokens: fields.max_tokens,
      draftTokens: fields.draft_tokens,
      exitThreshold: fields.exit_threshold,
      compressTo: fields.compress_to,
      minimalOutput: fields.minimal_output,
      keepCacheS: fields.keep_cache_s,
      guidance: guidance(fields),
      attributes: [{ name: "rule", value: this.rule }],
    };
  }

  target(able, request) {
    switch (this.fields.target) {
      case undefined:
        // The model asked for, or else the host's own choice.
        return able.find((target) => target.model === request.wantedModel) ?? able[0];
      case "least-busy":
        return able.reduce((best, target) => (best && !busier(best, target) ? best : target), undefined);
      default:
        return able.find((target) => target.model === this.fields.target);
    }
  }
}

/** Where queues are equal, the one that holds more of this prompt is the less busy. */
function busier(one, other) {
  if (one.queueDepth !== other.queueDepth) return one.queueDepth > other.queueDepth;
  return one.cachedTokens < other.cachedTokens;
}

function fill(own, usual) {
  const filled = { ...usual, ...own };
  // An answer has one form: a rule's own takes the place of the default's, of whichever kind.
  if (own.json_schema !== undefined || own.regex !== undefined) {
    filled.json_schema = own.json_schema;
    filled.regex = own.regex;
  }
  return filled;
}

/** What the host would refuse in every turn is refused here, once. */
function check(fields) {
  const wrong = mistake(fields);
  if (wrong) throw new Error(wrong);
}

function mistake({ deadline_ms, max_tokens, compress_to, exit_threshold, json_schema, regex, stop }) {
  if (deadline_ms === 0) return "`deadline_ms` must not be 0";
  if (max_tokens === 0) return "`max_tokens` must not be 0";
  if (compress_to <= 0 || compress_to > 1) return "`compress_to` must be above 0 and at most 1";
  if (exit_threshold < 0 || exit_threshold > 1) return "`exit_threshold` must be from 0 to 1";
  if (json_schema !== undefined && regex !== undefined) return "one of `json_schema` and `regex`, not both";
  if (stop?.length > 16) return "`stop` may hold 16 texts at most";
  return stop?.includes("") ? "`stop` must not hold an empty text" : null;
}

function guidance({ json_schema: schema, regex, stop = [] }) {
  /** @type {import("jackfield").Guidance["grammar"]} */
  const grammar =
    schema !== undefined ? { tag: "json-schema", val: schema } : regex !== undefined ? { tag: "regex", val: regex } : null;
  return grammar || stop.length > 0 ? { stop, grammar } : null;
}
