// The page and the server of docs/embedding.md, unchanged, at another origin.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, before, test } from "node:test";
import { gzipSync } from "node:zlib";
import { accessible, api, entity, launch, pictures, profile, tokenOf, url } from "./support.js";

/** The time limit for a page to show a change, in milliseconds. */
const SOON = 1000;

const pageText = readFileSync(new URL("../../docs/embedding.md", import.meta.url), "utf8");
const blocks = [...pageText.matchAll(/^```(\w+)\n([\s\S]*?)^```/gm)].map(([, kind, text]) => ({ kind, text }));
const [html] = blocks.filter((one) => one.kind === "html");
const [script, server] = blocks.filter((one) => one.kind === "js");
const [style] = blocks.filter((one) => one.kind === "css");

let browser;
let product;
const number = entity("RFA");

/** The product with its page about `number`. */
async function startProduct(page) {
  const folder = mkdtempSync(path.join(tmpdir(), "wrkflw-product-"));
  const files = { "index.html": page, "product.js": script.text, "product.css": style.text, "server.mjs": server.text };
  for (const [name, text] of Object.entries(files)) writeFileSync(path.join(folder, name), text);
  const env = { PATH: process.env.PATH, WRKFLW_HOST: url, WRKFLW_TOKEN: tokenOf("product") };
  const child = spawn(process.execPath, ["server.mjs"], { cwd: folder, env, stdio: ["ignore", "pipe", "inherit"] });
  const ended = new Promise((resolve) => child.on("exit", resolve));
  const [said] = await Promise.race([new Promise((resolve) => child.stdout.once("data", (text) => resolve([String(text)]))), ended.then(() => assert.fail("the product ended"))]);
  return {
    url: said.trim(),
    async stop() {
      child.kill();
      await ended;
      rmSync(folder, { recursive: true });
    },
  };
}

before(async () => {
  browser = await launch();
  product = await startProduct(html.text.replaceAll("RFA-7", number));
});
after(async () => {
  await product?.stop();
  await browser?.close();
});

let running;

/** Starts an approval about the product's document, after the earlier one is cancelled. */
async function started(title) {
  if (running) assert.equal((await api("POST", `/instances/${running}/cancel`, { reason: "the next test" })).status, 200);
  const body = { definitionKey: "document-approval", entityType: "rfa", entityId: number, data: { title } };
  const answer = await api("POST", "/instances", body, tokenOf("author"));
  assert.equal(answer.status, 201, JSON.stringify(answer.body));
  const { instance } = answer.body;
  running = instance.id;
  return { id: instance.id, task: instance.states[0].tasks[0].id };
}

/** The product's page for a person who is signed in to the product. */
async function seen(person, options = {}, place = product) {
  const context = await profile(browser, { origins: [place.url, url], ...options });
  await context.addCookies([{ name: "person", value: person, url: place.url }]);
  const page = await context.newPage();
  await page.goto(place.url);
  return page;
}

test("the banner comes before the content, and a reviewer decides in it", async () => {
  const { id } = await started(`Facade ${number}`);
  const page = await seen("reviewer");
  const element = page.locator("wrkflw-instance");
  await element.getByRole("heading", { name: `Facade ${number}` }).waitFor();
  await element.getByText(`rfa ${number}`).waitFor();
  await element.locator(".badge.state", { hasText: "First review" }).waitFor();
  await element.locator("li[aria-current=step]").getByText("First review").waitFor();
  const order = await page.evaluate(() => {
    const banner = document.querySelector("wrkflw-instance");
    return Boolean(banner.compareDocumentPosition(document.querySelector("article")) & Node.DOCUMENT_POSITION_FOLLOWING);
  });
  assert.ok(order, "the banner comes first");
  await accessible(page, "embedded");
  await pictures(page, "embedded");

  // A rejection needs a comment.
  await element.getByRole("link", { name: "REJECT" }).click();
  const comment = element.getByLabel("Comment");
  await comment.waitFor();
  assert.equal(await comment.getAttribute("required"), "");
  await accessible(page, "embedded-form");
  await element.getByRole("link", { name: "Do not do it" }).click();
  await comment.waitFor({ state: "detached" });

  await element.getByRole("link", { name: "APPROVE" }).click();
  await element.locator("#preview").getByText("Final review").waitFor();
  await element.getByLabel("Comment").fill("As drawn");
  await pictures(page, "embedded-decide");
  await element.getByRole("button", { name: "Confirm: APPROVE" }).click();
  await element.getByText("Your decision is recorded.").waitFor();
  await page.locator("#decided", { hasText: "Decided: APPROVE" }).waitFor();
  await element.locator("blockquote", { hasText: "As drawn" }).waitFor();
  await element.locator("li[aria-current=step]").getByText("Final review").waitFor();
  await pictures(page, "embedded-decided");
  const { body } = await api("GET", `/instances/${id}/history`);
  assert.equal(body.data[0].tasks[0].decision.actor, "reviewer");
  assert.deepEqual(page.context().complaints, []);
  await page.context().close();
});

test("everything works by keyboard, and the focus follows", async () => {
  await started(`Keys ${number}`);
  const page = await seen("reviewer");
  const element = page.locator("wrkflw-instance");
  await element.getByRole("link", { name: "APPROVE" }).waitFor();
  const focus = () => page.evaluate(() => document.activeElement.shadowRoot?.activeElement?.textContent.trim() ?? document.activeElement.tagName);
  while ((await focus()) !== "APPROVE") await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  await element.locator("#preview").waitFor();
  assert.match(await focus(), /What will happen/);
  while (!(await focus()).startsWith("Confirm")) await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  await element.getByText("Your decision is recorded.").waitFor();
  assert.equal(await focus(), "Your decision is recorded.");
  await page.context().close();
});

test("changes by others are shown within a second, and keep a form that is being filled in", async () => {
  const { task } = await started(`Live ${number}`);
  const page = await seen("reviewer");
  const element = page.locator("wrkflw-instance");
  const stream = page.waitForResponse((answer) => answer.url().endsWith("/embed/live"));
  await element.getByRole("link", { name: "REJECT" }).click();
  await element.getByLabel("Comment").fill("Half a sentence");
  assert.equal((await stream).status(), 200);
  assert.equal((await api("POST", `/tasks/${task}/decide`, { outcome: "APPROVE" }, tokenOf("reviewer2"))).status, 200);
  await element.locator("li[aria-current=step]").getByText("Final review").waitFor({ timeout: SOON });
  assert.equal(await element.getByLabel("Comment").inputValue(), "Half a sentence");

  // The decision came too late. The page names who was first.
  await element.getByRole("button", { name: "Show what will happen" }).click();
  const lost = element.getByRole("alert");
  await lost.getByText("Rita Reviewer").waitFor();
  assert.match(await lost.textContent(), /APPROVE/);
  await pictures(page, "embedded-lost");
  assert.deepEqual(page.context().complaints, []);
  await page.context().close();
});

test("who may not decide sees why", async () => {
  await started(`Refused ${number}`);
  const page = await seen("author");
  const element = page.locator("wrkflw-instance");
  const refused = element.getByRole("button", { name: "APPROVE" });
  await refused.waitFor();
  assert.ok(await refused.isDisabled());
  // The reason is beside the last button that is refused for it.
  const why = element.locator(".task .refused:last-child .faint");
  assert.equal((await why.textContent()).trim(), "You requested this, so somebody else works on it.");
  await accessible(page, "embedded-refused");
  await pictures(page, "embedded-refused");
  await page.context().close();
});

test("the product's colours, the language and the width of the element count", async () => {
  await started(`Looks ${number}`);
  const page = await seen("reviewer");
  const element = page.locator("wrkflw-instance");
  const approve = element.getByRole("link", { name: "APPROVE" });
  await approve.waitFor();
  assert.equal(await approve.evaluate((one) => getComputedStyle(one).backgroundColor), "rgb(15, 94, 77)");
  for (const [language, text] of [["de", "Wartet auf"], ["th", "รอ"]]) {
    await element.evaluate((one, code) => one.setAttribute("lang", code), language);
    await page.locator(`wrkflw-instance .embed[lang=${language}]`).waitFor();
    assert.match(await element.locator(".timeline").textContent(), new RegExp(text));
    await pictures(page, `embedded-${language}`);
  }
  for (const theme of ["dark", "light"]) {
    await element.evaluate((one, value) => one.setAttribute("theme", value), theme);
    const scheme = await element.evaluate((one) => getComputedStyle(one).colorScheme);
    assert.equal(scheme, theme);
  }
  // In a narrow element of a wide page, two columns become one.
  await page.evaluate(() => {
    const sheet = new CSSStyleSheet();
    sheet.replaceSync("main { box-sizing: content-box; width: 320px; padding: 0 }");
    document.adoptedStyleSheets.push(sheet);
  });
  const button = await element.locator(".task .buttons > *").first().evaluate((one) => getComputedStyle(one).flexGrow);
  assert.equal(button, "1", "the styles of a narrow place");
  assert.equal(await element.evaluate((one) => one.scrollWidth - one.clientWidth), 0);
  await page.context().close();
});

test("an expired token is renewed without a message", async () => {
  await started(`Renewed ${number}`);
  const page = await seen("reviewer");
  const element = page.locator("wrkflw-instance");
  await element.getByRole("link", { name: "APPROVE" }).waitFor();
  let renewed = 0;
  page.on("request", (request) => (renewed += request.url().endsWith("/wrkflw-token") ? 1 : 0));
  // The host refuses the token once, as if it had expired.
  let refused = 0;
  await page.route("**/embed/instance", (route) => {
    if (refused === 0 && route.request().method() === "POST") {
      refused += 1;
      const headers = { ...route.request().headers(), authorization: "Bearer expired" };
      return route.continue({ headers });
    }
    return route.continue();
  });
  await element.getByRole("link", { name: "APPROVE" }).click();
  await element.locator("#preview").waitFor();
  assert.deepEqual([refused, renewed], [1, 1]);
  await page.context().close();
});

test("a token does not serve a page of another origin, and what the page has stays", async () => {
  await started(`Origin ${number}`);
  // The same product at another port, whose server requests tokens for the first origin.
  const other = await startProduct(html.text.replaceAll("RFA-7", number));
  const page = await seen("reviewer", {}, other);
  const granted = await fetch(`${url}/v1/embed-tokens`, {
    method: "POST",
    headers: { authorization: `Bearer ${tokenOf("product")}`, "content-type": "application/json" },
    body: JSON.stringify({ subject: "reviewer", roles: ["user"], entityType: "rfa", entityId: number, origin: product.url }),
  });
  const { token } = await granted.json();
  const element = page.locator("wrkflw-instance");
  await element.getByRole("heading", { name: `Origin ${number}` }).waitFor();
  const told = await page.evaluate(async (foreign) => {
    const one = document.createElement("wrkflw-instance");
    one.getToken = () => foreign;
    one.textContent = "What the page has";
    const error = new Promise((resolve) => one.addEventListener("wrkflw-error", (event) => resolve(event.detail.status)));
    document.querySelector("main").append(one);
    return [await error, one.shadowRoot.querySelector(".embed") === null];
  }, token);
  assert.deepEqual(told, [0, true]);
  await page.context().close();
  await other.stop();
});

test("the product asks for the document that the page names, also with slashes in its number", async () => {
  const { id } = await started(`Outer ${number}`);
  const body = { definitionKey: "document-approval", entityType: "rfa", entityId: `${number}/7`, data: { title: "Inner" } };
  const inner = (await api("POST", "/instances", body, tokenOf("author"))).body.instance.id;
  const asked = (entity) => {
    const headers = { origin: product.url, cookie: "person=reviewer" };
    return fetch(`${product.url}/wrkflw-token`, { method: "POST", headers, body: new URLSearchParams({ entity }) });
  };
  assert.equal((await (await asked(`rfa/${number}`)).json()).instanceId, id);
  assert.equal((await (await asked(`rfa/${number}/7`)).json()).instanceId, inner);
  for (const entity of ["", "rfa", `/${number}`]) assert.equal((await asked(entity)).status, 403, entity);
});

test("the element is small", async () => {
  const answer = await fetch(`${url}/embed/wrkflw-instance.js`);
  const size = gzipSync(await answer.text()).length;
  assert.ok(size <= 6000, `${size} bytes`);
});
