// Offsets in UTF-8 bytes, which is how the contract counts, from JavaScript's UTF-16 units; and matching in Chinese and
// English text. What can be done by the engine's own functions is: interpreted loops are what a policy pays for.

const notAscii = /[^\x00-\x7f]/;
const fullWidth = /[\u3000\uff01-\uff5e]/;
const everyFullWidth = /[\u3000\uff01-\uff5e]/g;
const han = /^[\u4e00-\u9fff\u3400-\u4dbf\u{20000}-\u{323af}\uf900-\ufaff〇]$/u;
const blank = /^[\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]*$/;
const tail = (unit) => unit >= 0xdc00 && unit < 0xe000;

export function utf8Length(text) {
  // Percent-encoding writes each byte out, and `unescape` makes one character of it; both are the engine's own.
  return notAscii.test(text) ? unescape(encodeURIComponent(text.toWellFormed())).length : text.length;
}

export class Offsets {
  #text;
  /** The byte at which each unit begins, and the length; the second half of a pair counts as its first. */
  #bytes = null;

  constructor(text) {
    this.#text = text.toWellFormed();
    if (notAscii.test(text)) this.#bytes = byteTable(this.#text);
  }

  byte(index) {
    const at = Math.min(Math.max(index, 0), this.#text.length);
    return this.#bytes === null ? at : this.#bytes[at];
  }

  index(byte) {
    if (this.#bytes === null) return Math.min(byte, this.#text.length);
    let low = 0;
    let high = this.#text.length;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.#bytes[middle] <= byte) low = middle;
      else high = middle - 1;
    }
    return tail(this.#text.charCodeAt(low)) ? low - 1 : low;
  }

  span(start, end) {
    return { start: this.byte(start), end: this.byte(end) };
  }

  slice(span) {
    return this.#text.slice(this.index(span.start), this.index(span.end));
  }
}

function byteTable(text) {
  const bytes = new Uint32Array(text.length + 1);
  let sum = 0;
  for (let at = 0; at < text.length; at += 1) {
    const unit = text.charCodeAt(at);
    if (tail(unit)) {
      bytes[at] = bytes[at - 1];
      continue;
    }
    bytes[at] = sum;
    if (unit < 0x80) sum += 1;
    else if (unit < 0x800) sum += 2;
    else sum += unit >= 0xd800 && unit < 0xdc00 ? 4 : 3;
  }
  bytes[text.length] = sum;
  return bytes;
}

export function narrow(text) {
  if (!fullWidth.test(text)) return text;
  return text.replace(everyFullWidth, (c) => (c === "\u3000" ? " " : String.fromCharCode(c.charCodeAt(0) - 0xfee0)));
}

export function isBlank(text) {
  return blank.test(text);
}

export function digit(c) {
  const code = narrow(c).charCodeAt(0) - 0x30;
  return code >= 0 && code <= 9 ? code : null;
}

export function isHan(c) {
  return han.test(c);
}

export class Folded {
  #original;
  /** For each unit of the folded text the index from which it came; null when all stand where they stood. */
  #sources = null;

  constructor(original) {
    this.#original = original.toWellFormed();
    // A final sigma is none here: a word is found wherever it stands.
    const even = notAscii.test(original) ? narrow(this.#original).replaceAll("Σ", "σ") : original;
    this.text = even.toLowerCase();
    // Only İ is longer in lower case.
    if (this.text.length !== original.length) this.#sources = sources(even);
  }

  has(term) {
    return findTerm(this.text, term instanceof Folded ? term.text : new Folded(term).text) !== null;
  }

  find(term) {
    const found = findTerm(this.text, term instanceof Folded ? term.text : new Folded(term).text);
    return found && this.span(found.start, found.end);
  }

  span(start, end) {
    const from = this.#begin(start);
    const to = end > start ? this.#end(end) : from;
    const begin = utf8Length(this.#original.slice(0, from));
    return { start: begin, end: begin + utf8Length(this.#original.slice(from, to)) };
  }

  /** The index in the original of the scalar that the unit at `at` came from. */
  #begin(at) {
    const index = this.#sources === null ? at : this.#sources[at];
    return tail(this.#original.charCodeAt(index)) ? index - 1 : index;
  }

  /** The index behind the scalar that the unit before `at` came from. */
  #end(at) {
    const index = this.#sources === null ? at : this.#sources[at - 1] + 1;
    return tail(this.#original.charCodeAt(index)) ? index + 1 : index;
  }
}

function sources(even) {
  const from = [];
  for (let at = 0; at < even.length; at += 1) {
    const grown = even[at] === "İ" ? 2 : 1;
    for (let unit = 0; unit < grown; unit += 1) from.push(at);
  }
  from.push(even.length);
  return from;
}

export function findTerm(text, term) {
  let start = text.indexOf(term);
  if (start < 0 || term === "") return null;
  const first = isWordUnit(term.charCodeAt(0));
  const last = isWordUnit(term.charCodeAt(term.length - 1));
  for (; start >= 0; start = text.indexOf(term, start + term.length)) {
    const end = start + term.length;
    const touches = (first && isWordUnit(text.charCodeAt(start - 1))) || (last && isWordUnit(text.charCodeAt(end)));
    if (!touches) return { start, end };
  }
  return null;
}

/** An ASCII letter or digit; NaN, which is what stands outside a text, is none. */
function isWordUnit(unit) {
  return (unit >= 48 && unit <= 57) || (unit >= 65 && unit <= 90) || (unit >= 97 && unit <= 122);
}
