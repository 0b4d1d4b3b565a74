// Open pages change by themselves, and keys work like the mouse.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { api, entity, launch, signedIn, sound, started, tokenOf, url } from "./support.js";

let browser;
before(async () => (browser = await launch()));
after(() => browser.close());

/** The time limit for an open page to show a change by another person, in milliseconds. */
const SOON = 1000;

/** Opens a page, and returns when its event stream is open. */
async function opened(page, address) {
  const stream = page.waitForResponse((answer) => answer.url().includes("/console/live"));
  await page.goto(url + address);
  assert.equal((await stream).status(), 200);
}

test("another person's decision is on an open page within a second, and the focus stays", async () => {
  const { id, task } = await started(entity("live"), "Live");
  const page = await signedIn(browser, "author");
  await opened(page, `/console/instances/${id}`);
  const tab = page.getByRole("link", { name: "Data" });
  await tab.focus();
  await page.evaluate(() => (window.kept = document.querySelector("#banner")));
  const decided = await api("POST", `/tasks/${task}/decide`, { outcome: "REJECT", comment: "Too dear" }, tokenOf("reviewer"));
  assert.equal(decided.status, 200);
  await page.locator("#banner .badge", { hasText: "Rework" }).waitFor({ timeout: SOON });
  await page.locator("#timeline blockquote", { hasText: "Too dear" }).waitFor({ timeout: SOON });
  assert.ok(await tab.evaluate((link) => link === document.activeElement), "the focus stays");
  assert.ok(await page.evaluate(() => window.kept.isConnected), "the banner is changed, not replaced");
  assert.deepEqual(page.context().complaints, []);
  await page.context().close();
});

test("typed text is kept while the page changes", async () => {
  const { id, task } = await started(entity("typed"), "Typed");
  const page = await signedIn(browser, "reviewer");
  await opened(page, `/console/instances/${id}?action=decide&task=${task}&outcome=REJECT`);
  await page.getByLabel("Comment").fill("Half a sent");
  const claimed = await api("POST", `/tasks/${task}/claim`, {}, tokenOf("reviewer"));
  assert.equal(claimed.status, 200);
  await page.locator("#banner").getByText("Yours").waitFor({ timeout: SOON });
  assert.equal(await page.getByLabel("Comment").inputValue(), "Half a sent");
  await page.context().close();
});

test("new work is announced, and the rows do not jump", async () => {
  const name = entity("news");
  await started(`${name}-0`, `${name} 0`);
  const page = await signedIn(browser, "reviewer");
  await opened(page, `/console?view=available&q=${name}`);
  assert.equal(await page.locator(".row").count(), 1);
  await started(`${name}-1`, `${name} 1`);
  await started(`${name}-2`, `${name} 2`);
  const news = page.getByRole("status").getByRole("link", { name: "2 new tasks – show" });
  await news.waitFor({ timeout: 2 * SOON });
  assert.equal(await page.locator(".row").count(), 1, "the visible rows do not change");
  await sound(page, "inbox-news");
  await news.click();
  assert.equal(await page.locator(".row").count(), 3);
  await page.context().close();
});

test("an inbox and a decision by keys alone", async () => {
  const name = entity("keys");
  for (const one of ["A", "B"]) await started(`${name}-${one}`, `${name} ${one}`);
  const page = await signedIn(browser, "reviewer");
  await page.goto(`${url}/console?view=available&q=${name}`);
  const focused = () => page.evaluate(() => document.activeElement.textContent);
  await page.keyboard.press("j");
  assert.equal(await focused(), `${name} A`);
  await page.keyboard.press("j");
  assert.equal(await focused(), `${name} B`);
  await page.keyboard.press("k");
  await page.keyboard.press("o");
  await page.getByRole("heading", { name: `${name} A` }).waitFor();
  await page.keyboard.press("a");
  await page.getByRole("button", { name: "Confirm: APPROVE" }).waitFor();
  await page.keyboard.press("c");
  await page.keyboard.type("jk a?");
  assert.equal(await page.getByLabel("Comment").inputValue(), "jk a?", "keys are letters in a field");
  await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  await page.getByText("Your decision is recorded.").waitFor();
  await page.keyboard.press("?");
  await page.getByRole("heading", { name: "Keys", exact: true }).waitFor();
  await sound(page, "keys");
  await page.keyboard.press("Escape");
  await page.keyboard.press("Control+k");
  assert.equal(await page.evaluate(() => document.activeElement.id), "find");
  await page.context().close();
});

test("a session that is ended elsewhere is signed out at its next request", async () => {
  const [first, second] = [await signedIn(browser, "approver"), await signedIn(browser, "approver")];
  await first.goto(`${url}/console/me`);
  await sound(first, "me");
  await first.getByText("This browser").waitFor();
  const client = first.locator(".client").first();
  assert.match(await client.innerText(), /^Chrome \d+ · \w+/);
  assert.match(await client.getAttribute("title"), /^Mozilla/);
  const before = await first.locator("#sessions + ul > li").count();
  assert.ok(before >= 2);
  // The newest sign-in is the first of the list. The session of this browser has no button.
  await first.getByRole("button", { name: "Sign out there" }).first().click();
  assert.equal(await first.locator("#sessions + ul > li").count(), before - 1);
  await second.goto(`${url}/console`);
  assert.equal(new URL(second.url()).pathname, "/console/sign-in");
  await first.context().close();
  await second.context().close();
});
