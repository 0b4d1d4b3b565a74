// Reads the description of the API and lays the page out: contents at the side, operations by tag.

import { breakable, element, folded, prose } from "./element.js";
import { operationView } from "./operation.js";
import { resolve } from "./schema.js";

const METHODS = ["get", "post", "put", "patch", "delete"];
const byId = (id) => document.getElementById(id);
const token = () => byId("token").value.trim();

function needsToken(openapi, operation) {
  const wanted = operation.security ?? openapi.security ?? [];
  return wanted.length > 0 && wanted.every((requirement) => Object.keys(requirement).length > 0);
}

function operations(openapi) {
  return Object.entries(openapi.paths ?? {}).flatMap(([path, item]) =>
    METHODS.filter((method) => item[method]).map((method) => {
      const operation = item[method];
      const own = (operation.parameters ?? []).map((one) => resolve(openapi, one));
      const shared = (item.parameters ?? []).map((one) => resolve(openapi, one));
      const overridden = (one) => own.some((other) => other.name === one.name && other.in === one.in);
      return {
        path,
        method,
        operation,
        parameters: [...shared.filter((one) => !overridden(one)), ...own],
        needsToken: needsToken(openapi, operation),
        tag: operation.tags?.[0] ?? "other",
        anchor: `${method}${path.replace(/[^A-Za-z0-9]+/g, "-")}`.replace(/-$/, ""),
      };
    }),
  );
}

function sections(openapi, all) {
  const named = (openapi.tags ?? []).map((tag) => tag.name);
  const tags = [...new Set([...named, ...all.map((one) => one.tag)])];
  return tags.map((name) => ({
    name,
    description: (openapi.tags ?? []).find((tag) => tag.name === name)?.description,
    members: all.filter((one) => one.tag === name),
  })).filter((section) => section.members.length);
}

function contents(section) {
  const links = section.members.map((one) => {
    const link = element("a", { href: `#${one.anchor}` }, element("span", { class: `method ${one.method}` }, one.method.toUpperCase()), element("span", {}, breakable(one.path)));
    return element("li", { "data-anchor": one.anchor }, link);
  });
  return element("section", {}, element("h2", {}, section.name), element("ul", {}, links));
}

// Hides the operations that do not contain every word, in the contents and in the page.
function filter(all) {
  const words = byId("filter").value.toLowerCase().split(/\s+/).filter(Boolean);
  for (const one of all) {
    const text = `${one.method} ${one.path} ${one.operation.summary ?? ""} ${one.tag}`.toLowerCase();
    const hidden = !words.every((word) => text.includes(word));
    byId(one.anchor).hidden = hidden;
    document.querySelector(`[data-anchor="${one.anchor}"]`).hidden = hidden;
  }
  document.querySelector(".about").hidden = words.length > 0;
  for (const section of document.querySelectorAll("#contents section, main section.tag")) {
    section.hidden = !section.querySelector(":is(li, details.card):not([hidden])");
  }
}

function openAnchor() {
  const target = byId(decodeURIComponent(location.hash.slice(1)));
  if (!(target instanceof HTMLDetailsElement)) return;
  target.open = true;
  target.scrollIntoView();
}

async function begin() {
  byId("credentials").addEventListener("submit", (event) => event.preventDefault());
  const response = await fetch(new URL("openapi.json", document.baseURI));
  if (!response.ok) throw new Error(`openapi.json answers ${response.status}`);
  const openapi = await response.json();
  const all = operations(openapi);
  const title = `${openapi.info?.title ?? "API"} ${openapi.info?.version ?? ""}`.trim();
  document.title = title;
  byId("title").textContent = title;
  const parts = sections(openapi, all);
  byId("contents").replaceChildren(...parts.map(contents));
  const views = parts.map((section) =>
    element("section", { class: "tag" }, element("h2", {}, section.name), prose(section.description), section.members.map((one) => operationView(openapi, one, token))),
  );
  // A list is for reference; the operations come first.
  const described = prose(openapi.info?.description).map((block) => (block.tagName === "UL" ? folded({}, "Show all", () => block) : block));
  const about = element("div", { class: "about" }, described);
  byId("content").replaceChildren(about, ...views);
  byId("filter").addEventListener("input", () => filter(all));
  addEventListener("hashchange", openAnchor);
  openAnchor();
}

begin().catch((error) => {
  byId("status").textContent = `The description of this API could not be read: ${error.message}`;
});
