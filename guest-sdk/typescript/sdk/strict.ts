// Refuses misspelt members, also in JavaScript, where no compiler does.

import { fault } from "./refusal.ts";

/** Refuses members that remain when all known ones are taken. */
export function noMore(what: string, rest: object): void {
  const [unknown] = Object.keys(rest);
  if (unknown !== undefined) throw fault("unknown_member", `${what} has no member ${unknown}.`);
}

const U32_MAX = 4_294_967_295;
/** The greatest priority. */
export const PRIORITY_MAX = 255;

/** Checks that a number fits the contract. Otherwise the component would wrap it around, such as 300 to 44. */
export function whole(what: string, value: number, max = U32_MAX): number {
  if (Number.isInteger(value) && value >= 0 && value <= max) return value >>> 0;
  throw fault("no_whole_number", `${what} is a whole number from 0 to ${max}, not ${String(value)}.`);
}

/** Formats any time that `Date` reads as an instant of the contract. */
export function instant(what: string, given: Date | string): string {
  const at = new Date(given);
  if (Number.isNaN(at.getTime())) throw fault("no_instant", `${what} is no time: ${String(given)}.`);
  return at.toISOString();
}

/** Converts a missing value to `null`, the option without a value. */
export const orNull = <T>(value: T | undefined): T | null => value ?? null;

/** The JSON text of an optional value. */
export const json = (value: unknown): string | null => (value === undefined ? null : JSON.stringify(value));

/** Extensions as records of the contract. */
export const extensionList = (extensions: Record<string, unknown> = {}) =>
  Object.entries(extensions).map(([name, value]) => ({ name, value: JSON.stringify(value) }));
