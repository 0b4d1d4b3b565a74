// The browser, signed-in people, and the requirements for every page.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { afterEach } from "node:test";
import { setTimeout } from "node:timers/promises";
import { chromium } from "playwright-core";

const require = createRequire(import.meta.url);
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");

/** A setting of `scripts/browser.sh`. */
export function setting(name) {
  const value = process.env[name];
  assert.ok(value, `${name} is not set: run scripts/browser.sh`);
  return value;
}

/** A key of `wrkflw dev`, for another host that verifies its seals. The name of the key follows from its secret. */
export function keyOfDev(secret) {
  const digest = createHash("sha256").update(secret).digest("hex");
  return `dev-${digest.slice(0, 8)}:${secret}`;
}

export const url = setting("WRKFLW_TEST_URL");
const screenshots = setting("WRKFLW_TEST_SCREENSHOTS");

/** Without these, Chromium calls hosts of its vendor at every start. */
const QUIET = [
  "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
  "--disable-component-update", "--disable-sync",
];

export function launch() {
  return chromium.launch({ executablePath: setting("WRKFLW_TEST_BROWSER"), args: QUIET });
}

/** The profiles that are still open. */
const open = new Set();

// A failed test prints the texts of its pages. Usually it waited for a text, and the page showed another one.
afterEach(async (one) => {
  if (one.passed === false) {
    for (const page of [...open].flatMap((context) => context.pages())) {
      const text = await page.locator("body").innerText({ timeout: 1000 }).catch(String);
      console.log(`${one.name}: at its end ${page.url()} shows:\n${text.slice(0, 3000)}`);
    }
  }
  await Promise.all([...open].map((context) => context.close()));
});

/** A new profile of the browser. It fails on requests to other origins than these, and on all errors in the page's console. */
export async function profile(browser, { origins = [url], ...options } = {}) {
  const context = await browser.newContext({ locale: "en", ...options });
  const complaints = [];
  open.add(context);
  context.on("close", () => open.delete(context));
  context.on("request", (request) => {
    if (!origins.some((origin) => request.url().startsWith(origin))) complaints.push(`a request to ${request.url()}`);
  });
  context.on("console", (message) => {
    // A refusal is a response with such a status, which pages show.
    const isStatus = message.text().startsWith("Failed to load resource: the server responded with a status of 4");
    if (["error", "warning"].includes(message.type()) && !isStatus) complaints.push(message.text());
  });
  context.on("weberror", (error) => complaints.push(String(error.error())));
  return Object.assign(context, { complaints });
}

/** A page of a person who has signed in by one click. */
export async function signedIn(browser, person, options) {
  const context = await profile(browser, options);
  const page = await context.newPage();
  await page.goto(`${url}/console/sign-in`);
  await page.locator(`button[name=person][value=${person}]`).click();
  await page.waitForURL((address) => !address.pathname.includes("sign-in"));
  return page;
}

/** The rules of axe that depend on colours. */
const OF_COLOURS = ["color-contrast", "link-in-text-block"];

/** Checks that axe finds nothing in this page: all rules in the light scheme, those of colours in the dark one. */
export async function accessible(page, what) {
  // The script belongs to the test. The content security policy of the page does not apply to it.
  await page.evaluate(axe);
  for (const [colorScheme, runOnly] of [["light", undefined], ["dark", OF_COLOURS]]) {
    await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
    const options = { resultTypes: ["violations"], ...(runOnly && { runOnly }) };
    const result = await page.evaluate((options) => globalThis.axe.run(document, options), options);
    const found = result.violations.map((one) => `${one.id}: ${one.nodes.map((node) => node.html).join(" | ")}`);
    assert.deepEqual(found, [], `${what}, ${colorScheme}`);
  }
  await page.emulateMedia({ colorScheme: "light" });
}

/** Takes pictures of this page in these schemes and on a narrow screen, on which nothing may overflow. */
export async function pictures(page, name, schemes = ["light", "dark"]) {
  const size = page.viewportSize();
  for (const colorScheme of schemes) {
    await page.emulateMedia({ colorScheme });
    await page.screenshot({ path: path.join(screenshots, `${name}-${colorScheme}.png`), fullPage: true });
  }
  await page.emulateMedia({ colorScheme: "light" });
  await page.setViewportSize({ width: 360, height: 740 });
  await page.screenshot({ path: path.join(screenshots, `${name}-narrow.png`), fullPage: true });
  const width = await page.evaluate(() => document.documentElement.scrollWidth);
  assert.ok(width <= 360, `${name} is ${width} px wide on a screen of 360 px`);
  await page.setViewportSize(size);
}

/** Checks the requirements for every page: accessible, fits a narrow screen, and no error so far. */
export async function sound(page, name) {
  await accessible(page, name);
  await pictures(page, name);
  assert.deepEqual(page.context().complaints, [], name);
}

/** The widths of a narrow phone and a common notebook, in CSS pixels. */
const WIDTHS = [360, 1280];

/** Replaces the texts of a page by texts of a language whose words are half as long again, with marks above and below the letters. */
export function lengthened() {
  const marked = { a: "ą̊", e: "ę̈", i: "ï", o: "ǫ̈", u: "ų̈", A: "Å", E: "Ë", I: "Ï", O: "Ö", U: "Ü", n: "ñ", s: "š", g: "ĝ", y: "ÿ" };
  // Replaces words between characters other than letters and digits. Ids and digests are the same in every language.
  const word = /(?<![\p{L}\p{N}_-])\p{L}{2,}(?![\p{L}\p{N}_-])/gu;
  const longer = (text) =>
    text.replace(word, (one) => [...one].map((letter) => marked[letter] ?? letter).join("") + "ö".repeat(Math.ceil(one.length / 2)));
  const within = (root) => {
    const texts = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
    while (texts.nextNode()) {
      const text = texts.currentNode;
      if (!text.parentElement?.closest("script, style, pre, code, kbd, svg")) text.data = longer(text.data);
    }
    for (const element of root.querySelectorAll("*")) if (element.shadowRoot) within(element.shadowRoot);
  };
  within(document.body);
  for (const field of document.querySelectorAll("[placeholder]")) field.placeholder = longer(field.placeholder);
}

/** The number of words of the page that were not replaced. */
export function unlengthened() {
  const texts = [...document.querySelectorAll("main h1, main h2, main button, main .badge, main label")];
  return texts.filter((one) => /(?<![\p{L}\p{N}_-])\p{L}{2,}(?<!ö)(?![\p{L}\p{N}\p{M}_-])/u.test(one.textContent)).length;
}

/** The elements whose text overflows, or that stick out of the window. */
export function overflowing() {
  // Elements for screen readers only.
  const clipped = (element) => element && (getComputedStyle(element).clipPath !== "none" || clipped(element.parentElement));
  const scrolls = (element) => ["auto", "scroll"].includes(getComputedStyle(element).overflowX);
  const within = (element) => element && (scrolls(element) || within(element.parentElement));
  const found = [];
  const below = (root) => [...root.querySelectorAll("*")].flatMap((one) => [one, ...(one.shadowRoot ? below(one.shadowRoot) : [])]);
  for (const element of below(document.body)) {
    const box = element.getBoundingClientRect();
    // The last one is shown when it gets the focus.
    const unseen = clipped(element) || !element.checkVisibility({ visibilityProperty: true }) || element.closest("svg, .skip");
    if (unseen) continue;
    const spills = element.clientWidth > 0 && element.scrollWidth > element.clientWidth + 1 && !scrolls(element) && !["INPUT", "TEXTAREA", "SELECT"].includes(element.tagName);
    const sticksOut = (box.right > innerWidth + 1 || box.left < -1) && !within(element.parentElement);
    if (spills || sticksOut) found.push(`${element.tagName}.${element.className} ${element.scrollWidth}/${element.clientWidth}: ${element.textContent.trim().slice(0, 60)}`);
  }
  return found;
}

/** The elements that overflow in this page, at each width. */
export async function misfits(page, what) {
  const size = page.viewportSize();
  const found = [];
  for (const width of WIDTHS) {
    await page.setViewportSize({ width, height: 740 });
    for (const one of await page.evaluate(overflowing)) found.push(`${what} at ${width} px: ${one}`);
  }
  await page.setViewportSize(size);
  return found;
}

/** Sends the confirmed form of an action on this page twice, one after the other. Returns the responses; a redirect is opaque. */
export function sentTwice(page) {
  return page.locator("#act form").first().evaluate(async (form) => {
    const body = [...new FormData(form), ["step", "confirm"]];
    // A field of the form is called `action`, so the attribute must be read by name.
    const address = form.getAttribute("action");
    const send = async () => (await fetch(address, { method: "POST", body: new URLSearchParams(body), redirect: "manual" })).type;
    return [await send(), await send()];
  });
}

/** The time between two looks at what a test waits for, and longer than it takes on a busy machine, in milliseconds. */
const LOOK_EVERY = 100;
const LOOK_MAX = 60_000;

/** Repeats a look until it is so, and returns what it saw. For what no page and no event tells. */
export async function until(what, look, isSo) {
  const begun = Date.now();
  for (;;) {
    const seen = await look();
    if (isSo(seen)) return seen;
    assert.ok(Date.now() - begun < LOOK_MAX, `it never came true: ${what}`);
    await setTimeout(LOOK_EVERY);
  }
}

let entities = 0;

/** A bearer token of a person of the host. */
export function tokenOf(person) {
  return setting(`WRKFLW_TEST_${person.toUpperCase()}`);
}

/** A text is already JSON, for example with numbers that JavaScript would round. */
function json(value) {
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** Calls the API, as the administrator or as another person. */
export async function api(method, route, body, token = tokenOf("admin")) {
  const response = await fetch(`${url}/v1${route}`, {
    method,
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    body: body === undefined ? undefined : json(body),
  });
  const text = await response.text();
  return { status: response.status, body: text ? JSON.parse(text) : null, text };
}

/** Runs statements for states that no caller of the API can cause. */
export function sql(statement) {
  return execFileSync("psql", ["--no-psqlrc", "--quiet", "--tuples-only", "--set=ON_ERROR_STOP=1", setting("WRKFLW_TEST_DATABASE"), "-c", statement], { encoding: "utf8" });
}

/** Publishes a component with a config, and returns the version. */
export async function published(key, component, config, { note, name } = {}) {
  const form = new FormData();
  form.append("component", new Blob([component]), name ?? "component");
  form.append("config", json(config));
  if (note) form.append("note", note);
  const headers = { authorization: `Bearer ${tokenOf("admin")}` };
  const answer = await fetch(`${url}/v1/definitions/${key}/versions`, { method: "POST", headers, body: form });
  const body = await answer.json();
  assert.ok(answer.ok, JSON.stringify(body));
  return body.version;
}

/** Reads the file that a setting names. */
export function file(name) {
  return readFileSync(setting(name));
}

/** Publishes a vote and activates it. Its config sets inputs and the names of priorities. The data of an instance sets who votes. */
export async function committee(key, config = {}) {
  const version = await published(key, file("WRKFLW_TEST_COMMITTEE"), { instanceTitle: "{/title}", ...config });
  assert.equal((await api("POST", `/definitions/${key}/versions/${version}/activate`, { force: true })).status, 200);
  return version;
}

/** Starts a vote with this assignment. The default is one offer to the reviewers. */
export async function vote(key, title, assign = {}) {
  const offered = { offers: [{ groups: ["reviewers"] }], needed: 1, ...assign };
  const answer = await api("POST", "/instances", { definitionKey: key, entityType: "vote", entityId: entity("vote"), data: { title, assign: offered } });
  assert.equal(answer.status, 201, JSON.stringify(answer.body));
  const { instance } = answer.body;
  return { id: instance.id, task: instance.states[0].tasks[0]?.id };
}

/** Starts an approval of a document as its author, who cannot review it. */
export async function started(id, title) {
  const body = { definitionKey: "document-approval", entityType: "document", entityId: id, data: { title } };
  const answer = await api("POST", "/instances", body, tokenOf("author"));
  assert.equal(answer.status, 201, JSON.stringify(answer.body));
  const { instance } = answer.body;
  return { id: instance.id, task: instance.states[0].tasks[0].id };
}

/** A name that is unique in this run. */
export function entity(what) {
  entities += 1;
  return `${what}-${process.pid}-${entities}`;
}
