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

/** A rule's conditions; all that are written must hold. */
export class Conditions {
  constructor(when) {
    this.checks = [];
    for (const key of Object.keys(when)) {
      // Words are looked for last: all else is cheaper.
      if (key in ofWords) this.checks.push(words(ofWords[key], when[key]));
      else this.checks.unshift(ofFacts[key](when[key]));
    }
  }

  fit(facts) {
    return this.checks.every((check) => check(facts));
  }
}

/** One of these; `*` at the end stands for any rest. */
const names = (value) => (written) => {
  if (written.length === 0) throw new Error("an empty list fits nothing: leave it out to fit everything");
  const fits = (name, known) => (name.endsWith("*") ? known.startsWith(name.slice(0, -1)) : known === name);
  return (facts) => {
    const known = value(facts);
    return known != null && written.some((name) => fits(name, known));
  };
};

/** Both ends included. */
const bounds = (name, value) => ({ min = 0, max = Infinity }) => {
  if (min > max) throw new Error(`\`${name}\` fits nothing: min is above max`);
  return (facts) => value(facts) >= min && value(facts) <= max;
};

/** A word is folded only when it is looked for: an instance answers one turn. */
function words(fit, written) {
  const terms = written.map((word) => word.trim());
  if (terms.includes("")) throw new Error("an empty word");
  return ({ text }) => fit(terms, text);
}

function slots(written) {
  const checks = Object.entries(written).map(([name, wanted]) => slot(name, wanted));
  return (facts) => checks.every((check) => check(facts));
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

// Made once, when the component is built; the constructors run before each turn.

const ofFacts = {
  task: names(({ turn }) => turn.task),
  tenant: names(({ turn }) => turn.tenant),
  locale: names(({ turn }) => turn.locale),
  model: names(({ request }) => request.wantedModel),
  prompt_tokens: bounds("prompt_tokens", ({ request }) => request.promptTokens),
  messages: bounds("messages", ({ request }) => request.messages),
  queue: bounds("queue", ({ shortestQueue }) => shortestQueue),
  slots,
};

const ofWords = {
  any: (terms, text) => terms.some((term) => text.has(term)),
  all: (terms, text) => terms.every((term) => text.has(term)),
  none: (terms, text) => !terms.some((term) => text.has(term)),
};
