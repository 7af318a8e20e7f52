// The JavaScript SDK for policies; index.d.ts beside this file says what each name is.

export { answer, prompt, refuse, run, runOn } from "./answers.js";
export { compressor, outputFilter, router, slotExtractor } from "./kinds.js";
export { Folded, Offsets, digit, findTerm, isBlank, isHan, narrow, utf8Length } from "./text.js";
