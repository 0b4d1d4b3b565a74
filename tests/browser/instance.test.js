// What the pages of an instance show besides the work: the way on the diagram, and what each step changed.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { api, entity, launch, signedIn, sound, sql, started, tokenOf, url } from "./support.js";

let browser;
before(async () => (browser = await launch()));
after(() => browser.close());

test("each entered state of the diagram leads to its step, also by keyboard and without script", async () => {
  const { id, task } = await started(entity("mapped"), "Plan");
  assert.equal((await api("POST", `/tasks/${task}/decide`, { outcome: "APPROVE" }, tokenOf("reviewer"))).status, 200);
  const page = await signedIn(browser, "author", { javaScriptEnabled: false });
  await page.goto(`${url}/console/instances/${id}?tab=diagram`);
  const areas = page.locator("map area");
  assert.deepEqual(await areas.evaluateAll((all) => all.map((one) => one.alt)), ["To the step: First review", "To the step: Final review"]);
  const [left, top, right, bottom] = (await areas.first().getAttribute("coords")).split(",").map(Number);
  await page.locator(".diagram img").click({ position: { x: (left + right) / 2, y: (top + bottom) / 2 } });
  await page.waitForURL(/tab=timeline#step-/);
  await page.locator(".step:target").getByText("First review").waitFor();
  await page.goBack();
  await areas.last().focus();
  await page.keyboard.press("Enter");
  await page.locator(".step:target").getByText("Final review").waitFor();
  await page.context().close();
  const scripted = await signedIn(browser, "author");
  await scripted.goto(`${url}/console/instances/${id}?tab=diagram`);
  await scripted.emulateMedia({ colorScheme: "dark" });
  // The drawing has a ground of its own, so nothing shines around it.
  const style = await scripted.locator(".diagram img").evaluate((image) => [getComputedStyle(image).backgroundColor, getComputedStyle(image).padding]);
  assert.deepEqual(style, ["rgba(0, 0, 0, 0)", "0px"]);
  await sound(scripted, "diagram-map");
  await scripted.context().close();
});

test("the data show what each step changed, and who did it", async () => {
  const hostile = `"><img src=x onerror=alert(1)>`;
  const { id } = await started(entity("changed"), hostile);
  const page = await signedIn(browser, "author");
  await page.goto(`${url}/console/instances/${id}?tab=data`);
  const row = page.getByRole("table", { name: "What each step changed" }).locator("tbody tr").first();
  await row.locator("td").nth(1).getByText("Start").waitFor();
  const change = row.locator(".fields-changed > div", { hasText: "/title" });
  assert.equal(await change.locator("ins").innerText(), JSON.stringify(hostile));
  assert.equal(await change.locator("del").count(), 0, "there was no value before");
  assert.equal(await page.locator("main img").count(), 0);
  await sound(page, "data-changes");
  assert.equal(await page.getByRole("link", { name: "Next page" }).count(), 0);
  await page.context().close();
});

test("a step that changes the data shows the values before and after", async () => {
  const { id, task } = await started(entity("changed"), "Plan");
  assert.equal((await api("POST", `/tasks/${task}/decide`, { outcome: "APPROVE" }, tokenOf("reviewer"))).status, 200);
  // The sample flow changes no data, so what it recorded is changed as another flow would have recorded it.
  sql(`set session_replication_role = replica; update audit_entry set payload = (payload::jsonb || '{"data": {"title": "Better plan", "sum": 7}}')::text
    where stream_id = '${id}' and type = 'STATE_TRANSITIONED'`);
  const page = await signedIn(browser, "author");
  await page.goto(`${url}/console/instances/${id}?tab=data`);
  const row = page.getByRole("table", { name: "What each step changed" }).locator("tbody tr").nth(1);
  await row.getByText("APPROVE").waitFor();
  await row.getByText("Rob Reviewer").waitFor();
  const change = (pointer) => row.locator(".fields-changed > div", { hasText: pointer });
  assert.equal(await change("/title").locator("del").innerText(), `"Plan"`);
  assert.equal(await change("/title").locator("ins").innerText(), `"Better plan"`);
  assert.equal(await change("/sum").locator("ins").innerText(), "7");
  assert.equal(await change("/sum").locator("del").count(), 0);
  await sound(page, "data-before-after");
  await page.context().close();
});

test("events say whether Kafka has them and what became of them at webhooks, with links to both", async () => {
  const { id } = await started(entity("published"), "Plan");
  const page = await signedIn(browser, "admin", { javaScriptEnabled: false });
  await page.goto(`${url}/console/instances/${id}?tab=events`);
  const lines = page.locator(".record > li");
  // The feed has an event once transactions that began before it have ended.
  for (let tries = 0; tries < 100 && (await lines.count()) < 2; tries += 1) await page.reload();
  await lines.first().locator(".standings").getByText("Waiting").waitFor();
  const error = `too large "><img src=x onerror=alert(1)>`;
  sql(`with moved as (delete from outbox_event where instance_id = '${id}' and seq = (select min(seq) from outbox_event where instance_id = '${id}') returning *)
    insert into dead_letter (tenant_id, instance_id, seq, partition, pos, error, attempts, parked_at)
    select tenant_id, instance_id, seq, partition, pos, '${error}', 3, now() from moved`);
  sql(`delete from outbox_event where instance_id = '${id}'`);
  const receiver = "https://example.org/never";
  const created = await api("POST", "/subscriptions", { url: receiver, types: ["task.*"] });
  assert.equal(created.status, 201, JSON.stringify(created.body));
  const subscription = created.body;
  sql(`insert into webhook_delivery (tenant_id, subscription_id, message_id, notifies, instance_id, seq, state, created_at, due_at, attempts, last_status, last_error)
    select tenant_id, '${subscription.id}', id, false, stream_id, seq, 'dead', now(), now(), 5, 503, 'the receiver answered 503' from audit_entry
    where stream_id = '${id}' and event_seq = 1`);
  await page.reload();
  const first = lines.first().locator(".standings li");
  await first.first().getByText("Refused", { exact: true }).waitFor();
  await first.first().getByText(error).waitFor();
  assert.equal(await page.locator("main img").count(), 0);
  await lines.nth(1).locator(".standings").getByText("Published").waitFor();
  await first.nth(1).getByText("503 · the receiver answered 503").waitFor();
  await first.nth(1).getByRole("link", { name: receiver }).click();
  await page.locator("#standing").getByText("Given up").waitFor();
  await page.goBack();
  await first.first().getByRole("link", { name: "Kafka" }).click();
  await page.locator("#banner").getByText(error).waitFor();
  await page.context().close();
  const scripted = await signedIn(browser, "admin");
  await scripted.goto(`${url}/console/instances/${id}?tab=events`);
  await sound(scripted, "events-delivered");
  await scripted.context().close();
  // Deliveries are for operators. Others see the events alone.
  const author = await signedIn(browser, "author");
  await author.goto(`${url}/console/instances/${id}?tab=events`);
  await author.locator(".record > li").first().waitFor();
  assert.equal(await author.locator(".standings").count(), 0);
  await author.context().close();
  await api("DELETE", `/subscriptions/${subscription.id}`);
});

test("the reason of a refusal is in the language of the reader", async () => {
  const { id } = await started(entity("german"), "Ein Antrag");
  const page = await signedIn(browser, "author", { locale: "de" });
  await page.goto(`${url}/console/instances/${id}`);
  await page.getByText("Das haben Sie beantragt. Darum bearbeitet es jemand anderes.").first().waitFor();
  await page.context().close();
});
