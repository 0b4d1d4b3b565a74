// The browser, people who are signed in, and what every page must hold.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { chromium } from "playwright-core";

const require = createRequire(import.meta.url);
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");

/** A setting that `scripts/browser.sh` makes. */
export function setting(name) {
  const value = process.env[name];
  assert.ok(value, `${name} is not set: run scripts/browser.sh`);
  return value;
}

export const url = setting("WRKFLW_TEST_URL");
const screenshots = setting("WRKFLW_TEST_SCREENSHOTS");

/** Without these, Chromium asks hosts of its maker at every start. */
const QUIET = [
  "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
  "--disable-component-update", "--disable-sync",
];

export function launch() {
  return chromium.launch({ executablePath: setting("WRKFLW_TEST_BROWSER"), args: QUIET });
}

/** A new profile of the browser. It fails on a request to other origins than these and on anything that the page's console complains of. */
export async function profile(browser, { origins = [url], ...options } = {}) {
  const context = await browser.newContext({ locale: "en", ...options });
  const complaints = [];
  context.on("request", (request) => {
    if (!origins.some((origin) => request.url().startsWith(origin))) complaints.push(`a request to ${request.url()}`);
  });
  context.on("console", (message) => {
    // A refusal is an answer with such a status, and pages show it.
    const isStatus = message.text().startsWith("Failed to load resource: the server responded with a status of 4");
    if (["error", "warning"].includes(message.type()) && !isStatus) complaints.push(message.text());
  });
  context.on("weberror", (error) => complaints.push(String(error.error())));
  return Object.assign(context, { complaints });
}

/** A page of somebody who signed in by one click. */
export async function signedIn(browser, person, options) {
  const context = await profile(browser, options);
  const page = await context.newPage();
  await page.goto(`${url}/console/sign-in`);
  await page.locator(`button[name=person][value=${person}]`).click();
  await page.waitForURL((address) => !address.pathname.includes("sign-in"));
  return page;
}

/** Nothing that axe finds in this page, in light and in dark. */
export async function accessible(page, what) {
  for (const colorScheme of ["light", "dark"]) {
    await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
    // A script of the tests, not of the page: the policy of the page does not concern it.
    await page.evaluate(axe);
    const result = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ["violations"] }));
    const found = result.violations.map((one) => `${one.id}: ${one.nodes.map((node) => node.html).join(" | ")}`);
    assert.deepEqual(found, [], `${what}, ${colorScheme}`);
  }
  await page.emulateMedia({ colorScheme: "light" });
}

/** Pictures of this page: light, dark, and on a narrow screen, where nothing may stick out. */
export async function pictures(page, name) {
  const size = page.viewportSize();
  for (const colorScheme of ["light", "dark"]) {
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

/** All that every page must hold: accessible, fits a narrow screen, and no complaint so far. */
export async function sound(page, name) {
  await accessible(page, name);
  await pictures(page, name);
  assert.deepEqual(page.context().complaints, [], name);
}

let entities = 0;

/** A bearer token of a person of the host. */
export function tokenOf(person) {
  return setting(`WRKFLW_TEST_${person.toUpperCase()}`);
}

/** Calls the API itself, as the administrator or somebody else. */
export async function api(method, route, body, token = tokenOf("admin")) {
  const response = await fetch(`${url}/v1${route}`, {
    method,
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  const text = await response.text();
  return { status: response.status, body: text ? JSON.parse(text) : null };
}

/** Does what no caller of the API can bring about. */
export function sql(statement) {
  return execFileSync("psql", ["--no-psqlrc", "--quiet", "--tuples-only", "--set=ON_ERROR_STOP=1", setting("WRKFLW_TEST_DATABASE"), "-c", statement], { encoding: "utf8" });
}

/** Starts an approval of a document as its author, who cannot review it. */
export async function started(id, title) {
  const body = { definitionKey: "document-approval", entityType: "document", entityId: id, data: { title } };
  const answer = await api("POST", "/instances", body, tokenOf("author"));
  assert.equal(answer.status, 201, JSON.stringify(answer.body));
  const { instance } = answer.body;
  return { id: instance.id, task: instance.states[0].tasks[0].id };
}

/** A name that no other entity of this run has. */
export function entity(what) {
  entities += 1;
  return `${what}-${process.pid}-${entities}`;
}
