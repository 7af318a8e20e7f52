// One function for each kind of policy: from an author's class to the interfaces that its component exports.

import { decision, description, edits, interest, transition, verdicts } from "./answers.js";
import { takeClockAway } from "./clock.js";
import { Misfit } from "./shape.js";
import { budgetOf, dialogOf, fleetOf, requestOf, turnOf, windowsOf } from "./unsigned.js";

export function slotExtractor(Policy) {
  const { lifecycle, call } = exporting(Policy, "extract");
  const extract = (turn, recent, dialog) =>
    call((policy) => {
      const made = transition(policy.extract(turnOf(turn), recent, dialogOf(dialog)) ?? {});
      made.state ??= dialog.state;
      return made;
    });
  return { lifecycle, slotExtraction: { extract } };
}

export function router(Policy) {
  const { lifecycle, call } = exporting(Policy, "route");
  const route = (turn, request, fleet) =>
    call((policy) => decision(policy.route(turnOf(turn), requestOf(request), fleetOf(fleet))));
  return { lifecycle, routing: { route } };
}

export function compressor(Policy) {
  const { lifecycle, call } = exporting(Policy, "compress");
  const compress = (turn, parts, budget) =>
    call((policy) => edits(policy.compress(turnOf(turn), parts, budgetOf(budget))));
  return { lifecycle, compression: { compress } };
}

export function outputFilter(Policy) {
  // Asked for within `configure`: `interests` itself has no way to answer with an error.
  let interests = interest({});
  const { lifecycle, call } = exporting(Policy, "review", (policy) => {
    interests = interest(policy.interests?.() ?? {});
  });
  const review = (windows) => call((policy) => verdicts(policy.review(windowsOf(windows))));
  return { lifecycle, outputFiltering: { interests: () => interests, review } };
}

/**
 * `lifecycle`, and how its configured policy is called. What is wrong with the class itself is thrown here, that is, while
 * the component is built.
 */
function exporting(Policy, method, configured = () => {}) {
  if (typeof Policy?.prototype?.[method] !== "function") {
    throw new TypeError(`a policy of this kind is a class with a method \`${method}\``);
  }
  const described = description(Policy.description);
  // Last of all: packages that ask for the time while they are loaded get that of the build.
  takeClockAway();
  putCollectionOff();
  let policy;
  const lifecycle = {
    describe: () => described,
    configure: (config) =>
      guarded(() => {
        const made = new Policy(JSON.parse(config));
        configured(made);
        policy = made;
      }),
  };
  const call = (answer) =>
    guarded(() => {
      if (policy === undefined) throw new Error("called before it was configured");
      return answer(policy);
    });
  return { lifecycle, call };
}

/**
 * QuickJS looks for garbage in circles when there is half as much memory again as when it last looked. An instance lives for one
 * call, so it need not: this has it look once while the component is built, with more there than a call will bring.
 */
function putCollectionOff() {
  let filler = [];
  for (let number = 0; number < 1500; number += 1) filler.push({ number });
  filler = undefined;
}

/** Whatever is thrown becomes the contract's error, a text; anything else ends the call without its words. */
function guarded(work) {
  try {
    return work();
  } catch (error) {
    throw words(error).toWellFormed();
  }
}

function words(error) {
  if (!(error instanceof Error)) return typeof error === "string" ? error : `thrown: ${typeof error}`;
  // A plain Error, or a value that does not fit, says what is wrong; of the others the place is half of the news.
  if (error.constructor === Error || error instanceof Misfit) return error.message;
  const place = /^\s*at (\S+)/m.exec(error.stack ?? "")?.[1];
  return `${error.name}: ${error.message}${place ? ` (in ${place})` : ""}`;
}
