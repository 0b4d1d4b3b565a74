// A misspelt member must not be ignored, also without TypeScript.

import { fault } from "./refusal.ts";

/** Refuses what is left of an object when all its members are taken. */
export function noMore(what: string, rest: object): void {
  const [unknown] = Object.keys(rest);
  if (unknown !== undefined) throw fault("unknown_member", `${what} has no member ${unknown}.`);
}

/** The object for an option without a value: `null`. */
export const orNull = <T>(value: T | undefined): T | null => value ?? null;

/** JSON for an optional value. */
export const json = (value: unknown): string | null => (value === undefined ? null : JSON.stringify(value));

/** Extensions as the contract lists them. */
export const extensionList = (extensions: Record<string, unknown> = {}) =>
  Object.entries(extensions).map(([name, value]) => ({ name, value: JSON.stringify(value) }));
