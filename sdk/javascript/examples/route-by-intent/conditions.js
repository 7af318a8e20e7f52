import { Folded, isHan } from "jackfield";

/** The turn as the rules see it; the text folded once for all of them. */
export class Facts {
  constructor(turn, request, fleet) {
    this.turn = turn;
    this.request = request;
    /** Requests in the shortest queue of the fleet. */
    this.shortestQueue = Math.min(...fleet.map((target) => target.queueDepth));
    this.text = new Folded(request.lastUserText);
  }

  /** Whether the user is to be spoken to in Chinese: by the locale if there is one, else by the words used. */
  inChinese() {
    const { locale } = this.turn;
    if (locale === "") return [...this.request.lastUserText].some(isHan);
    return locale.toLowerCase().startsWith("zh");
  }
}

/** A rule's conditions; all that are written must hold. The cheap ones are looked at first. */
export class Conditions {
  constructor(when) {
    this.checks = [
      ...names(when.task, ({ turn }) => turn.task),
      ...names(when.tenant, ({ turn }) => turn.tenant),
      ...names(when.locale, ({ turn }) => turn.locale),
      ...names(when.model, ({ request }) => request.wantedModel),
      ...bounds("prompt_tokens", when.prompt_tokens, ({ request }) => request.promptTokens),
      ...bounds("messages", when.messages, ({ request }) => request.messages),
      ...bounds("queue", when.queue, ({ shortestQueue }) => shortestQueue),
      ...Object.entries(when.slots ?? {}).map(([name, wanted]) => slot(name, wanted)),
      ...words(when.any, (terms) => ({ text }) => terms.some((term) => text.has(term))),
      ...words(when.all, (terms) => ({ text }) => terms.every((term) => text.has(term))),
      ...words(when.none, (terms) => ({ text }) => !terms.some((term) => text.has(term))),
    ];
  }

  fit(facts) {
    return this.checks.every((check) => check(facts));
  }
}

/** One of these; `*` at the end stands for any rest. */
function names(written, value) {
  if (written === undefined) return [];
  if (written.length === 0) throw new Error("an empty list fits nothing: leave it out to fit everything");
  const fits = written.map((name) => {
    if (!name.endsWith("*")) return (value) => value === name;
    const prefix = name.slice(0, -1);
    return (value) => value.startsWith(prefix);
  });
  return [
    (facts) => {
      const known = value(facts);
      return known != null && fits.some((fit) => fit(known));
    },
  ];
}

/** Both ends included. */
function bounds(name, written, value) {
  if (written === undefined) return [];
  const { min = 0, max = Infinity } = written;
  if (min > max) throw new Error(`\`${name}\` fits nothing: min is above max`);
  return [(facts) => value(facts) >= min && value(facts) <= max];
}

function words(written, check) {
  if (written === undefined) return [];
  const terms = written.map((word) => {
    if (word.trim() === "") throw new Error("an empty word");
    return new Folded(word.trim());
  });
  return [check(terms)];
}

/** Known or not, or of this value. A slot that holds a boolean fits when it holds this one. */
function slot(name, wanted) {
  return ({ request }) => {
    const value = request.slots.find((slot) => slot.name === name)?.value;
    if (typeof wanted === "boolean") return value?.tag === "boolean" ? value.val === wanted : wanted === (value != null);
    if (typeof wanted === "number") return value?.tag === "number" && value.val === wanted;
    return ["text", "choice", "date"].includes(value?.tag) && value.val === wanted;
  };
}
