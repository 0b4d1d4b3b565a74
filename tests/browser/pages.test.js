// Starting, searching and notifications.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { api, committee, entity, file, launch, published, signedIn, sound, sql, started, tokenOf, url, vote } from "./support.js";

let browser;
before(async () => (browser = await launch()));
after(() => browser.close());

test("an author starts a flow, and sees beforehand who gets the work", async () => {
  const name = entity("start");
  const page = await signedIn(browser, "author");
  await page.getByRole("link", { name: "Start", exact: true }).click();
  await sound(page, "start");
  await page.getByRole("link", { name: /document-approval/ }).click();
  await page.getByLabel(/Type of the entity/).fill("document");
  await page.getByLabel(/Id of the entity/).fill(name);
  await page.getByLabel(/title/).fill(`Plan ${name}`);
  await page.getByRole("button", { name: "Show what will happen" }).click();
  await page.locator("#preview").getByText("First review").waitFor();
  assert.match(await page.locator("#preview").textContent(), /waits for\s+Reviewers/, "a group by its name");
  await sound(page, "start-form");
  await page.getByRole("button", { name: /^Confirm/ }).click();
  await page.getByText("The instance has begun.").waitFor();
  await page.getByRole("heading", { name: `Plan ${name}` }).waitFor();
  await page.context().close();
});

test("a flow beyond the first page is found and started, by the search of the page, the next page, and Ctrl K", async (t) => {
  const key = `zz-${entity("beyond")}`;
  // More than two pages of other flows, inserted without audit entries.
  sql(`insert into definition select (jsonb_populate_record(d, jsonb_build_object('key', 'z-' || n, 'id', gen_random_uuid(), 'active_version', 1))).*
    from definition d, generate_series(1, 120) n where d.key = 'document-approval';
    insert into definition_version select (jsonb_populate_record(v, jsonb_build_object('key', 'z-' || n))).*
    from definition_version v, generate_series(1, 120) n where v.key = 'document-approval' and v.version = 1`);
  t.after(() => sql("delete from definition_version where key ~ '^z-[0-9]+$'; delete from definition where key ~ '^z-[0-9]+$'"));
  const version = await published(key, file("WRKFLW_TEST_COMPONENT"), {});
  assert.equal((await api("POST", `/definitions/${key}/versions/${version}/activate`, {})).status, 200);
  const page = await signedIn(browser, "author");
  const flow = page.locator("main a.tile", { hasText: key });
  const begun = async () => {
    await page.waitForURL((address) => address.searchParams.get("definition") === key);
    await page.getByLabel(/Id of the entity/).waitFor();
  };
  await page.goto(`${url}/console/start`);
  assert.equal(await page.locator("main a.tile").count(), 50);
  assert.equal(await flow.count(), 0, "it is beyond the first page");
  await sound(page, "start-paged");
  let pages = 1;
  for (; !(await flow.count()); pages += 1) await page.getByRole("link", { name: "Next page" }).click();
  assert.ok(pages >= 3, `${pages} pages`);
  await flow.click();
  await begun();

  await page.goto(`${url}/console/start`);
  await page.getByLabel("Words of a key, title or description").fill(`document approval ${key}`);
  await page.getByRole("button", { name: "Apply" }).click();
  assert.equal(await page.locator("main a.tile").count(), 1);
  await sound(page, "start-searched");
  await flow.click();
  await begun();
  await page.goto(`${url}/console/start?q=${key}-nothing`);
  await page.getByText(`Nothing matches “${key}-nothing”.`).waitFor();

  await page.keyboard.press("Control+k");
  await page.locator("#find").fill(`start ${key}`);
  await page.keyboard.press("Enter");
  await page.locator("main").getByRole("link", { name: "Start: Document approval" }).click();
  await begun();
  const id = entity("found");
  await page.getByLabel(/Type of the entity/).fill("document");
  await page.getByLabel(/Id of the entity/).fill(id);
  await page.getByLabel(/title/).fill("Plan");
  await page.getByRole("button", { name: "Show what will happen" }).click();
  await page.locator("#preview").waitFor();
  await page.getByRole("button", { name: /^Confirm/ }).click();
  await page.getByText("The instance has begun.").waitFor();
  const found = (await api("GET", `/instances?definitionKey=${key}`)).body.data;
  assert.deepEqual(found.map((one) => one.entityId), [id]);
  await page.context().close();
});

test("a person who may not start a flow sees the reason", async () => {
  const page = await signedIn(browser, "outsider");
  await page.goto(`${url}/console/start?definition=document-approval`);
  await page.getByLabel(/Type of the entity/).fill("document");
  await page.getByLabel(/Id of the entity/).fill(entity("refused"));
  await page.getByLabel(/title/).fill("Plan");
  await page.getByRole("button", { name: "Show what will happen" }).click();
  await page.getByRole("alert").waitFor();
  assert.equal(await page.getByLabel(/title/).inputValue(), "Plan");
  await page.context().close();
});

test("search finds instances and people", async () => {
  const name = entity("find");
  await started(name, `Plan ${name}`);
  const page = await signedIn(browser, "author");
  await page.keyboard.press("Control+k");
  await page.keyboard.type(name);
  await page.keyboard.press("Enter");
  await page.getByRole("link", { name: `Plan ${name}` }).waitFor();
  await sound(page, "search");
  await page.goto(`${url}/console/search?q=Rita`);
  await page.getByText("Rita Reviewer").waitFor();
  await page.goto(`${url}/console/search?q=${name}-nothing`);
  await page.getByText("Nothing matches").waitFor();
  // A query without a word stays on the page of the search, which says why it finds nothing.
  await page.goto(`${url}/console/search?q=--`);
  await page.getByRole("heading", { name: "Search" }).waitFor();
  await page.getByRole("alert").waitFor();
  await page.context().close();
});

test("search finds pages and actions that one may open, and flows", async () => {
  const page = await signedIn(browser, "author");
  const found = async (words) => {
    await page.keyboard.press("Control+k");
    await page.locator("#find").fill(words);
    await page.keyboard.press("Enter");
    await page.waitForURL((address) => address.searchParams.get("q") === words);
  };
  await found("absences");
  await page.getByRole("link", { name: "Absences" }).click();
  await page.waitForURL(`${url}/console/me#absences`);
  await found("document approval");
  await sound(page, "search-flows");
  // Other tests have published the same flow under other keys.
  await page.locator('main a[href="/console/definitions/document-approval"]').getByText("Document approval", { exact: true }).waitFor();
  await page.locator('main a[href*="document-approval"]', { hasText: "Start: Document approval" }).click();
  await page.getByLabel(/Id of the entity/).waitFor();
  // Pages that the person may not open are not offered.
  await found("checkpoints");
  await page.getByText("Nothing matches").waitFor();
  await page.context().close();

  const german = await signedIn(browser, "admin", { locale: "de" });
  await german.goto(`${url}/console/search?q=PR%C3%9CFpunkte`);
  await german.locator("main").getByRole("link").first().click();
  await german.waitForURL(`${url}/console/audit/checkpoints`);
  await german.context().close();
});

test("notifications are listed, counted, and marked as read", async () => {
  const name = entity("note");
  const { id, task } = await started(name, `Plan ${name}`);
  await api("POST", `/tasks/${task}/decide`, { outcome: "REJECT", comment: "no" }, tokenOf("reviewer"));
  const page = await signedIn(browser, "author");
  const link = page.getByRole("link", { name: `Plan ${name}` });
  // The notifier writes them a moment after the decision.
  const deadline = Date.now() + 10_000;
  do {
    await page.goto(`${url}/console/notifications`);
  } while ((await link.count()) === 0 && Date.now() < deadline);
  await link.first().waitFor();
  await page.locator(".notes > .row", { has: link }).getByText("Rework", { exact: true }).first().waitFor();
  await page.getByRole("link", { name: /Notifications .*unread/ }).waitFor();
  await sound(page, "notifications");
  const button = page.getByRole("button", { name: `Mark as read: Plan ${name}` });
  const before = await button.count();
  await button.first().click();
  assert.equal(await button.count(), before - 1);
  // On a later page, the reader stays on that page.
  sql(`insert into notification
    select (jsonb_populate_record(null::notification, to_jsonb(n) || jsonb_build_object('id', gen_random_uuid(), 'read_at', null))).*
    from (select * from notification where instance_id = '${id}' and recipient = 'author' limit 1) n, generate_series(1, 60)`);
  await page.goto(`${url}/console/notifications`);
  await page.getByRole("link", { name: "Next page" }).click();
  const later = page.url();
  await page.getByRole("button", { name: /Mark as read/ }).first().click();
  await page.waitForLoadState();
  assert.equal(page.url(), later);
  await page.context().close();
  sql(`delete from notification where instance_id = '${id}'`);
});

test("a notification shows the title of the state, and what the flow calls the priority", async () => {
  const key = entity("urgent");
  await committee(key, { priorities: [{ name: "pressing", atLeast: 100 }] });
  await vote(key, `Vote ${key}`, { priority: 120 });
  await vote(key, `Plain ${key}`);
  const row = (page, title) => page.locator(".notes > .row", { hasText: `${title} ${key}` }).first();
  for (const locale of ["en", "de", "th"]) {
    const page = await signedIn(browser, "reviewer", { locale });
    for (const until = Date.now() + 10_000; !(await row(page, "Plain").count()) && Date.now() < until; ) await page.goto(`${url}/console/notifications`);
    await row(page, "Vote").getByText("The vote", { exact: true }).waitFor();
    await row(page, "Vote").locator(".badge.high").getByText("pressing", { exact: true }).waitFor();
    await row(page, "Plain").getByText("The vote", { exact: true }).waitFor();
    assert.equal(await row(page, "Plain").locator(".badge.high").count(), 0);
    await sound(page, `notifications-states-${locale}`);
    await page.context().close();
  }
});
