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
