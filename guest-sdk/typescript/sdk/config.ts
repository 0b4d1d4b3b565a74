// Merges the settings of a version with their defaults.

import type { Violation } from "./contract.ts";
import { Refusal } from "./refusal.ts";

/** The settings, with the defaults for missing ones. Unknown names, and values of another type than the default, are refused. */
export function readConfig<C>(defaults: C, text: string): C {
  const given: unknown = JSON.parse(text);
  if (!isObject(given) || !isObject(defaults)) throw new Refusal({ tag: "invalid", val: [wrong("", "type", "The config is an object.")] });
  const violations: Violation[] = [];
  const settings = merged(defaults, given, "", violations);
  if (violations.length > 0) throw new Refusal({ tag: "invalid", val: violations });
  return settings as C;
}

type Members = Record<string, unknown>;
const isObject = (value: unknown): value is Members => typeof value === "object" && value !== null && !Array.isArray(value);
const wrong = (field: string, code: string, message: string): Violation => ({ field, code, message });
const kindOf = (value: unknown) => (value === null ? "null" : Array.isArray(value) ? "a list" : `of type ${typeof value}`);

function merged(defaults: Members, given: Members, at: string, violations: Violation[]): Members {
  const settings: Members = { ...defaults };
  for (const [name, value] of Object.entries(given)) {
    const field = `${at}/${name.replaceAll("~", "~0").replaceAll("/", "~1")}`;
    const usual = defaults[name];
    if (!(name in defaults)) violations.push(wrong(field, "unknown", `There is no setting ${name}: there are ${Object.keys(defaults).join(", ")}.`));
    // A default of null says nothing about the type.
    else if (usual !== null && kindOf(usual) !== kindOf(value)) violations.push(wrong(field, "type", `It is ${kindOf(value)}, not ${kindOf(usual)}.`));
    // An empty object as a default accepts any members, such as a table does.
    else if (isObject(usual) && isObject(value) && Object.keys(usual).length > 0) settings[name] = merged(usual, value, field, violations);
    else settings[name] = value;
  }
  return settings;
}
