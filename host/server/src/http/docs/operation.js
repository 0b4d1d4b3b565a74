// One operation: its parameters and body, its responses, and a form to try it.

import { attempt } from "./attempt.js";
import { breakable, element, folded, inline, prose } from "./element.js";
import { plain, resolve, schemaView, typeName } from "./schema.js";

function parameterTable(openapi, parameters) {
  const rows = parameters.map((parameter) => {
    const schema = plain(openapi, parameter.schema);
    const description = parameter.description ?? schema.description ?? "";
    const values = schema.enum ? ` One of ${schema.enum.map((value) => `\`${value}\``).join(", ")}.` : "";
    return element(
      "tr",
      {},
      element("th", { scope: "row" }, element("code", {}, parameter.name), parameter.required ? element("span", { class: "required" }, " required") : null),
      element("td", {}, parameter.in),
      element("td", { class: "type" }, typeName(schema)),
      element("td", {}, inline(description + values)),
    );
  });
  const titles = ["Name", "In", "Type", "Meaning"].map((title) => element("th", { scope: "col" }, title));
  return element("div", { class: "scroll" }, element("table", {}, element("thead", {}, element("tr", {}, titles)), element("tbody", {}, rows)));
}

function exampleView(example) {
  const text = typeof example === "string" ? example : JSON.stringify(example, null, 2);
  return [element("p", { class: "fact" }, "Example"), element("pre", { tabindex: "0" }, text)];
}

function contentView(openapi, content) {
  return Object.entries(content ?? {}).flatMap(([mediaType, { schema, example }]) => [
    element("p", { class: "fact" }, mediaType),
    ...(schema ? schemaView(openapi, schema) : []),
    ...(example === undefined ? [] : exampleView(example)),
  ]);
}

function responseView(openapi, status, reference) {
  const response = resolve(openapi, reference);
  const title = [element("strong", {}, status === "default" ? "otherwise" : status), " ", ...inline(reference.description ?? response.description ?? "")];
  const headers = Object.entries(response.headers ?? {}).map(([name, header]) => element("p", {}, element("code", {}, name), ` ${header.description ?? ""}`));
  if (!response.content && !headers.length) return element("p", { class: "response" }, title);
  return folded({ class: "response" }, title, () => [...headers, ...contentView(openapi, response.content)]);
}

function operationBody(openapi, told, token) {
  const { operation, parameters, needsToken } = told;
  const body = resolve(openapi, operation.requestBody);
  return element(
    "div",
    { class: "operation" },
    prose(operation.description),
    needsToken ? null : element("p", { class: "fact" }, "Needs no token."),
    parameters.length ? [element("h3", {}, "Parameters"), parameterTable(openapi, parameters)] : null,
    body.content ? [element("h3", {}, "Body"), ...contentView(openapi, body.content)] : null,
    element("h3", {}, "Answers"),
    Object.entries(operation.responses ?? {}).map(([status, response]) => responseView(openapi, status, response)),
    element("h3", {}, "Try it"),
    attempt(openapi, told, token),
  );
}

export function operationView(openapi, told, token) {
  const { path, method, operation, anchor } = told;
  const summary = [
    element("span", { class: `method ${method}` }, method.toUpperCase()),
    element("code", { class: "path" }, breakable(path)),
    element("span", { class: "summary" }, inline(operation.summary ?? "")),
    operation.deprecated ? element("span", { class: "required" }, " deprecated") : null,
  ];
  return folded({ id: anchor, class: "card" }, summary, () => operationBody(openapi, told, token));
}
