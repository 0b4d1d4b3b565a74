// A misspelt member must not be ignored, also without TypeScript.

import { fault } from "./refusal.ts";

/** Refuses what is left of an object when all its members are taken. */
export function noMore(what: string, rest: object): void {
  const [unknown] = Object.keys(rest);
  if (unknown !== undefined) throw fault("unknown_member", `${what} has no member ${unknown}.`);
}

const U32_MAX = 4_294_967_295;
/** The greatest priority. */
export const PRIORITY_MAX = 255;

/** A number as the contract has it. A component would make another number of one that does not fit, such as 44 of 300. */
export function whole(what: string, value: number, max = U32_MAX): number {
  if (Number.isInteger(value) && value >= 0 && value <= max) return value >>> 0;
  throw fault("no_whole_number", `${what} is a whole number from 0 to ${max}, not ${String(value)}.`);
}

/** An instant as the contract has it, of any time that `Date` reads. */
export function instant(what: string, given: Date | string): string {
  const at = new Date(given);
  if (Number.isNaN(at.getTime())) throw fault("no_instant", `${what} is no time: ${String(given)}.`);
  return at.toISOString();
}

/** The object for an option without a value: `null`. */
export const orNull = <T>(value: T | undefined): T | null => value ?? null;

/** JSON for an optional value. */
export const json = (value: unknown): string | null => (value === undefined ? null : JSON.stringify(value));

/** Extensions as the contract lists them. */
export const extensionList = (extensions: Record<string, unknown> = {}) =>
  Object.entries(extensions).map(([name, value]) => ({ name, value: JSON.stringify(value) }));
