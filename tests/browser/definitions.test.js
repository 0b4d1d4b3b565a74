// What a definer does: see the versions of a flow, what differs, activate one knowing what it affects, and take it back.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { api, entity, launch, setting, signedIn, sound, tokenOf, url } from "./support.js";

let browser;
before(async () => (browser = await launch()));
after(() => browser.close());

/** Publishes the sample flow under a key with a config, and gives the version. */
async function published(key, config) {
  const form = new FormData();
  form.append("component", new Blob([readFileSync(setting("WRKFLW_TEST_COMPONENT"))]));
  form.append("config", JSON.stringify(config));
  const answer = await fetch(`${url}/v1/definitions/${key}/versions`, {
    method: "POST",
    headers: { authorization: `Bearer ${tokenOf("admin")}` },
    body: form,
  });
  const body = await answer.json();
  assert.ok(answer.ok, JSON.stringify(body));
  return body.version;
}

/** A definition with an active version 1, and a version 2 in which a rejection needs no comment. */
async function definition() {
  const key = entity("plan");
  await published(key, {});
  await published(key, { rejectionNeedsComment: false });
  assert.equal((await api("POST", `/definitions/${key}/versions/1/activate`, {})).status, 200);
  const body = { definitionKey: key, entityType: "plan", entityId: key, data: { title: "Plan" } };
  assert.equal((await api("POST", "/instances", body, tokenOf("author"))).status, 201);
  return key;
}

test("a definer finds a definition with its versions, and how many instances run", async () => {
  const key = await definition();
  const page = await signedIn(browser, "admin");
  await page.getByRole("link", { name: "Definitions" }).click();
  const row = page.locator("tr", { hasText: key });
  await row.getByText("Version 1").waitFor();
  await row.getByText("Version 2").waitFor();
  await row.getByText("Alex Admin").waitFor();
  await sound(page, "definitions");
  await row.getByRole("link", { name: "Document approval" }).click();
  await page.getByText("1 instance runs").waitFor();
  const first = page.locator("tr", { hasText: "Version 1" });
  assert.equal(await first.locator("td").last().innerText(), "1");
  await first.getByText("Active", { exact: true }).waitFor();
  await sound(page, "definition");
  await page.context().close();
});

test("a version shows its diagram, and what differs in words rather than lines", async () => {
  const key = await definition();
  const page = await signedIn(browser, "admin");
  await page.goto(`${url}/console/definitions/${key}/2`);
  const drawn = await page.locator(".diagram img").evaluate((image) => image.decode().then(() => image.naturalWidth));
  assert.ok(drawn > 100, `${drawn} px`);
  const difference = page.locator("#difference");
  await difference.getByText("From version 1 to version 2").waitFor();
  const change = difference.locator("li", { hasText: "submitted · REJECT" });
  await change.getByText("changed", { exact: true }).waitFor();
  assert.equal(await change.locator("del").innerText(), "required");
  assert.equal(await change.locator("ins").innerText(), "optional");
  assert.equal(await difference.getByText("The component is another one").count(), 0);
  await sound(page, "version");
  await page.goto(`${url}/console/definitions/${key}/1?against=2`);
  await difference.getByText("From version 2 to version 1").waitFor();
  await page.context().close();
});

test("activating shows what it affects, and is undone", async () => {
  const key = await definition();
  const page = await signedIn(browser, "admin", { javaScriptEnabled: false });
  await page.goto(`${url}/console/definitions/${key}/2`);
  await page.getByRole("link", { name: "Activate" }).click();
  const preview = page.locator("#preview");
  await preview.getByText("New instances take version 2 from now on.").waitFor();
  await preview.getByText("Version 1 keeps its running instances: 1.").waitFor();
  const active = async () => (await api("GET", `/definitions/${key}`)).body.active.version;
  assert.equal(await active(), 1, "nothing has happened yet");
  await page.getByRole("button", { name: "Confirm: Activate" }).click();
  await page.getByText("The version is active.").waitFor();
  assert.equal(await active(), 2);
  await page.getByRole("link", { name: "Undo: activate version 1 again" }).click();
  await page.getByRole("button", { name: "Confirm: Activate" }).click();
  await page.getByText("The version is active.").waitFor();
  assert.equal(await active(), 1);
  await page.context().close();
});

test("a version with names that do not exist says which, and is activated only knowingly", async () => {
  const key = await definition();
  await published(key, { initiators: "nobody-knows" });
  const page = await signedIn(browser, "admin");
  await page.goto(`${url}/console/definitions/${key}/3?do=activate#act`);
  await page.getByRole("button", { name: "Confirm: Activate" }).click();
  await page.getByRole("alert").getByText("nobody-knows").first().waitFor();
  await sound(page, "activate-refused");
  await page.getByLabel("Do it although these names do not exist.").check();
  await page.getByRole("button", { name: "Confirm: Activate" }).click();
  await page.getByText("The version is active.").waitFor();
  await page.context().close();
});

test("a version is stopped with a reason, and resumed", async () => {
  const key = await definition();
  const page = await signedIn(browser, "admin");
  await page.goto(`${url}/console/definitions/${key}/1`);
  await page.getByRole("link", { name: "Stop" }).click();
  await page.locator("#preview").getByText("1 running instance stands still until the version is resumed.").waitFor();
  await page.getByLabel("Reason").fill("It decides wrongly");
  await sound(page, "stop");
  await page.getByRole("button", { name: "Confirm: Stop" }).click();
  await page.getByText("The version is stopped.").waitFor();
  await page.locator("#banner").getByText("Stopped").waitFor();
  await page.locator(".notice").getByRole("link", { name: "Resume" }).click();
  await page.getByRole("button", { name: "Confirm: Resume" }).click();
  await page.getByText("The version runs again.").waitFor();
  await page.context().close();
});

test("who may not activate sees why, and a form that is sent nevertheless is refused in place", async () => {
  const key = await definition();
  const page = await signedIn(browser, "author");
  assert.equal(await page.getByRole("link", { name: "Definitions" }).count(), 0);
  await page.goto(`${url}/console/definitions/${key}/2`);
  assert.ok(await page.getByRole("button", { name: "Activate" }).isDisabled());
  await page.getByText("this needs the permission definition:activate").waitFor();
  await page.goto(`${url}/console/definitions/${key}/2?do=activate#act`);
  await page.getByRole("button", { name: "Confirm: Activate" }).click();
  await page.getByRole("alert").getByText("definition:activate").waitFor();
  await sound(page, "activate-forbidden");
  assert.equal((await api("GET", `/definitions/${key}`)).body.active.version, 1);
  await page.context().close();
});
