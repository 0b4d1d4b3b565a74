// A definer sees the versions of a flow and their differences, activates a version with a preview, and undoes the activation.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { api, entity, file, launch, profile, published as publishedOf, setting, signedIn, sound, tokenOf, url } from "./support.js";

let browser;
before(async () => (browser = await launch()));
after(() => browser.close());

/** Publishes the sample flow under a key with a config, and gives the version. */
const published = (key, config, note) => publishedOf(key, file("WRKFLW_TEST_COMPONENT"), config, { note });

/** A definition with an active version 1, and a version 2 in which a rejection needs no comment. */
async function definition(key = entity("plan")) {
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
  const fact = (name) => page.locator(".facts > div", { hasText: name }).locator("dd");
  assert.equal(await fact("Started by").innerText(), "authors");
  assert.equal(await fact("Seen by").innerText(), "everybody who may read instances");
  assert.equal(await fact("The flow is told of people").innerText(), "nothing but who they are");
  const drawn = await page.locator(".diagram svg").boundingBox();
  assert.ok(drawn.width > 100 && drawn.height > 100, JSON.stringify(drawn));
  // A state of the drawing leads to its description.
  await page.locator(".diagram a", { hasText: "First review" }).click();
  await page.locator(".states li:target", { hasText: "First review" }).getByText(/Ways out: .*REJECT/).waitFor();
  const difference = page.locator("#difference");
  await difference.getByText("From version 1 to version 2").waitFor();
  const change = difference.locator("li", { hasText: "submitted · REJECT" });
  await change.getByText("changed", { exact: true }).waitFor();
  assert.equal(await change.locator("del").innerText(), "required");
  assert.equal(await change.locator("ins").innerText(), "optional");
  assert.equal(await difference.getByText("The component is another one").count(), 0);
  await page.getByText(/^wrkflw-guest \d+\.\d+\.\d+$/).waitFor();
  await sound(page, "version");
  await page.goto(`${url}/console/definitions/${key}/1?against=2`);
  await difference.getByText("From version 2 to version 1").waitFor();
  await page.context().close();
});

test("a version shows why it was published, in lists and beside another version", async () => {
  const key = entity("noted");
  const hostile = `More reviewers "><img src=x onerror=alert(1)>`;
  await published(key, {}, "The first one");
  await published(key, { rejectionNeedsComment: false }, hostile);
  const page = await signedIn(browser, "admin");
  await page.goto(`${url}/console/definitions/${key}`);
  await page.locator("tr", { hasText: "Version 1" }).getByText("The first one").waitFor();
  await page.locator("tr", { hasText: "Version 2" }).getByText(hostile).waitFor();
  await sound(page, "definition-notes");
  await page.goto(`${url}/console/definitions/${key}/2?against=1`);
  await page.locator("#banner blockquote").getByText(hostile).waitFor();
  assert.deepEqual(await page.locator("#difference blockquote").allInnerTexts(), ["The first one", hostile]);
  assert.equal(await page.locator("main img:not(.diagram img)").count(), 0);
  await sound(page, "version-notes");
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
  await page.locator("#preview").getByText("nobody-knows").waitFor();
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

test("a version is retired, starts nothing any more, and is reinstated", async () => {
  const key = await definition();
  const version = async (number) => (await api("GET", `/definitions/${key}/versions/${number}`)).body;
  const page = await signedIn(browser, "admin");
  await page.goto(`${url}/console/definitions/${key}/1`);
  await page.getByRole("link", { name: "Retire" }).click();
  await page.locator("#preview").getByText("No instance starts under version 1 any more").waitFor();
  await page.locator("#preview").getByText("This is the active version").waitFor();
  assert.equal((await version(1)).retiredAt ?? null, null, "nothing has happened yet");
  await sound(page, "retire");
  await page.getByRole("button", { name: "Confirm: Retire" }).click();
  await page.getByText("The version is retired.").waitFor();
  await page.locator("#banner").getByText("Retired", { exact: true }).waitFor();
  assert.ok((await version(1)).retiredAt);
  const body = { definitionKey: key, entityType: "plan", entityId: `${key}-2`, data: { title: "Plan" } };
  assert.notEqual((await api("POST", "/instances", body, tokenOf("author"))).status, 201);
  await page.getByRole("link", { name: "Reinstate" }).first().click();
  await page.locator("#preview").getByText("Version 1 may be activated again.").waitFor();
  await page.getByRole("button", { name: "Confirm: Reinstate" }).click();
  await page.getByText("The version is reinstated.").waitFor();
  assert.equal((await version(1)).retiredAt ?? null, null);
  await page.getByRole("link", { name: "Activate" }).click();
  await page.getByRole("button", { name: "Confirm: Activate" }).click();
  await page.getByText("The version is active.").waitFor();
  assert.equal((await api("POST", "/instances", body, tokenOf("author"))).status, 201);
  await page.context().close();
});

test("of two administrators who activate at once the last one wins, and both are in the audit", async () => {
  const key = await definition();
  await published(key, { rejectionNeedsComment: false, reviewers: "approvers" });
  const first = await signedIn(browser, "admin");
  const second = await (await profile(browser)).newPage();
  await second.goto(`${url}/console/sign-in`);
  await second.getByText("Sign in with an access token").click();
  await second.getByLabel("Access token").fill(tokenOf("admin2"));
  await second.getByRole("button", { name: "Sign in", exact: true }).click();
  await second.waitForURL((address) => !address.pathname.includes("sign-in"));
  const both = [[first, 2], [second, 3]];
  for (const [page, number] of both) {
    await page.goto(`${url}/console/definitions/${key}/${number}?do=activate#act`);
    await page.locator("#preview").getByText(`New instances take version ${number} from now on.`).waitFor();
  }
  await Promise.all(both.map(([page]) => page.getByRole("button", { name: "Confirm: Activate" }).click()));
  await Promise.all(both.map(([page]) => page.getByText("The version is active.").waitFor()));
  const activations = async () => (await api("GET", "/audit?type=VERSION_ACTIVATED&limit=100")).body.data.filter((entry) => entry.payload.key === key);
  // An entry is in the list once a checkpoint covers it.
  for (const until = Date.now() + 20_000; (await activations()).length < 3 && Date.now() < until; );
  const all = (await activations()).sort((one, other) => one.seq - other.seq);
  const [former, last] = all.slice(1);
  assert.equal(all.length, 3, JSON.stringify(all));
  assert.deepEqual([former.actor, last.actor].sort(), ["admin", "admin2"]);
  assert.deepEqual([former.payload.before, last.payload.before], [1, former.payload.version], "the last one replaced the other's");
  assert.equal((await api("GET", `/definitions/${key}`)).body.active.version, last.payload.version);
  for (const [page] of both) await page.context().close();
});

test("who may not activate sees why, and a form that is sent nevertheless is refused in place", async () => {
  const key = await definition();
  const page = await signedIn(browser, "author");
  assert.equal(await page.getByRole("link", { name: "Definitions" }).count(), 0);
  await page.goto(`${url}/console/definitions/${key}/2`);
  assert.ok(await page.getByRole("button", { name: "Activate" }).isDisabled());
  await page.getByText("this needs the permission definition:activate").waitFor();
  await page.goto(`${url}/console/definitions/${key}/2?do=activate#act`);
  // The dry run says it before anything is confirmed.
  await page.getByRole("alert").getByText("definition:activate").waitFor();
  await page.getByRole("button", { name: "Confirm: Activate" }).click();
  await page.getByRole("alert").getByText("definition:activate").waitFor();
  await sound(page, "activate-forbidden");
  assert.equal((await api("GET", `/definitions/${key}`)).body.active.version, 1);
  await page.context().close();
});

test("definitions are found by their words, each once with its active and its newest version", async () => {
  // The last word of a search may be the beginning of a word. A number may be that of the other keys of this run, so a word ends the key.
  const key = await definition(`${entity("plan")}-lantern`);
  const page = await signedIn(browser, "admin");
  await page.goto(`${url}/console/definitions`);
  const words = page.getByLabel("Words of a key, title or description");
  await words.fill(`document approval ${key}`);
  await page.getByRole("button", { name: "Apply" }).click();
  // The page before, which has all of them, may still be there after the click.
  await page.waitForFunction(() => document.querySelectorAll("main tbody tr").length === 1);
  const rows = page.locator("main tbody tr");
  assert.match(await rows.innerText(), /Version 1[\s\S]*Version 2/);
  await rows.getByRole("link", { name: "Version 2" }).click();
  await page.waitForURL(`${url}/console/definitions/${key}/2`);
  await page.goto(`${url}/console/definitions?q=${key}-nothing`);
  await page.getByText(`Nothing matches “${key}-nothing”.`).waitFor();
  assert.equal(await words.inputValue(), `${key}-nothing`);
  await page.context().close();
});

/** A text that would do harm if a page took it for markup. */
const hostile = `"><img src=x onerror=alert(1)>`;

test("a definer publishes a component, and sees all that the checker finds in place", async () => {
  const key = entity("upload");
  const page = await signedIn(browser, "admin", { javaScriptEnabled: false });
  await page.goto(`${url}/console/definitions`);
  await page.getByRole("link", { name: "Publish a version" }).click();
  await page.getByLabel("Key of the definition").fill(key);
  await page.getByLabel(/^Component/).setInputFiles({ name: "x.wasm", mimeType: "application/wasm", buffer: Buffer.from("no component") });
  await page.getByLabel("Settings (JSON)").fill(JSON.stringify({ initiators: hostile }));
  await page.getByLabel("Why it is published").fill("Plans of the plant");
  await page.getByRole("button", { name: "Publish a version" }).click();
  await page.getByRole("alert").waitFor();
  await page.getByRole("table", { name: "What the checker found" }).locator("tbody tr").first().waitFor();
  assert.equal(await page.getByLabel("Key of the definition").inputValue(), key, "what was written stays");
  assert.equal(await page.getByLabel("Why it is published").inputValue(), "Plans of the plant");
  assert.equal(await page.getByLabel("Settings (JSON)").inputValue(), JSON.stringify({ initiators: hostile }));
  assert.equal(await page.locator("main img").count(), 0);
  await page.getByLabel(/^Component/).setInputFiles(setting("WRKFLW_TEST_COMPONENT"));
  await page.getByLabel("Settings (JSON)").fill("{}");
  await page.getByRole("button", { name: "Publish a version" }).click();
  await page.getByText("The version is published.").waitFor();
  await page.getByText("Published by Alex Admin").waitFor();
  const { body } = await api("GET", `/definitions/${key}/versions/1`);
  assert.deepEqual([body.publishedBy, body.note], ["admin", "Plans of the plant"]);
  await page.context().close();
});

test("the component of a version is published again with other settings", async () => {
  const key = await definition();
  const page = await signedIn(browser, "admin");
  await page.goto(`${url}/console/definitions/${key}/1`);
  await page.getByRole("link", { name: "Publish with other settings" }).click();
  await sound(page, "upload");
  await page.getByLabel("Settings (JSON)").fill("{ nonsense");
  await page.getByRole("button", { name: "Publish a version" }).click();
  await page.getByRole("alert").waitFor();
  await sound(page, "upload-refused");
  await page.getByLabel("Settings (JSON)").fill(`{"rejectionNeedsComment": false, "reviewers": "approvers"}`);
  await page.getByRole("button", { name: "Publish a version" }).click();
  await page.getByText("The version is published.").waitFor();
  const versions = (await api("GET", `/definitions/${key}`)).body.versions;
  assert.equal(versions.length, 3);
  assert.equal(versions[0].digest, versions[2].digest);
  await page.context().close();
});

test("settings have the digits that were published, also where they are published again and compared", async () => {
  const [key, sum] = [entity("digits"), "50000.000000000000000001"];
  const publish = (limit) => publishedOf(key, file("WRKFLW_TEST_COMMITTEE"), `{"limit": ${limit}}`);
  await publish("50000");
  await publish(sum);
  const page = await signedIn(browser, "admin");
  await page.goto(`${url}/console/definitions/${key}/2?against=1`);
  const shown = await page.locator("main").textContent();
  assert.ok(shown.includes(`"limit": ${sum}`), "the settings");
  assert.equal(shown.split(sum).length - 1, 2, "and what differs");
  await page.getByRole("link", { name: "Publish with other settings" }).click();
  assert.ok((await page.getByLabel("Settings (JSON)").inputValue()).includes(`"limit": ${sum}`));
  await page.context().close();
});

test("instances are migrated with a preview, and the operation shows each one's result", async () => {
  const key = await definition();
  const page = await signedIn(browser, "admin");
  await page.goto(`${url}/console/definitions/${key}/1`);
  await page.getByRole("link", { name: "Migrate instances" }).click();
  await page.getByLabel(/^To version/).selectOption("2");
  await page.getByRole("button", { name: "Show what will happen" }).click();
  const preview = page.locator("#preview");
  await preview.getByText("1 instance would be migrated.").waitFor();
  await preview.getByText("Tried 1 of them: 1 can be migrated, 0 are refused, 0 fail.").waitFor();
  await sound(page, "migrate");
  const running = async () => (await api("GET", `/definitions/${key}`)).body.versions.map((one) => one.running);
  assert.deepEqual(await running(), [0, 1], "nothing has happened yet");
  await page.getByRole("button", { name: "Confirm: Migrate instances" }).click();
  // The page updates itself.
  await page.getByRole("status").getByText("1 instance: 1 done, 0 refused, 0 failed").waitFor();
  await page.locator("tbody tr").getByText("done").waitFor();
  assert.deepEqual(await running(), [1, 0]);
  await sound(page, "migration");
  await page.goto(`${url}/console/operations/bulk`);
  await page.locator("tr", { hasText: key }).getByRole("link", { name: "Migration" }).waitFor();
  await sound(page, "bulk-operations");
  await page.goto(`${url}/console/definitions/${key}/2/migrate`);
  await page.getByLabel(/^To version/).selectOption("1");
  await page.getByLabel("Only those in this state").fill("nowhere");
  await page.getByRole("button", { name: "Show what will happen" }).click();
  await page.locator(".error, #preview").first().waitFor();
  await sound(page, "migrate-refused");
  await page.context().close();
});

test("who may neither publish nor migrate has no link and no page; a form of another session is not read", async () => {
  const key = await definition();
  const page = await signedIn(browser, "author");
  await page.goto(`${url}/console/definitions/${key}/1`);
  for (const name of ["Publish with other settings", "Migrate instances"]) assert.equal(await page.getByRole("link", { name }).count(), 0);
  await page.goto(`${url}/console/upload`);
  await page.getByText("this needs the permission definition:publish").waitFor();
  await page.goto(`${url}/console/definitions/${key}/1/migrate`);
  await page.getByText("this needs the permission instance:migrate").waitFor();
  const admin = await signedIn(browser, "admin");
  const send = (headers, token) => admin.request.post(`${url}/console/upload`, { headers, multipart: { token, key: "x", config: "{}" } });
  assert.equal((await send({ origin: url }, "wrong")).status(), 403);
  assert.equal((await send({ origin: "https://evil.example" }, "wrong")).status(), 403);
  await admin.context().close();
  await page.context().close();
});
