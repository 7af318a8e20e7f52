/** A plan but for its target, which the fleet of the turn decides. */
export class PlanRule {
  /** The rule's own fields, filled up from the defaults, and checked. */
  constructor(rule, own, usual) {
    const fields = fill(own, usual);
    check(fields);
    this.choice = fields.target;
    this.mode = fields.mode ?? "generate";
    this.fields = {
      mode: this.mode,
      task: fields.task,
      priority: fields.priority,
      deadlineMs: fields.deadline_ms,
      maxTokens: fields.max_tokens,
      draftTokens: fields.draft_tokens,
      exitThreshold: fields.exit_threshold,
      compressTo: fields.compress_to,
      minimalOutput: fields.minimal_output,
      keepCacheS: fields.keep_cache_s,
      guidance: guidance(fields),
      attributes: [{ name: "rule", value: rule }],
    };
  }

  /** The plan for this turn; nothing where no target does what is asked. */
  plan({ turn, request }, fleet) {
    const able = fleet.filter((target) => target.modes.includes(this.mode));
    const target = this.target(able, request);
    if (!target) return undefined;
    return { ...this.fields, target: target.model, task: this.fields.task ?? turn.task };
  }

  target(able, request) {
    switch (this.choice) {
      case undefined:
        // The model asked for, or else the host's own choice.
        return able.find((target) => target.model === request.wantedModel) ?? able[0];
      case "least-busy":
        return able.reduce((best, target) => (best && !busier(best, target) ? best : target), undefined);
      default:
        return able.find((target) => target.model === this.choice);
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
function check({ deadline_ms, max_tokens, compress_to, exit_threshold, json_schema, regex, stop = [] }) {
  const refuse = (wrong, what) => {
    if (wrong) throw new Error(what);
  };
  refuse(deadline_ms === 0, "`deadline_ms` must not be 0");
  refuse(max_tokens === 0, "`max_tokens` must not be 0");
  refuse(compress_to <= 0 || compress_to > 1, "`compress_to` must be above 0 and at most 1");
  refuse(exit_threshold < 0 || exit_threshold > 1, "`exit_threshold` must be from 0 to 1");
  refuse(json_schema !== undefined && regex !== undefined, "one of `json_schema` and `regex`, not both");
  refuse(stop.length > 16, "`stop` may hold 16 texts at most");
  refuse(stop.includes(""), "`stop` must not hold an empty text");
}

function guidance({ json_schema: schema, regex, stop = [] }) {
  const grammar =
    schema !== undefined ? { tag: "json-schema", val: schema } : regex !== undefined ? { tag: "regex", val: regex } : null;
  return grammar || stop.length > 0 ? { stop, grammar } : null;
}
