// What an operator does: see what needs somebody, find the cause, send again or discard, and read what came of it.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { after, before, test } from "node:test";
import { api, entity, launch, signedIn, sound, sql, started, tokenOf, url } from "./support.js";

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
  // With all three digits of the milliseconds, which the page leaves out where they are zero.
  await page.getByLabel("At (UTC)").fill(new Date(before).toISOString().slice(0, 23));
  await page.getByRole("button", { name: "Show" }).click();
  await page.getByText("Rita Reviewer").waitFor();
  await api("PUT", `/groups/reviewers/members/reviewer2`);
  await page.goto(`${url}/console/instances/${id}/who?at=2999-01-01T00:00`);
  await page.getByRole("alert").waitFor();
  await sound(page, "who-refused");
  await page.context().close();
});

test("refused events are grouped by error, and the chosen ones are sent again with a reason", async () => {
  const [one, other] = [await refused(tooLarge), await refused("the topic does not exist")];
  const page = await signedIn(browser, "admin", { javaScriptEnabled: false });
  await page.goto(`${url}/console/operations/dead-letters`);
  await page.getByRole("heading", { name: tooLarge }).waitFor();
  await page.getByRole("heading", { name: "the topic does not exist" }).waitFor();
  await page.locator(`input[value="${other}"]`).check();
  await page.getByLabel("Reason").fill("The topic is there now");
  await page.getByRole("button", { name: "Send the chosen ones again" }).click();
  const outcome = page.getByRole("status").locator("li", { hasText: other });
  await outcome.getByText(/again. (It comes|They come) back here/).waitFor();
  assert.equal((await api("GET", `/dead-letters/${other}`)).status, 404);
  assert.equal((await api("GET", `/dead-letters/${one}`)).status, 200, "the others stay");
  await page.context().close();
});

test("a refused event shows its content, and is discarded with what that means", async () => {
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
  await page.locator("#standing").getByText("Discarded").waitFor();
  answers.push(200, 200, 200, 200);
  await page.getByRole("link", { name: "Send again" }).click();
  await page.locator("#preview").getByText("It is sent at once").waitFor();
  await page.getByRole("button", { name: "Confirm: Send again" }).click();
  await page.getByText("It is sent again. The attempt appears below.").waitFor();
  // The page shows the outcome by itself.
  await page.locator("#standing").getByText("Accepted").waitFor();
  await page.locator("tbody tr").first().getByText("200").waitFor();
  await api("DELETE", `/subscriptions/${subscription.id}`);
  assert.deepEqual(page.context().complaints, []);
  await page.context().close();
});

test("who may not operate sees in each panel why, and no link to it", async () => {
  const page = await signedIn(browser, "reviewer");
  assert.equal(await page.getByRole("link", { name: "Operation", exact: true }).count(), 0);
  await page.goto(`${url}/console/operations`);
  await page.getByText("this needs the permission dead-letter:read").first().waitFor();
  await sound(page, "operations-forbidden");
  await page.context().close();
});

test("figures over time are drawn with their numbers, and lead to what is behind them", async () => {
  const { task } = await started(entity("counted"), "Plan");
  const own = await api("POST", `/tasks/${task}/claim`, {}, tokenOf("author"));
  assert.equal(own.body.reason, "own_request");
  const page = await signedIn(browser, "admin");
  const card = (name) => page.locator(".panel", { has: page.getByRole("heading", { name, exact: true }) });
  // Hosts write what they counted every ten seconds, and the page shows it by itself.
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

test("an open page of figures shows what happened meanwhile, and what was unfolded stays so", async () => {
  const page = await signedIn(browser, "admin");
  const stream = page.waitForResponse((answer) => answer.url().includes("/console/live"));
  await page.goto(`${url}/console/operations`);
  assert.equal((await stream).status(), 200);
  const figure = page.locator("#figure-starts");
  await figure.getByText("Numbers").click();
  await page.evaluate(() => (window.kept = document.querySelector("#figure-starts")));
  const number = async () => Number((await figure.locator("strong").textContent()).split(" ")[0]);
  const before = await number();
  await started(entity("meanwhile"), "Plan");
  // Counts are written after up to ten seconds, and the page waits for that before it reads them.
  const rises = async () => {
    for (let tries = 0; tries < 200; tries += 1) {
      if ((await number()) > before) return;
      await page.waitForTimeout(200);
    }
    assert.fail("the figure stays as it was");
  };
  await rises();
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
