// An operator sees what needs attention, finds the cause, retries or discards, and sees the result.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { after, before, test } from "node:test";
import { api, committee, entity, launch, signedIn, sound, sql, started, tokenOf, url, vote } from "./support.js";

let browser;
before(async () => (browser = await launch()));
after(() => browser.close());

/** An instance whose events Kafka has refused for this reason. */
async function refused(error) {
  const { id } = await started(entity("refused"), "Plan");
  sql(`with moved as (delete from outbox_event where instance_id = '${id}' returning *)
    insert into dead_letter (tenant_id, instance_id, seq, partition, pos, error, attempts, parked_at)
    select tenant_id, instance_id, seq, partition, pos, '${error}', 3, now() from moved`);
  return id;
}

const tooLarge = "the broker takes no record of this size";

test("panels show what needs an operator, and each leads to its list", async () => {
  await refused(tooLarge);
  const stale = entity("stale");
  const { id } = await started(stale, `Plan ${stale}`);
  sql(`update instance set updated_at = now() - interval '20 days' where id = '${id}';
    update state_instance set entered_at = now() - interval '20 days' where instance_id = '${id}'`);
  sql(`insert into job (tenant_id, id, kind, instance_id, due_at, payload, attempts, last_error)
    select tenant_id, gen_random_uuid(), 'deadline', id, now() + interval '1 day', '{}', 4, 'the flow gave no answer' from instance where id = '${id}'`);
  const page = await signedIn(browser, "admin");
  await page.getByRole("link", { name: "Operation", exact: true }).click();
  const panel = (name) => page.locator(".panel", { has: page.getByRole("heading", { name }) });
  await panel("Refused events").getByText(tooLarge).first().waitFor();
  await panel("Stale").getByText(`Plan ${stale}`).waitFor();
  await panel("Failing jobs").getByText("the flow gave no answer").waitFor();
  await sound(page, "operations");
  for (const [name, what] of [["Stale", `Plan ${stale}`], ["Failing jobs", "the flow gave no answer"], ["Refused events", tooLarge]]) {
    await page.goto(`${url}/console/operations`);
    await panel(name).getByRole("link", { name, exact: true }).click();
    await page.getByRole("heading", { level: 1, name }).waitFor();
    await page.getByText(what).first().waitFor();
    await sound(page, `operations-${name.toLowerCase().replace(" ", "-")}`);
  }
  sql(`delete from job where instance_id = '${id}'`);
  await page.context().close();
});

test("the panels of overdue work and of work that nobody can do lead to their lists, and these to the instances", async () => {
  const key = entity("needy");
  await committee(key);
  const lost = await vote(key, `Lost ${key}`, { offers: [{ groups: [`nobody-of-${key}`] }] });
  const late = await vote(key, `Late ${key}`, { deadlines: [{ after: 7200, do: "remind" }] });
  sql(`update task set due_at = now() - interval '3 hours' where id = '${late.task}';
    update state_instance set due_at = now() - interval '3 hours' where instance_id = '${late.id}'`);
  const page = await signedIn(browser, "admin");
  const panel = (name) => page.locator(".panel", { has: page.getByRole("heading", { name }) });
  for (const [name, list, one] of [["Overdue", "overdue", late], ["Nobody can do it", "unassignable", lost]]) {
    const title = one === late ? `Late ${key}` : `Lost ${key}`;
    await page.goto(`${url}/console/operations`);
    assert.ok(Number.parseInt(await panel(name).locator("h2 .badge").innerText(), 10) >= 1, name);
    await panel(name).getByRole("link", { name, exact: true }).click();
    await page.waitForURL(`${url}/console/operations/instances/${list}`);
    await sound(page, `operations-${list}`);
    assert.equal(await page.getByText(one === late ? `Lost ${key}` : `Late ${key}`).count(), 0, "only what belongs there");
    await page.getByRole("link", { name: title }).click();
    await page.waitForURL(new RegExp(one.id));
  }
  for (const { id } of [lost, late]) await api("POST", `/instances/${id}/cancel`, { reason: "the tests are over" });
  await page.context().close();
});

test("an instance shows who could act on it, now and at a moment of its past", async () => {
  const { id } = await started(entity("plain"), "Plan");
  const page = await signedIn(browser, "admin");
  await page.goto(`${url}/console/instances/${id}`);
  await page.getByRole("link", { name: "Who could act" }).click();
  await page.locator("dl", { hasText: "Rob Reviewer" }).getByText("member of reviewers").first().waitFor();
  await sound(page, "who");
  const before = await page.locator("time").first().getAttribute("datetime");
  await api("DELETE", `/groups/reviewers/members/reviewer2`);
  await page.reload();
  assert.equal(await page.getByText("Rita Reviewer").count(), 0);
  // With three digits of milliseconds. The page leaves them out if they are zero.
  await page.getByLabel("At (UTC)").fill(new Date(before).toISOString().slice(0, 23));
  await page.getByRole("button", { name: "Show" }).click();
  await page.getByText("Rita Reviewer").waitFor();
  await api("PUT", `/groups/reviewers/members/reviewer2`);
  await page.goto(`${url}/console/instances/${id}/who?at=2999-01-01T00:00`);
  await page.getByRole("alert").waitFor();
  await sound(page, "who-refused");
  await page.context().close();
});

/** Marks the waiting events of an instance as refused again, or as published. */
function kafka(id, error) {
  if (!error) return sql(`delete from outbox_event where instance_id = '${id}'`);
  return sql(`with moved as (delete from outbox_event where instance_id = '${id}' returning *)
    insert into dead_letter (tenant_id, instance_id, seq, partition, pos, error, attempts, parked_at)
    select tenant_id, instance_id, seq, partition, pos, '${error}', 1, now() from moved`);
}

const choice = (page, id) => page.locator(`input[name=item][value^="${id}."]`);

test("refused events are grouped by error, and the chosen ones are sent again with a reason", async () => {
  const [one, other] = [await refused(tooLarge), await refused("the topic does not exist")];
  const page = await signedIn(browser, "admin", { javaScriptEnabled: false });
  await page.goto(`${url}/console/operations/dead-letters`);
  await page.getByRole("heading", { name: tooLarge }).waitFor();
  await page.getByRole("heading", { name: "the topic does not exist" }).waitFor();
  await choice(page, other).check();
  await page.getByRole("button", { name: "Send the chosen ones again" }).click();
  await page.getByRole("alert").getByText("write a reason").waitFor();
  assert.ok(await choice(page, other).isChecked(), "what was chosen stays");
  await page.getByLabel("Reason").fill("The topic is there now");
  await page.getByRole("button", { name: "Send the chosen ones again" }).click();
  await page.getByText(/again. (It comes|They come) back here/).waitFor();
  const outcome = page.locator("#sent li", { hasText: other });
  await outcome.getByText("Waiting").waitFor();
  assert.equal((await api("GET", `/dead-letters/${other}`)).status, 404);
  assert.equal((await api("GET", `/dead-letters/${one}`)).status, 200, "the others stay");
  // Without scripts, the reader reloads the page.
  kafka(other, "the topic is locked");
  await page.getByRole("link", { name: "Look again" }).click();
  await outcome.getByText("Refused again").waitFor();
  await outcome.getByText("the topic is locked").waitFor();
  await page.context().close();
});

test("what was chosen on a later page of the list stays there", async () => {
  for (const error of [tooLarge, tooLarge]) await refused(error);
  const { data, page: { next } } = (await api("GET", "/dead-letters?limit=1")).body;
  const page = await signedIn(browser, "admin");
  await page.goto(`${url}/console/operations/dead-letters?after=${encodeURIComponent(next)}`);
  const before = page.locator(`input[name=item][value^="${data[0].instanceId}"]`);
  const item = page.locator("input[name=item]").first();
  const value = await item.inputValue();
  assert.equal(await before.count(), 0);
  await item.check();
  await page.getByRole("button", { name: "Send the chosen ones again" }).click();
  await page.getByRole("alert").getByText("write a reason").waitFor();
  assert.equal(await before.count(), 0, "it is the same page of the list");
  assert.ok(await page.locator(`input[name=item][value="${value}"]`).isChecked());
  await page.context().close();
});

test("all events with one error are sent again, and the page follows what becomes of them", async () => {
  const error = entity("the broker is gone");
  const [first, second, other] = [await refused(error), await refused(error), await refused(tooLarge)];
  const page = await signedIn(browser, "admin");
  await page.goto(`${url}/console/operations/dead-letters`);
  const group = page.locator("fieldset", { has: page.getByRole("heading", { name: error }) });
  await group.getByText("2 instances").waitFor();
  await group.getByLabel("All with this error").check();
  await page.getByLabel("Reason").fill("It is back");
  await page.getByRole("button", { name: "Send the chosen ones again" }).click();
  const status = (id) => page.locator("#sent li", { hasText: id });
  for (const id of [first, second]) await status(id).getByText("Waiting").waitFor();
  assert.equal(await status(other).count(), 0);
  await sound(page, "dead-letters-sent");
  kafka(first);
  kafka(second, "the broker is gone again");
  // The page updates itself.
  await status(first).getByText("Published").waitFor();
  await status(second).getByText("the broker is gone again").waitFor();
  // The page of a single event updates itself, too.
  await status(second).getByRole("link").click();
  await page.getByRole("link", { name: "Send again" }).click();
  await page.getByLabel("Reason").fill("Once more");
  await page.getByRole("button", { name: "Confirm: Send again" }).click();
  await status(second).getByText("Waiting").waitFor();
  kafka(second);
  await status(second).getByText("Published").waitFor();
  assert.deepEqual(page.context().complaints, []);
  await page.context().close();
});

test("all refused events are discarded with a reason, after a page with the consequences", async () => {
  const ids = [await refused(tooLarge), await refused("the topic does not exist")];
  const waiting = (await api("GET", "/dead-letters?limit=100")).body.data.length;
  const page = await signedIn(browser, "admin");
  await page.goto(`${url}/console/operations/dead-letters`);
  await page.getByLabel("All of them").check();
  await page.getByLabel("Reason").fill("The consumers are gone");
  await page.getByRole("button", { name: "Discard the chosen ones" }).click();
  await page.locator("#preview").getByText(`The refused events of ${waiting} instances are never sent.`).waitFor();
  assert.equal(await page.getByLabel("Reason").inputValue(), "The consumers are gone");
  assert.equal((await api("GET", `/dead-letters/${ids[0]}`)).status, 200, "nothing is done yet");
  await sound(page, "dead-letters-discard");
  await page.getByRole("button", { name: "Confirm: Discard the chosen ones" }).click();
  await page.getByText(`The refused events of ${waiting} instances are discarded`).waitFor();
  await page.getByText("There is none.").waitFor();
  for (const id of ids) assert.equal((await api("GET", `/dead-letters/${id}`)).status, 404);
  await page.context().close();
});

test("more events than one command sends are counted and paged, and the page says how many are left", async () => {
  const id = await refused(tooLarge);
  const columns = "tenant_id, instance_id, seq, partition, pos, error, attempts, parked_at";
  sql(`insert into dead_letter (${columns}) select tenant_id, instance_id, seq + more, partition, pos + more, error, 1, now()
    from dead_letter, generate_series(100, 1249) more where instance_id = '${id}' and seq = (select min(seq) from dead_letter where instance_id = '${id}')`);
  const waiting = Number(sql(`select count(*) from dead_letter where instance_id = '${id}'`));
  const page = await signedIn(browser, "admin");
  await page.goto(`${url}/console/operations/dead-letters/${id}`);
  assert.equal(await page.locator("tbody tr").count(), 100);
  await page.getByRole("link", { name: "Next page" }).click();
  await page.locator("#banner").getByText(tooLarge).waitFor();
  assert.equal(await page.locator("tbody tr").count(), 100);
  await page.getByRole("link", { name: "Discard" }).click();
  await page.locator("#preview").getByText("1,000 events behind it are sent.").waitFor();
  await page.locator("#preview").getByText("More events of this instance wait.").waitFor();
  await page.goto(`${url}/console/operations/dead-letters/${id}?do=retry`);
  await page.locator("#preview").getByText("1,000 events are sent again, in their order.").waitFor();
  await page.getByLabel("Reason").fill("It takes them now");
  await page.getByRole("button", { name: "Confirm: Send again" }).click();
  await page.getByText("More events of this instance wait. Do it again for them.").waitFor();
  assert.equal(Number(sql(`select count(*) from dead_letter where instance_id = '${id}'`)), waiting - 1000);
  // The list of all instances shows the same.
  sql(`with moved as (delete from outbox_event where instance_id = '${id}' returning *)
    insert into dead_letter (${columns}) select tenant_id, instance_id, seq, partition, pos, 'still too large', 1, now() from moved`);
  await page.goto(`${url}/console/operations/dead-letters`);
  await choice(page, id).check();
  await page.getByLabel("Reason").fill("Once more");
  await page.getByRole("button", { name: "Send the chosen ones again" }).click();
  await page.getByText("More events of 1 instance wait.").waitFor();
  await page.context().close();
  sql(`delete from dead_letter where instance_id = '${id}'; delete from outbox_event where instance_id = '${id}'`);
});

test("a refused event shows its content, and is discarded after a page with the consequences", async () => {
  const id = await refused(tooLarge);
  const page = await signedIn(browser, "admin");
  await page.goto(`${url}/console/operations/dead-letters/${id}`);
  await page.locator("#banner").getByText(tooLarge).waitFor();
  await page.getByText("Content", { exact: true }).click();
  await page.locator("pre", { hasText: "flow.started" }).waitFor();
  await sound(page, "dead-letter");
  await page.getByRole("link", { name: "Discard" }).click();
  await page.locator("#preview").getByText("is never sent").waitFor();
  await page.getByLabel("Reason").fill("Nobody reads it");
  await page.getByRole("button", { name: "Confirm: Discard" }).click();
  await page.getByText("The event is discarded").waitFor();
  await page.context().close();
});

test("a webhook delivery shows its attempts, and a retry its real outcome", async (t) => {
  const answers = [];
  const receiver = createServer((request, response) => {
    request.resume();
    request.on("end", () => {
      response.statusCode = answers.length === 0 ? 410 : answers.shift();
      response.end();
    });
  });
  await new Promise((resolve) => receiver.listen(0, "127.0.0.1", resolve));
  t.after(() => receiver.close());
  const body = { url: `http://127.0.0.1:${receiver.address().port}/hook`, types: ["flow.*"] };
  const subscription = (await api("POST", "/subscriptions", body)).body;
  await started(entity("hooked"), "Plan");
  const page = await signedIn(browser, "admin");
  await page.goto(`${url}/console/operations/webhooks`);
  await page.getByRole("link", { name: body.url }).click();
  const row = page.locator("tbody tr").first();
  for (let tries = 0; tries < 100 && !(await row.getByText("410").count()); tries += 1) await page.reload();
  await sound(page, "deliveries");
  await row.getByRole("link").click();
  await page.getByText("410").first().waitFor();
  await page.getByText("Content", { exact: true }).click();
  await page.locator("pre", { hasText: "flow.started" }).waitFor();
  await sound(page, "delivery");
  await page.getByRole("link", { name: "Discard" }).click();
  await page.getByRole("button", { name: "Confirm: Discard" }).click();
  assert.equal(await page.getByText("It is discarded.").count(), 0, "not without a reason");
  await page.getByLabel("Reason").fill(`Nobody reads it "><img src=x onerror=alert(1)>`);
  await page.getByRole("button", { name: "Confirm: Discard" }).click();
  await page.getByText("It is discarded.").waitFor();
  await page.locator("#status").getByText("Discarded").waitFor();
  answers.push(200, 200, 200, 200);
  await page.getByRole("link", { name: "Send again" }).click();
  await page.locator("#preview").getByText("It is sent at once").waitFor();
  await page.getByRole("button", { name: "Confirm: Send again" }).click();
  await page.getByText("It is sent again. The attempt appears below.").waitFor();
  // The page updates itself with the result.
  await page.locator("#status").getByText("Accepted").waitFor();
  await page.locator("tbody tr").first().getByText("200").waitFor();
  await api("DELETE", `/subscriptions/${subscription.id}`);
  assert.deepEqual(page.context().complaints, []);
  await page.context().close();
});

test("deliveries that were given up are grouped by error, and some are sent again or discarded", async (t) => {
  let status = 503;
  const receiver = createServer((request, response) => {
    request.resume();
    request.on("end", () => response.writeHead(status).end());
  });
  await new Promise((resolve) => receiver.listen(0, "127.0.0.1", resolve));
  t.after(() => receiver.close());
  const body = { url: `http://127.0.0.1:${receiver.address().port}/many`, types: ["flow.started"] };
  const { id } = (await api("POST", "/subscriptions", body)).body;
  t.after(() => api("DELETE", `/subscriptions/${id}`));
  for (let number = 0; number < 3; number += 1) await started(entity("given-up"), "Plan");
  const deliveries = async () => (await api("GET", `/subscriptions/${id}/deliveries?limit=100`)).body.data;
  const tried = (all) => all.length === 3 && all.every((one) => one.attempts > 0);
  for (const until = Date.now() + 20_000; !tried(await deliveries()); ) assert.ok(Date.now() < until, "each is tried once");
  const [late, slow, closed] = (await deliveries()).map((one) => one.id);
  sql(`update webhook_delivery set state = 'dead', last_status = null, lease_until = null,
    last_error = case when message_id = '${closed}' then 'the connection was refused' else 'no answer in time' end where subscription_id = '${id}'`);
  const page = await signedIn(browser, "admin");
  await page.goto(`${url}/console/operations/webhooks/${id}?state=dead`);
  const group = page.locator("fieldset", { has: page.getByRole("heading", { name: "no answer in time" }) });
  await group.getByText("2 deliveries").waitFor();
  await sound(page, "deliveries-dead");
  await page.getByRole("button", { name: "Send the chosen ones again" }).click();
  await page.getByRole("alert").getByText("Choose at least one delivery").waitFor();
  status = 200;
  await page.getByLabel("All with this error").last().check();
  await page.getByRole("button", { name: "Discard the chosen ones" }).click();
  await page.getByRole("alert").getByText("needs a reason").waitFor();
  await group.getByLabel("All with this error").check();
  await page.locator("fieldset", { hasText: "the connection was refused" }).getByLabel("All with this error").uncheck();
  await page.getByRole("button", { name: "Send the chosen ones again" }).click();
  await page.getByText("2 deliveries are sent again.").waitFor();
  // The page updates itself.
  for (const one of [late, slow]) await page.locator("#sent li", { hasText: one }).getByText("Accepted").waitFor();
  assert.equal(await page.locator("#sent li").count(), 2);
  await page.locator(`input[name=item][value="${closed}"]`).check();
  await page.getByLabel("Reason").fill("The receiver has moved");
  await page.getByRole("button", { name: "Discard the chosen ones" }).click();
  await page.locator("#preview").getByText("1 delivery is not sent any more.").waitFor();
  await page.getByRole("button", { name: "Confirm: Discard the chosen ones" }).click();
  await page.getByText("1 delivery is discarded.").waitFor();
  const states = Object.fromEntries((await deliveries()).map((one) => [one.id, one.state]));
  assert.deepEqual([states[late], states[slow], states[closed]], ["delivered", "delivered", "discarded"]);
  assert.deepEqual(page.context().complaints, []);
  await page.context().close();
});

test("a person without the permission sees the reason in each panel, and no link", async () => {
  const page = await signedIn(browser, "reviewer");
  assert.equal(await page.getByRole("link", { name: "Operation", exact: true }).count(), 0);
  await page.goto(`${url}/console/operations`);
  await page.getByText("this needs the permission dead-letter:read").first().waitFor();
  await sound(page, "operations-forbidden");
  await page.context().close();
});

test("figures over time are drawn with their numbers, and link to their sources", async () => {
  const { task } = await started(entity("counted"), "Plan");
  const own = await api("POST", `/tasks/${task}/claim`, {}, tokenOf("author"));
  assert.equal(own.body.reason, "own_request");
  const page = await signedIn(browser, "admin");
  const card = (name) => page.locator(".panel", { has: page.getByRole("heading", { name, exact: true }) });
  // Hosts write their counts every ten seconds. The page updates itself.
  await page.goto(`${url}/console/operations`);
  await card("Refusals").getByRole("link", { name: "own_request" }).waitFor();
  for (const [name, line] of [
    ["Throughput", "Decisions"], ["Throughput", "Started instances"], ["Refusals", "Refused commands"], ["Relay", "Waiting events"],
    ["Relay", "Age of the oldest event"], ["Deliveries", "Waiting deliveries"], ["Retries of jobs", "Waiting jobs"],
  ]) {
    const drawing = card(name).getByRole("img", { name: line });
    assert.equal(await drawing.count(), 1, line);
    const [corners, described] = await drawing.evaluate((svg) => [svg.querySelector("polyline").getAttribute("points"), svg.querySelector("desc").textContent]);
    assert.ok(corners.split(" ").length >= 60, `${line}: ${corners}`);
    assert.match(described, /^At most /, line);
  }
  assert.match(await page.locator("#figures-span").textContent(), /^From .* until .*, in steps of 1 min\.$/);
  const figure = page.locator("#figure-starts");
  await figure.getByText("Numbers").click();
  assert.ok((await figure.locator("tbody tr").count()) >= 1, "the numbers of the line as text");
  await sound(page, "operations-figures");
  await page.getByRole("link", { name: "Last week" }).click();
  await page.locator("#figures-span", { hasText: "in steps of 2 h" }).waitFor();
  await sound(page, "operations-week");
  await card("Refusals").getByRole("link", { name: "own_request" }).click();
  await page.getByRole("heading", { level: 1, name: "Refused commands" }).waitFor();
  await page.locator("tbody tr", { hasText: "own_request" }).filter({ hasText: "claim" }).first().waitFor();
  await sound(page, "refusals");
  for (const [name, heading] of [["Throughput", "Audit"], ["Relay", "Refused events"], ["Deliveries", "Webhooks"], ["Retries of jobs", "Failing jobs"]]) {
    await page.goto(`${url}/console/operations`);
    await card(name).getByRole("link", { name, exact: true }).click();
    await page.getByRole("heading", { level: 1, name: heading }).waitFor();
  }
  assert.deepEqual(page.context().complaints, []);
  await page.context().close();
});

test("an open page of figures updates itself, and keeps its unfolded parts", async () => {
  const page = await signedIn(browser, "admin");
  const stream = page.waitForResponse((answer) => answer.url().includes("/console/live"));
  await page.goto(`${url}/console/operations`);
  assert.equal((await stream).status(), 200);
  const figure = page.locator("#figure-starts");
  await figure.getByText("Numbers").click();
  await page.evaluate(() => (window.kept = document.querySelector("#figure-starts")));
  const before = Number((await figure.locator("strong").textContent()).split(" ")[0]);
  await started(entity("meanwhile"), "Plan");
  // Counts are written after up to ten seconds. The page waits for that before it reads them.
  const rises = (before) => Number(document.querySelector("#figure-starts strong")?.textContent.split(" ")[0]) > before;
  const late = (error) => assert.fail(`the figure stays at ${before}: ${error.message}`);
  await page.waitForFunction(rises, before, { timeout: 40_000 }).catch(late);
  assert.ok(await page.evaluate(() => window.kept.isConnected), "the page is changed, not replaced");
  assert.equal(await figure.locator("details").getAttribute("open"), "");
  assert.deepEqual(page.context().complaints, []);
  await page.context().close();
});

test("hosts are shown with their versions, and several versions are pointed out", async () => {
  const page = await signedIn(browser, "admin");
  await page.goto(`${url}/console/operations`);
  const panel = page.locator(".panel", { has: page.getByRole("heading", { name: "Hosts" }) });
  await panel.getByText("api").first().waitFor();
  await panel.getByText("No host sends events to Kafka.").waitFor();
  assert.equal(await panel.getByText("Several versions run").count(), 0);
  sql(`insert into host (id, name, version, roles, started_at, seen_at)
    values (gen_random_uuid(), 'other:8080', '0.0.1', '{api,relay}', now(), now() + interval '1 hour')`);
  await page.reload();
  await panel.getByText("Several versions run: 0.0.1, ").waitFor();
  await sound(page, "operations-versions");
  await panel.getByRole("link", { name: "Hosts" }).click();
  await page.getByRole("heading", { level: 1, name: "Hosts" }).waitFor();
  await page.locator("tbody tr", { hasText: "other:8080" }).getByText("0.0.1").waitFor();
  await sound(page, "hosts");
  sql("delete from host where version = '0.0.1'");
  await page.reload();
  assert.equal(await page.getByText("Several versions run").count(), 0);
  await page.context().close();
});
