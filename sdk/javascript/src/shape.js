// From an author's value to exactly what the contract wants. What does not fit is an error that names its place: the
// engine would end the call without a word.
//
// A shape is a function from a value to what crosses into the host. null and undefined are the same everywhere.

/** A value that does not fit its shape. */
export class Misfit extends TypeError {
  constructor(what) {
    super(what);
    this.what = what;
    this.path = "";
  }

  /** The same misfit, seen from the value around it. */
  within(step) {
    this.path = step + this.path;
    this.message = `${this.path.replace(/^\./, "")}: ${this.what}`;
    return this;
  }
}

/** A lone half of a surrogate pair has no UTF-8: U+FFFD stands in its place. */
export const text = (value) => {
  if (typeof value !== "string") throw new Misfit(`${shown(value)} is not a text`);
  return value.toWellFormed();
};

export const flag = (value) => {
  if (typeof value !== "boolean") throw new Misfit(`${shown(value)} is not true or false`);
  return value;
};

export const number = (value) => {
  if (typeof value !== "number") throw new Misfit(`${shown(value)} is not a number`);
  return value;
};

const whole = (largest) => (value) => {
  if (!Number.isInteger(value) || value < 0 || value > largest) {
    throw new Misfit(`${shown(value)} is not a whole number from 0 to ${largest}`);
  }
  // The engine takes 32 bits as signed.
  return value | 0;
};

export const u8 = whole(0xff);
export const u16 = whole(0xffff);
export const u32 = whole(0xffffffff);

/** A name out of a few. */
export const oneOf = (...names) => (value) => {
  if (!names.includes(value)) throw new Misfit(`${shown(value)} is not one of ${names.join(", ")}`);
  return value;
};

/** Absent, or of this shape. */
export const option = (shape) => (value) => (absent(value) ? null : shape(value));

/** Of this shape; `fallback`, which has it already, when absent. */
export const or = (shape, fallback) => (value) => (absent(value) ? fallback : shape(value));

/** An array; empty when absent. */
export const list = (shape) => (value) => {
  if (absent(value)) return [];
  if (!Array.isArray(value)) throw new Misfit(`${shown(value)} is not an array`);
  const made = [];
  let at = 0;
  try {
    for (; at < value.length; at += 1) made.push(shape(value[at]));
  } catch (error) {
    throw inside(error, `[${at}]`);
  }
  return made;
};

/** An object with these fields and no others. */
export const record = (fields) => {
  const names = Object.keys(fields);
  const shapes = Object.values(fields);
  // A name that is mistaken says more than the field that is missing for it.
  const refuseStrangers = (value) => {
    const stranger = Object.keys(value).find((name) => !names.includes(name));
    if (stranger !== undefined) throw new Misfit(`there is no field \`${stranger}\`; there are ${names.join(", ")}`);
  };
  return (value) => {
    if (!isRecord(value)) throw new Misfit(`${shown(value)} is not an object of fields`);
    const made = {};
    let present = 0;
    let at = 0;
    try {
      for (; at < names.length; at += 1) {
        const field = value[names[at]];
        if (field !== undefined) present += 1;
        made[names[at]] = shapes[at](field);
      }
    } catch (error) {
      refuseStrangers(value);
      throw inside(error, `.${names[at]}`);
    }
    if (Object.keys(value).length !== present) refuseStrangers(value);
    return made;
  };
};

/** `{ tag, val }`; a case without a payload (its shape is null) may be its name alone. */
export const variant = (cases) => (value) => {
  const tag = typeof value === "string" ? value : value?.tag;
  if (typeof tag !== "string" || !Object.hasOwn(cases, tag)) {
    throw new Misfit(`${shown(tag ?? value)} is not one of ${Object.keys(cases).join(", ")}`);
  }
  if (cases[tag] === null) return { tag };
  try {
    return { tag, val: cases[tag](value.val) };
  } catch (error) {
    throw inside(error, `.${tag}`);
  }
};

const absent = (value) => value === null || value === undefined;

/** An array or a promise would pass for a record of which everything is left out. */
const isRecord = (value) =>
  typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof Promise);

const inside = (error, step) => (error instanceof Misfit ? error.within(step) : error);

/** A value in an error: short, and never an error itself. */
function shown(value) {
  if (typeof value === "string") return JSON.stringify(value.length > 40 ? `${value.slice(0, 40)}…` : value);
  if (Array.isArray(value)) return "an array";
  if (value instanceof Promise) return "a promise (a policy answers at once: no `async`)";
  if (typeof value === "object" && value !== null) return "an object";
  return typeof value === "function" ? "a function" : String(value);
}
