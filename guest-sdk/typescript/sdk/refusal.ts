// Refusals: why something may not happen, or why a flow cannot answer. All of them are thrown.
//
// `denied` concerns the person (403), `notNow` the moment (409), `invalid` the data or the input (422), and `fault` is a mistake
// of the flow (424). Any other exception is a fault, too, with the line of the author's file.

import type { Violation, WireRefusal } from "./contract.ts";

/** The exception for refusals by the functions of a flow. */
export class Refusal extends Error {
  readonly wire: WireRefusal;

  constructor(wire: WireRefusal) {
    super(wire.tag === "invalid" ? wire.val.map((one) => one.message).join(" ") : wire.val.message);
    this.name = "Refusal";
    this.wire = wire;
  }
}

/** This actor may not, now or ever: `throw denied("over_limit", "Above 1000, the CFO decides.")`. */
export const denied = (code: string, message: string) => new Refusal({ tag: "denied", val: { code, message } });

/** Not possible at the moment; a later attempt may succeed. */
export const notNow = (code: string, message: string) => new Refusal({ tag: "not-now", val: { code, message } });

/** The flow cannot answer, by a mistake of its author. */
export const fault = (code: string, message: string) => new Refusal({ tag: "fault", val: { code, message } });

/**
 * The data or the input does not permit it. `field` is a JSON Pointer into the request: `/data/title` of a start, `/input/amount` of a
 * decision or a signal, `/comment`.
 */
export const invalid = (field: string, code: string, message: string) => new Refusal({ tag: "invalid", val: [{ field, code, message }] });

/** The same for several fields. */
export const allInvalid = (violations: Violation[]) => new Refusal({ tag: "invalid", val: violations });

/** Converts a thrown value to a refusal. */
export function refusalOf(thrown: unknown): WireRefusal {
  if (thrown instanceof Refusal) return thrown.wire;
  return { tag: "fault", val: { code: "exception", message: described(thrown) } };
}

const MESSAGE_CHARS_MAX = 500;

/** The exception with its message and its place: `TypeError: cannot read property 'x' of null (src/flow.ts:12)`. */
export function described(thrown: unknown): string {
  const text = thrown instanceof Error ? `${thrown.name}: ${thrown.message}` : `Thrown: ${String(thrown)}`;
  const place = thrown instanceof Error ? placeOf(thrown.stack ?? "") : undefined;
  return text.slice(0, MESSAGE_CHARS_MAX) + (place ? ` (${place})` : "");
}

/** The source map of the bundle: the first line of each file, and the source line of each line of the bundle. `build.mjs` adds it. */
type Lines = { files: [number, string][]; lines: number[] };

/** The innermost line of the author's code in the stack. */
function placeOf(stack: string): string | undefined {
  // Native tests of this file have no source map.
  const table = (globalThis as { wrkflwLines?: Lines }).wrkflwLines;
  for (const [, at] of stack.matchAll(/:(\d+):\d+\)?$/gm)) {
    const line = Number(at);
    const file = table?.files.findLast(([from]) => from <= line)?.[1];
    if (file && !file.startsWith("sdk/")) return `${file}:${table?.lines[line]}`;
  }
  return undefined;
}
