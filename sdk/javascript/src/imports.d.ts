/** What the host offers to a policy whose manifest grants it, by the names of `wit/policy.wit`. */

declare module "jackfield:policy/log" {
  export function write(level: "debug" | "info" | "warn" | "error", text: string): void;
}
declare module "jackfield:policy/metrics" {
  export function add(counter: string, amount: number): void;
}
declare module "jackfield:policy/tokens" {
  export function count(text: string): number;
  export function boundaries(text: string): ArrayLike<number>;
  export function encode(text: string): ArrayLike<number>;
}
/** Compressors only. Throws where the host has no such model, or is too busy for it. */
declare module "jackfield:policy/saliency" {
  export function score(text: string): { end: number; surprisalBits: number }[];
}
/** Slot extractors and routers only. Throws where the host has no such model, or is too busy for it. */
declare module "jackfield:policy/embeddings" {
  export function embed(text: string): ArrayLike<number>;
}
