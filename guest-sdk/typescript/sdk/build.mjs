// `node sdk/build.mjs OUTPUT.wasm`, run by `wrkflw plugin build` in the folder of a flow: checks types (TypeScript only), bundles
// `src/flow.ts` or `src/flow.js` with what it imports, and makes a component of the bundle.

import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { createRequire } from "node:module";

const output = process.argv[2];
const entry = ["src/flow.ts", "src/flow.js"].find(existsSync);
const fromProject = createRequire(`${process.cwd()}/`);

function fail(message) {
  console.error(`build: ${message}`);
  process.exit(1);
}

if (output === undefined) fail("name the file to write");
if (entry === undefined) fail("there is no src/flow.ts and no src/flow.js");
if (entry.endsWith(".ts")) {
  const checked = spawnSync("node_modules/.bin/tsc", ["--noEmit"], { stdio: ["ignore", 2, 2] });
  if (checked.status !== 0) fail("tsc does not accept the flow: see above");
}

const { build } = fromProject("esbuild");
const bundled = await build({
  entryPoints: [entry],
  bundle: true,
  format: "esm",
  target: "es2023",
  platform: "neutral",
  mainFields: ["module", "main"],
  sourcemap: "external",
  outfile: "bundle.js",
  write: false,
  logLevel: "warning",
}).catch(() => process.exit(1));
const file = (ending) => bundled.outputFiles.find((one) => one.path.endsWith(ending)).text;

const { componentize } = fromProject("componentize-qjs");
const jsSource = `${file(".js")}\nglobalThis.wrkflwLines = ${JSON.stringify(lines(JSON.parse(file(".map"))))};\n`;
const { component } = await componentize({ witPath: "sdk/wit", jsSource, sync: true, stubWasi: true }).catch((error) => fail(error.message));
await writeFile(output, component);

// The table for `refusal.ts`, which finds the source line of an exception: the first line of each file, and the source line of each
// line of the bundle.
function lines({ mappings, sources }) {
  const table = { files: [], lines: [0] };
  let [source, line] = [0, 0];
  for (const [index, ofLine] of mappings.split(";").entries()) {
    let first;
    for (const segment of ofLine.split(",").filter(Boolean)) {
      const [, sourceBy = 0, lineBy = 0] = decoded(segment);
      [source, line] = [source + sourceBy, line + lineBy];
      first ??= [source, line];
    }
    const name = first && sources[first[0]];
    if (name && table.files.at(-1)?.[1] !== name) table.files.push([index + 1, name]);
    table.lines.push(first ? first[1] + 1 : table.lines.at(-1));
  }
  return table;
}

// Decodes the numbers of a source map segment: base 64 VLQ, least significant five bits first, the sign in the lowest bit.
function decoded(segment) {
  const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const numbers = [];
  let [value, shift] = [0, 0];
  for (const digit of segment) {
    const bits = digits.indexOf(digit);
    value += (bits & 31) << shift;
    shift += 5;
    if (bits & 32) continue;
    numbers.push(value & 1 ? -(value >> 1) : value >> 1);
    [value, shift] = [0, 0];
  }
  return numbers;
}
