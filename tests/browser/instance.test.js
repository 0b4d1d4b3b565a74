// The pages of an instance besides its tasks: the path on the diagram, and the changes of each step.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { api, committee, entity, launch, signedIn, sound, sql, started, tokenOf, url } from "./support.js";

let browser;
before(async () => (browser = await launch()));
after(() => browser.close());

test("each state of the diagram is a link, also by keyboard and without script", async () => {
  const { id, task } = await started(entity("linked"), "Plan");
  assert.equal((await api("POST", `/tasks/${task}/decide`, { outcome: "APPROVE" }, tokenOf("reviewer"))).status, 200);
  const page = await signedIn(browser, "author", { javaScriptEnabled: false });
  await page.goto(`${url}/console/instances/${id}?tab=diagram`);
  const states = page.locator(".diagram svg [data-state]");
  const links = page.locator(".diagram svg a");
  assert.ok((await states.count()) > 3);
  assert.equal(await links.count(), await states.count(), "every state is a link");
  await links.filter({ hasText: "First review" }).click();
  await page.waitForURL(/tab=timeline#step-/);
  await page.locator(".step:target").getByText("First review").waitFor();
  await page.goBack();
  await links.filter({ hasText: "Final review" }).focus();
  await page.keyboard.press("Enter");
  await page.locator(".step:target").getByText("Final review").waitFor();
  await page.goBack();
  // A state that was not entered links to its description in the version.
  await page.locator(".diagram a:has(.state.untouched)").first().click();
  await page.waitForURL(/\/console\/definitions\/document-approval\/\d+#state-/);
  await page.locator(".states li:target h3").waitFor();
  await page.context().close();
});

test("the diagram has several sizes, by links and keys, and is drawn once", async () => {
  const { id } = await started(entity("zoomed"), "Plan");
  const address = `${url}/console/instances/${id}?tab=diagram`;
  const plain = await signedIn(browser, "author", { javaScriptEnabled: false });
  await plain.goto(address);
  const width = async (page) => (await page.locator(".diagram svg").boundingBox()).width;
  const usual = await width(plain);
  await plain.getByRole("link", { name: "Larger" }).focus();
  await plain.keyboard.press("Enter");
  await plain.getByText("150 %").waitFor();
  assert.ok(Math.abs((await width(plain)) - 1.5 * usual) < 1);
  await plain.getByRole("link", { name: "Smaller" }).click();
  await plain.getByText("100 %").waitFor();
  assert.ok(Math.abs((await width(plain)) - usual) < 1);
  await plain.getByRole("link", { name: "As wide as the page" }).click();
  await plain.getByRole("link", { name: "Usual size" }).waitFor();
  const room = await plain.locator(".diagram .scroll").evaluate((one) => one.clientWidth);
  assert.ok(Math.abs((await width(plain)) - room) < 1, "as wide as its place");
  await plain.context().close();

  const page = await signedIn(browser, "author");
  const drawings = [];
  page.on("request", (request) => request.url().includes(".svg") && !request.url().includes("/assets/") && drawings.push(request.url()));
  await page.goto(address);
  assert.equal(await page.locator("main svg").count(), 1);
  assert.equal(await page.locator("main img").count(), 0);
  assert.deepEqual(drawings, [], "the page has the drawing itself");
  await page.keyboard.press("+");
  await page.getByText("150 %").waitFor();
  await page.keyboard.press("-");
  await page.getByText("100 %").waitFor();
  // The drawing has its own colours, also for a reader who chose dark on a light device.
  const ground = () => page.locator(".diagram .canvas").evaluate((one) => getComputedStyle(one).fill);
  const light = await ground();
  await page.evaluate(() => (document.documentElement.dataset.theme = "dark"));
  assert.notEqual(await ground(), light);
  assert.equal(light, "rgb(255, 255, 255)");
  await page.reload();
  await sound(page, "diagram-links");
  const file = await page.context().request.get(url + (await page.getByRole("link", { name: "As a file (SVG)" }).getAttribute("href")));
  assert.match(file.headers()["content-type"], /^image\/svg/);
  await page.context().close();
});

test("the data show the changes of each step, and by whom", async () => {
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

test("numbers of the data have the digits that were sent, as do those of its changes and events", async () => {
  const [key, sum] = [entity("digits"), "50000.000000000000000001"];
  await committee(key);
  const data = `{"title": "Digits", "sum": ${sum}, "assign": {"offers": [{"groups": ["reviewers"]}], "needed": 1}}`;
  const answer = await api("POST", "/instances", `{"definitionKey": "${key}", "entityType": "vote", "entityId": "${key}", "data": ${data}}`);
  assert.equal(answer.status, 201, answer.text);
  const page = await signedIn(browser, "admin");
  const { id } = answer.body.instance;
  await page.goto(`${url}/console/instances/${id}?tab=data`);
  assert.ok((await page.locator("pre.json").innerText()).includes(`"sum": ${sum}`));
  assert.equal(await page.locator(".fields-changed > div", { hasText: "/sum" }).locator("ins").innerText(), sum);
  await page.goto(`${url}/console/instances/${id}?tab=audit`);
  assert.ok((await page.locator("main").textContent()).includes(`"sum": ${sum}`));
  await page.context().close();
});

test("a step that changes the data shows the values before and after", async () => {
  const { id, task } = await started(entity("changed"), "Plan");
  assert.equal((await api("POST", `/tasks/${task}/decide`, { outcome: "APPROVE" }, tokenOf("reviewer"))).status, 200);
  // The sample flow changes no data, so the test changes the recorded data as another flow would have.
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

test("a step shows the candidates, the owner and the times; a later step shows its description", async () => {
  const { id, task } = await started(entity("steps"), "Plan");
  const later = "The author changes the document as the rejection says, or gives it up.";
  const page = await signedIn(browser, "admin", { javaScriptEnabled: false });
  const step = (name) => page.locator(".step", { has: page.getByRole("heading", { name, exact: true }) });
  await page.goto(`${url}/console/instances/${id}`);
  await step("First review").getByText("Waits for Reviewers").waitFor();
  assert.equal(await step("First review").getByText("Offered to").count(), 0, "the text that it waits for them is enough");
  await page.locator(".step.pending", { hasText: "Rework" }).getByText(later).waitFor();
  assert.equal((await api("POST", `/tasks/${task}/claim`, {}, tokenOf("reviewer"))).status, 200);
  await page.reload();
  await step("First review").getByText("Waits for Rob Reviewer").waitFor();
  await step("First review").getByText("Offered to Reviewers").waitFor();
  assert.equal(await step("First review").getByText("ended").count(), 0);
  assert.equal((await api("POST", `/tasks/${task}/decide`, { outcome: "REJECT", comment: "Too dear" }, tokenOf("reviewer"))).status, 200);
  await page.reload();
  const done = page.locator(".step.done", { hasText: "First review" });
  await done.getByText("Offered to Reviewers").waitFor();
  const { left, enteredAt } = (await api("GET", `/instances/${id}/history`)).body.data[0];
  const times = await done.locator("p", { hasText: "ended" }).locator("time").evaluateAll((all) => all.map((one) => one.getAttribute("datetime")));
  assert.deepEqual(times.map((one) => Date.parse(one)), [enteredAt, left.at].map((one) => Date.parse(one)));
  assert.equal(await done.getByText("Worked on by").count(), 0, "the decision is enough");
  await page.locator(".step.active", { hasText: "Rework" }).getByText(later).waitFor();
  // Work that ended without a decision shows its owner.
  const stopped = await started(entity("stopped"), "Plan");
  assert.equal((await api("POST", `/tasks/${stopped.task}/claim`, {}, tokenOf("reviewer2"))).status, 200);
  assert.equal((await api("POST", `/instances/${stopped.id}/cancel`, { reason: "not needed" })).status, 200);
  await page.goto(`${url}/console/instances/${stopped.id}`);
  await page.locator(".step.done", { hasText: "First review" }).getByText("Worked on by Rita Reviewer").waitFor();
  // The same for a person who is not in the directory yet.
  const { name } = (await api("GET", "/people/admin")).body;
  assert.notEqual(name, "admin");
  await page.locator("#banner").getByText(`${name}: not needed`, { exact: true }).waitFor();
  await page.context().close();
  for (const locale of ["en", "de", "th"]) {
    const reader = await signedIn(browser, "author", { locale });
    await reader.goto(`${url}/console/instances/${id}`);
    await sound(reader, `timeline-steps-${locale}`);
    await reader.context().close();
  }
});

test("a page that does not look for all related instances says so", async () => {
  const { id } = await started(entity("large"), "Plan");
  const page = await signedIn(browser, "admin", { javaScriptEnabled: false });
  const more = page.getByText("There are more related instances than this page looks for.");
  const children = (count) =>
    sql(`set session_replication_role = replica;
      insert into instance select (jsonb_populate_record(i, jsonb_build_object('id', gen_random_uuid(), 'parent', i.id, 'entity_id', gen_random_uuid()))).*
      from instance i, generate_series(1, ${count}) where i.id = '${id}'`);
  try {
    // The page searches five pages of a hundred instances about the entity. This instance is the first.
    const same = (count) =>
      sql(`set session_replication_role = replica;
        insert into instance select (jsonb_populate_record(i, jsonb_build_object('id', gen_random_uuid(), 'status', 'COMPLETED', 'outcome', 'APPROVED', 'ended_at', now()))).*
        from instance i, generate_series(1, ${count}) where i.id = '${id}'`);
    for (const [added, isMore] of [[499, 0], [1, 1]]) {
      same(added);
      await page.goto(`${url}/console/instances/${id}?tab=related`);
      await page.locator("main h1").waitFor();
      assert.equal(await more.count(), isMore, `after ${added} about the entity`);
    }
    sql(`set session_replication_role = replica; delete from instance where id <> '${id}' and entity_id = (select entity_id from instance where id = '${id}')`);
    for (const [added, isMore] of [[100, 0], [1, 1]]) {
      children(added);
      await page.goto(`${url}/console/instances/${id}?tab=related`);
      assert.equal(await page.locator(".facts dt", { hasText: /^Parent of$/ }).count(), 100);
      assert.equal(await more.count(), isMore, `after ${added}`);
    }
  } finally {
    sql(`set session_replication_role = replica; delete from instance where parent = '${id}'`);
  }
  await page.context().close();
});

test("an audit page after more seals than are read says so", async () => {
  const { id, task } = await started(entity("sealed"), "Plan");
  assert.equal((await api("POST", `/tasks/${task}/claim`, {}, tokenOf("reviewer"))).status, 200);
  assert.equal((await api("POST", `/tasks/${task}/delegate`, { to: "reviewer2", reason: "Your field" }, tokenOf("reviewer"))).status, 200);
  // Further delegations, as if the task had been delegated and returned many times.
  const before = Number(sql(`select count(*) from audit_entry where stream_id = '${id}'`));
  const delegated = (count) =>
    sql(`set session_replication_role = replica;
      insert into audit_entry select (jsonb_populate_record(a, jsonb_build_object('id', gen_random_uuid(), 'event_seq', null,
        'seq', n + (select max(seq) from audit_entry where stream_id = '${id}'),
        'occurred_at', a.occurred_at + n * interval '1 ms' + (select count(*) from audit_entry where stream_id = '${id}') * interval '1 ms'))).*
      from audit_entry a, generate_series(1, ${count}) n
      where a.stream_id = '${id}' and a.seq = (select min(seq) from audit_entry where stream_id = '${id}' and type = 'TASK_DELEGATED')`);
  const page = await signedIn(browser, "admin", { javaScriptEnabled: false });
  const notice = page.getByText("Seals of later decisions are not shown here.");
  delegated(1050);
  await page.goto(`${url}/console/instances/${id}?tab=audit`);
  for (let number = 1; await page.getByRole("link", { name: "Next page" }).count(); number += 1) {
    // A page reads the seals up to its last entry.
    const last = Number((await page.locator(".record > li").count()) + (number - 1) * 50);
    assert.equal(await notice.count(), last > before + 999 ? 1 : 0, `page ${number}`);
    await page.getByRole("link", { name: "Next page" }).click();
  }
  assert.equal(await notice.count(), 1, "the last page");
  await page.context().close();
});

test("a restart and what it restarts lead to each other", async () => {
  const name = entity("restarted");
  const { id } = await started(name, `Plan ${name}`);
  assert.equal((await api("POST", `/instances/${id}/cancel`, { reason: "wrong year" })).status, 200);
  const restarted = await api("POST", `/instances/${id}/restart`, { data: { title: `Better ${name}` } }, tokenOf("author"));
  assert.equal(restarted.status, 201, JSON.stringify(restarted.body));
  const page = await signedIn(browser, "author");
  await page.goto(`${url}/console/instances/${id}?tab=related`);
  const related = (how) => page.locator(".facts > div", { has: page.locator("dt", { hasText: new RegExp(`^${how}$`) }) });
  await sound(page, "related-restarts");
  await related("Restarted by").getByText(`Better ${name}`).click();
  await page.waitForURL(new RegExp(restarted.body.instance.id));
  await page.getByRole("link", { name: "Related" }).click();
  await related("Restarts").getByText(`Plan ${name}`).click();
  await page.waitForURL(new RegExp(id));
  await page.context().close();
});

test("events show their status in Kafka and at webhooks, with links to both", async () => {
  const { id } = await started(entity("published"), "Plan");
  const page = await signedIn(browser, "admin", { javaScriptEnabled: false });
  await page.goto(`${url}/console/instances/${id}?tab=events`);
  const lines = page.locator(".record > li");
  // The feed has an event only when all earlier transactions have ended.
  for (let tries = 0; tries < 100 && (await lines.count()) < 2; tries += 1) await page.reload();
  await lines.first().locator(".statuses").getByText("Waiting").waitFor();
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
  const first = lines.first().locator(".statuses li");
  await first.first().getByText("Refused", { exact: true }).waitFor();
  await first.first().getByText(error).waitFor();
  assert.equal(await page.locator("main img").count(), 0);
  await lines.nth(1).locator(".statuses").getByText("Published").waitFor();
  await first.nth(1).getByText("503 · the receiver answered 503").waitFor();
  await first.nth(1).getByRole("link", { name: receiver }).click();
  await page.locator("#status").getByText("Given up").waitFor();
  await page.goBack();
  await first.first().getByRole("link", { name: "Kafka" }).click();
  await page.locator("#banner").getByText(error).waitFor();
  await page.context().close();
  const scripted = await signedIn(browser, "admin");
  await scripted.goto(`${url}/console/instances/${id}?tab=events`);
  await sound(scripted, "events-delivered");
  await scripted.context().close();
  // Only operators see deliveries. Others see the events alone.
  const author = await signedIn(browser, "author");
  await author.goto(`${url}/console/instances/${id}?tab=events`);
  await author.locator(".record > li").first().waitFor();
  assert.equal(await author.locator(".statuses").count(), 0);
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
