// Picks the plan of a turn by an author's rules: the first that fits decides. A rule runs the turn, answers it, or
// refuses it. The same policy as plugins/route-by-intent, with its rules, its schema and its cases.

import { answer, refuse, router, run } from "jackfield";

import configSchema from "./config.schema.json";
import { Conditions, Facts } from "./conditions.js";
import { PlanRule } from "./plans.js";

class RouteByIntent {
  static description = { name: "route-by-intent", version: "0.1.0", configSchema };

  constructor({ default: usual = {}, rule: rules = [] }) {
    this.otherwise = named("[default]", () => new PlanRule("default", {}, usual));
    this.rules = rules.map((rule) => named(`rule \`${rule.name}\``, () => compile(rule, usual)));
  }

  route(turn, request, fleet) {
    const facts = new Facts(turn, request, fleet);
    for (const { conditions, decide } of this.rules) {
      const decision = conditions.fit(facts) && decide(facts, fleet);
      if (decision) return decision;
    }
    const plan = this.otherwise.plan(facts, fleet);
    if (!plan) throw new Error("no target of the fleet does what [default] asks for");
    return run(plan);
  }
}

/** What a rule does with a turn that fits: a decision, or nothing where no target can do it. */
function compile(rule, usual) {
  const outcomes = [rule.plan, rule.answer, rule.refuse].filter((outcome) => outcome !== undefined);
  if (outcomes.length !== 1) {
    throw new Error("needs one of [rule.plan], `answer` and `refuse`, and no more");
  }
  return { conditions: new Conditions(rule.when ?? {}), decide: outcome(rule, usual) };
}

function outcome(rule, usual) {
  if (rule.plan) {
    const made = new PlanRule(rule.name, rule.plan, usual);
    return (facts, fleet) => {
      const plan = made.plan(facts, fleet);
      return plan && run(plan);
    };
  }
  if (rule.refuse) {
    const { status, reason } = rule.refuse;
    if (status < 400 || status > 599) throw new Error(`status ${status} is no refusal: 400 to 599`);
    const words = said(reason);
    return (facts) => refuse(status, words(facts));
  }
  const words = said(rule.answer);
  return (facts) => answer(words(facts));
}

/** A text, in one language or two, by the language of the turn. */
function said(words) {
  const { zh, en } = typeof words === "string" ? { zh: words, en: words } : words;
  if (zh.trim() === "" || en.trim() === "") throw new Error("an empty text");
  return (facts) => (facts.inChinese() ? zh : en);
}

function named(name, work) {
  try {
    return work();
  } catch (error) {
    throw new Error(`${name}: ${error.message}`);
  }
}

export const { lifecycle, routing } = router(RouteByIntent);
