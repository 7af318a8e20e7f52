// From a policy's source to a component: `node build.mjs WIT WORLD SDK ENTRY OUT`, beside the node_modules that hold the
// two packages imported here.

import { createHash } from "node:crypto";
import { access, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { componentize } from "componentize-qjs";
import * as esbuild from "esbuild";

const [witPath, world, sdk, entry, out] = process.argv.slice(2);

/** The policy, the SDK and whatever else is imported, as one module. Types are taken away, not checked. */
async function bundle() {
  const built = await esbuild.build({
    entryPoints: [entry],
    bundle: true,
    write: false,
    format: "esm",
    platform: "neutral",
    mainFields: ["module", "main"],
    conditions: ["import", "module"],
    target: "es2023",
    alias: { jackfield: sdk },
    // What the host offers; there when the component is made.
    external: ["jackfield:policy/*"],
    logLevel: "silent",
  });
  return built.outputFiles[0].text;
}

/** What is wrong, with file, line and column where esbuild knows them. */
async function words(error) {
  if (!error.errors) return error.message;
  return (await esbuild.formatMessages(error.errors, { kind: "error", color: false })).join("\n");
}

/** The same module gives the same component: made again it would differ, for the engine in it draws a seed. */
async function whenChanged(jsSource, make) {
  const wit = await readFile(join(witPath, "policy.wit"));
  const digest = createHash("sha256").update(`${import.meta.url}\0${world}\0`).update(wit).update(jsSource).digest("hex");
  const record = `${out}.made-of`;
  const held = await access(out).then(() => readFile(record, "utf8")).catch(() => null);
  if (held === digest) return;
  await writeFile(out, await make());
  await writeFile(record, digest);
}

try {
  const jsSource = await bundle();
  // The runtime for speed: the one for size is a third smaller and a third slower.
  const make = () => componentize({ witPath, world, jsSource, stubWasi: true, sync: true });
  await whenChanged(jsSource, async () => (await make()).component);
} catch (error) {
  console.error(await words(error));
  process.exitCode = 1;
}
