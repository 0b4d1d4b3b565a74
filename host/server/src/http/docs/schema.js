// Shows JSON Schemas as lists of fields, and makes an example that fits one.

import { element, folded, inline } from "./element.js";

// How deep an example goes into recursive types.
const EXAMPLE_DEPTH_MAX = 6;
const BOUNDS = {
  minimum: "at least",
  maximum: "at most",
  minLength: "characters, at least",
  maxLength: "characters, at most",
  minItems: "items, at least",
  maxItems: "items, at most",
  pattern: "pattern",
  default: "default",
};

export function resolve(openapi, schema) {
  if (!schema?.$ref) return schema ?? {};
  const path = schema.$ref.replace(/^#\//, "").split("/");
  const found = path.reduce((part, key) => part?.[key.replaceAll("~1", "/").replaceAll("~0", "~")], openapi);
  return found ?? {};
}

const isNull = (schema) => schema?.type === "null";
const named = (schema) => schema?.$ref?.split("/").pop();
const choices = (schema) => schema.oneOf ?? schema.anyOf ?? schema.allOf ?? [];

// A schema without its reference and without the alternative null: the type of a value that a reader fills in.
export function plain(openapi, schema) {
  const target = resolve(openapi, schema);
  const real = choices(target).filter((choice) => !isNull(choice));
  if (real.length === 1) return plain(openapi, real[0]);
  return Array.isArray(target.type) ? { ...target, type: target.type.find((type) => type !== "null") } : target;
}

// The type in words, such as `list of TaskView or null`.
export function typeName(schema) {
  if (!schema || schema === true) return "any";
  if (named(schema)) return named(schema);
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (choices(schema).length) return choices(schema).map(typeName).join(schema.allOf ? " and " : " or ");
  const types = [schema.type ?? "any"].flat();
  return types
    .map((type) => (type === "array" ? `list of ${typeName(schema.items)}` : type))
    .join(" or ")
    .replace(/^string(?=$| or )/, schema.format ? `string (${schema.format})` : "string");
}

export function isFile(schema) {
  return schema.format === "binary" || Boolean(schema.contentMediaType);
}

function facts(schema) {
  const bounds = Object.entries(BOUNDS).filter(([key]) => schema[key] !== undefined && schema[key] !== null);
  const texts = bounds.map(([key, words]) => `${words} ${typeof schema[key] === "string" ? schema[key] : JSON.stringify(schema[key])}`);
  if (schema.enum) texts.push(`one of ${schema.enum.map((value) => JSON.stringify(value)).join(", ")}`);
  if (schema.additionalProperties === false && schema.properties) texts.push("no other fields");
  return texts.join("; ");
}

// The schemas with fields inside a schema, also inside its lists and alternatives.
function inner(openapi, schema) {
  const target = resolve(openapi, schema);
  if (target.properties) return [target];
  if (target.items) return inner(openapi, target.items);
  if (target.additionalProperties?.$ref) return inner(openapi, target.additionalProperties);
  return choices(target).filter((choice) => !isNull(choice)).flatMap((choice) => inner(openapi, choice));
}

function field(openapi, name, schema, required) {
  const target = resolve(openapi, schema);
  const description = schema.description ?? target.description;
  const fact = facts(target);
  const types = inner(openapi, schema);
  return element(
    "li",
    {},
    element("code", { class: "name" }, name),
    " ",
    element("span", { class: "type" }, typeName(schema)),
    required ? element("span", { class: "required" }, " required") : null,
    description ? element("div", {}, inline(description)) : null,
    fact ? element("div", { class: "fact" }, fact) : null,
    types.length ? folded({ class: "inner" }, "fields", () => types.map((type) => fields(openapi, type))) : null,
  );
}

function fields(openapi, schema) {
  const all = Object.entries(schema.properties ?? {});
  if (!all.length) return element("p", { class: "fact" }, "No fields.");
  const required = new Set(schema.required ?? []);
  return element("ul", { class: "fields" }, all.map(([name, type]) => field(openapi, name, type, required.has(name))));
}

export function schemaView(openapi, schema) {
  const target = resolve(openapi, schema);
  const types = inner(openapi, schema);
  const fact = facts(target);
  return [
    element("p", {}, element("span", { class: "type" }, typeName(schema)), target.description ? [": ", inline(target.description)] : null),
    fact ? element("p", { class: "fact" }, fact) : null,
    ...types.map((type) => fields(openapi, type)),
  ].filter(Boolean);
}

// A value of the right shape, for the reader to change.
export function example(openapi, schema, depth = 0) {
  const target = resolve(openapi, schema);
  const given = target.example ?? target.examples?.[0] ?? target.default ?? target.const ?? target.enum?.[0];
  if (given !== undefined) return given;
  const choice = choices(target).find((one) => !isNull(one));
  if (choice) return example(openapi, choice, depth + 1);
  const type = [target.type].flat().find((one) => one !== "null");
  if (type === "object" || target.properties) return exampleObject(openapi, target, depth);
  if (type === "array") return depth < EXAMPLE_DEPTH_MAX && target.minItems ? [example(openapi, target.items, depth + 1)] : [];
  if (type === "integer" || type === "number") return target.minimum ?? 0;
  if (type === "boolean") return false;
  return type === "string" ? "" : null;
}

function exampleObject(openapi, schema, depth) {
  if (depth >= EXAMPLE_DEPTH_MAX) return {};
  const optional = (name) => !(schema.required ?? []).includes(name);
  const shown = Object.entries(schema.properties ?? {}).filter(([name]) => depth === 0 || !optional(name));
  return Object.fromEntries(shown.map(([name, type]) => [name, example(openapi, type, depth + 1)]));
}
