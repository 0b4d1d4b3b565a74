// An auditor finds events, verifies them and reports them.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { api, entity, launch, signedIn, sound, sql, started, tokenOf, url } from "./support.js";

let browser;
before(async () => (browser = await launch()));
after(() => browser.close());

test("the audit is searched by actor, type and time, and leads to the instance", async () => {
  const name = entity("audited");
  await started(entity("audited-before"), "Plan");
  const { id } = await started(name, `Plan ${name}`);
  const page = await signedIn(browser, "admin");
  const address = `${url}/console/audit?actor=author&type=FLOW_STARTED`;
  const entry = page.locator("tr", { hasText: id });
  // An entry is in the list once a checkpoint covers it.
  for (let tries = 0; tries < 200 && !(await entry.count()); tries += 1) await page.goto(address);
  await entry.getByText("FLOW_STARTED").waitFor();
  await sound(page, "audit");
  // Entries of later instances come first, unless the reader chooses the oldest first.
  const leaves = async () => (await page.locator("tbody tr td:first-child .faint").allTextContents()).map(Number);
  const newest = await leaves();
  await page.getByLabel("Order").selectOption("Oldest first");
  await page.getByRole("button", { name: "Apply" }).click();
  await page.waitForURL(/sort=occurredAt/);
  const oldest = await leaves();
  assert.ok(newest.length > 1 && oldest.length > 1, "there are entries to order");
  assert.deepEqual(newest, newest.toSorted((a, b) => b - a));
  assert.deepEqual(oldest, oldest.toSorted((a, b) => a - b));
  await page.getByLabel("Done by").fill("nobody-of-this-id");
  await page.getByRole("button", { name: "Apply" }).click();
  await page.getByText("No entry matches.").waitFor();
  await page.goto(address);
  await entry.getByRole("link", { name: "Instance" }).click();
  await page.getByRole("heading", { name: `Plan ${name}` }).waitFor();
  await page.context().close();
});

test("the audit of a period has its entries, including the first moment and excluding the last", async () => {
  const { id } = await started(entity("timed"), "Plan");
  const page = await signedIn(browser, "admin", { javaScriptEnabled: false });
  const address = `${url}/console/audit?actor=author&type=FLOW_STARTED`;
  const entry = page.locator("tr", { hasText: id });
  for (let tries = 0; tries < 200 && !(await entry.count()); tries += 1) await page.goto(address);
  const day = (days) => new Date(Date.now() + days * 86_400_000).toISOString().slice(0, 10);
  const within = async (from, until) => {
    await page.goto(address);
    await page.getByLabel(/^From/).fill(from);
    await page.getByLabel(/^Before/).fill(until);
    await page.getByRole("button", { name: "Apply" }).click();
    await page.waitForURL(/from=/);
    return entry.count();
  };
  // The period is from yesterday to tomorrow, so that the test may run over midnight.
  assert.equal(await within(day(-1), day(1)), 1);
  assert.equal(await within(day(-3), day(-1)), 0, "it was later");
  assert.equal(await within(day(1), day(2)), 0, "it was earlier");
  await page.getByText("No entry matches.").waitFor();
  assert.equal(await page.getByLabel(/^From/).inputValue(), day(1), "the filter shows its effect");
  await page.context().close();
});

test("a person without the permission sees no link to the audit, and the reason", async () => {
  const page = await signedIn(browser, "reviewer");
  await page.goto(`${url}/console/audit`);
  await page.getByText("this needs the permission audit:read").waitFor();
  await sound(page, "audit-forbidden");
  await page.context().close();
});

test("an instance is verified in place, and changes in the database are named", async () => {
  const { id } = await started(entity("verified"), "Plan");
  const page = await signedIn(browser, "admin", { javaScriptEnabled: false });
  await page.goto(`${url}/console/instances/${id}?tab=audit`);
  await page.getByRole("link", { name: "Verify this instance" }).click();
  await page.getByRole("status").getByText("All is as it was recorded.").waitFor();
  assert.equal(new URL(page.url()).pathname, `/console/instances/${id}`);
  sql(`update instance set initiator = '<b>mallory</b>' where id = '${id}'`);
  await page.getByRole("link", { name: "Verify this instance" }).click();
  await page.getByRole("status").getByText("1 difference from what was recorded.").waitFor();
  await page.locator("#verification").getByText("<b>mallory</b>").waitFor();
  sql(`update instance set initiator = 'author' where id = '${id}'`);
  await page.context().close();
  const scripted = await signedIn(browser, "admin");
  await scripted.goto(`${url}/console/instances/${id}?tab=audit&verify=true`);
  await sound(scripted, "verification");
  await scripted.context().close();
});

test("what the host did on its own is in the audit of an instance, as done by the host", async () => {
  const { id, task } = await started(entity("hosted"), "Plan");
  assert.equal((await api("POST", `/tasks/${task}/claim`, {}, tokenOf("reviewer2"))).status, 200);
  // The owner loses the task by leaving the group.
  assert.equal((await api("DELETE", "/groups/reviewers/members/reviewer2")).status, 200);
  try {
    const released = async () => {
      const entries = (await api("GET", `/instances/${id}/audit`)).body.data;
      return entries.find((entry) => entry.type === "TASK_RELEASED");
    };
    for (let tries = 0; tries < 400 && !(await released()); tries += 1);
    assert.equal((await released()).actor, null);
    const page = await signedIn(browser, "admin");
    await page.goto(`${url}/console/instances/${id}?tab=audit`);
    await page.locator("li", { hasText: "TASK_RELEASED" }).getByText("the host").waitFor();
    await page.context().close();
  } finally {
    assert.equal((await api("PUT", "/groups/reviewers/members/reviewer2", {})).status, 200);
  }
});

test("each entry of an instance shows its hash, and a decision its seal, also a broken one", async () => {
  const { id, task } = await started(entity("sealed"), "Plan");
  assert.equal((await api("POST", `/tasks/${task}/decide`, { outcome: "APPROVE" }, tokenOf("reviewer"))).status, 200);
  const entries = (await api("GET", `/instances/${id}/audit`)).body.data;
  const page = await signedIn(browser, "admin");
  await page.goto(`${url}/console/instances/${id}?tab=audit`);
  const hashes = page.locator(".record .hash code");
  assert.deepEqual(await hashes.allInnerTexts(), entries.map((entry) => entry.hash));
  assert.ok(entries.every((entry) => entry.hash.length === 64));
  const sealed = page.locator(".record > li", { has: page.locator(".badge") });
  assert.equal(await sealed.count(), 1, "nothing else is sealed");
  await sealed.getByText("DECISION_RECORDED", { exact: true }).waitFor();
  await sealed.locator(".badge.good").getByText("Seal: valid").waitFor();
  await sound(page, "audit-seals");
  const flip = () => sql(`set session_replication_role = replica; update decision set mac = set_byte(mac, 0, get_byte(mac, 0) # 1) where task_id = '${task}'`);
  flip();
  await page.reload();
  await sealed.locator(".badge.bad").getByText("Seal: not valid").waitFor();
  await sound(page, "audit-seal-broken");
  flip();
  await page.context().close();
});

test("the chain of custody has every decision with its seal, is a file, and fits on paper", async () => {
  const name = entity("custody");
  const { id, task } = await started(name, "Plan");
  const said = `"><img src=x onerror=alert(1)>`;
  assert.equal((await api("POST", `/tasks/${task}/decide`, { outcome: "REJECT", comment: said }, tokenOf("reviewer"))).status, 200);
  const page = await signedIn(browser, "admin");
  await page.goto(`${url}/console/instances/${id}?tab=audit`);
  await page.getByRole("link", { name: "Chain of custody" }).click();
  await page.getByText("1 of 1 seals are valid.").waitFor();
  const row = page.locator("tbody tr", { hasText: "REJECT" });
  await row.getByText("Rob Reviewer").waitFor();
  await row.getByText(said).waitFor();
  assert.equal(await page.locator("main img").count(), 0);
  await sound(page, "custody");
  await page.emulateMedia({ media: "print" });
  assert.equal(await page.locator(".top").isVisible(), false);
  assert.equal(await page.locator(".unprinted").isVisible(), false);
  assert.equal(await page.locator("thead").isVisible(), true);
  assert.equal(await page.locator("body").evaluate((body) => getComputedStyle(body).backgroundColor), "rgb(255, 255, 255)");
  await page.emulateMedia({ media: "screen" });
  const file = page.waitForEvent("download");
  await page.getByRole("link", { name: "Save as a file (CSV)" }).click();
  assert.equal((await file).suggestedFilename(), "custody.csv");
  await page.goto(`${url}/console/entities/document/${name}/custody`);
  await page.getByText("1 of 1 seals are valid.").waitFor();
  sql(`set session_replication_role = replica; update decision set outcome = 'APPROVE', mac = '\\x00' where instance_id = '${id}'`);
  await page.reload();
  await page.getByText("0 of 1 seals are valid.").waitFor();
  await sound(page, "custody-invalid");
  await page.context().close();
});

test("the report of self-approvals shows its counts and the refused attempts", async () => {
  const { task } = await started(entity("own"), "Plan");
  assert.equal((await api("POST", `/tasks/${task}/claim`, {}, tokenOf("author"))).status, 403);
  const page = await signedIn(browser, "admin");
  await page.goto(`${url}/console/audit`);
  await page.getByRole("link", { name: "Self-approvals" }).click();
  await page.locator("#verdict").getByText("Nobody decided on their own request.").waitFor();
  const attempt = page.locator("tr", { hasText: task });
  // The host writes refused attempts a moment later.
  for (let tries = 0; tries < 100 && !(await attempt.count()); tries += 1) await page.reload();
  await attempt.getByText(/claim/).first().waitFor();
  await sound(page, "compliance");
  await page.getByLabel("From").fill("2999-01-02");
  await page.getByLabel("Before").fill("2999-01-01");
  await page.getByRole("button", { name: "Apply" }).click();
  await page.getByRole("alert").getByText("from must be before until").waitFor();
  await sound(page, "compliance-refused");
  await page.context().close();
});

test("a person without the permission gets no report, custody, file or verification", async () => {
  const { id } = await started(entity("hidden"), "Plan");
  const page = await signedIn(browser, "reviewer");
  for (const address of ["/console/audit/self-approvals", `/console/instances/${id}/custody`, `/console/entities/document/x/custody`]) {
    await page.goto(url + address);
    await page.getByText("this needs the permission audit:read").waitFor();
  }
  const file = await page.request.get(`${url}/console/instances/${id}/custody.csv`);
  assert.equal(file.status(), 403);
  await page.goto(`${url}/console/instances/${id}?tab=audit&verify=true`);
  await page.getByText("this needs the permission audit:read").waitFor();
  for (const name of ["Verify this instance", "Chain of custody"]) assert.equal(await page.getByRole("link", { name }).count(), 0);
  await page.context().close();
});

test("checkpoints are listed with their signatures and links to their entries", async () => {
  await started(entity("signed"), "Plan");
  const page = await signedIn(browser, "admin");
  const rows = page.locator("tbody tr");
  // The host signs every two seconds.
  for (let tries = 0; tries < 200 && !(await rows.count()); tries += 1) await page.goto(`${url}/console/audit/checkpoints`);
  await rows.first().getByText("valid", { exact: true }).waitFor();
  await sound(page, "checkpoints");
  const [first] = (await rows.first().locator("a").innerText()).split(" to ");
  await rows.first().locator("a").click();
  await page.locator("tbody tr").first().getByText(first, { exact: true }).waitFor();
  const number = await (async () => {
    await page.goBack();
    return rows.first().locator("td").first().innerText();
  })();
  sql(`set session_replication_role = replica; update checkpoint set signature = set_byte(signature, 0, get_byte(signature, 0) # 1) where number = ${number}`);
  await page.reload();
  const changed = page.locator("tbody tr", { has: page.locator("td:first-child", { hasText: new RegExp(`^\\s*${number}\\s*$`) }) });
  await changed.getByText("invalid", { exact: true }).waitFor();
  await sound(page, "checkpoints-invalid");
  sql(`set session_replication_role = replica; update checkpoint set signature = set_byte(signature, 0, get_byte(signature, 0) # 1) where number = ${number}`);
  await page.context().close();
  const reviewer = await signedIn(browser, "reviewer");
  await reviewer.goto(`${url}/console/audit/checkpoints`);
  await reviewer.getByText("this needs the permission audit:read").waitFor();
  await reviewer.context().close();
});

test("the entries that match are a file, one JSON object per line", async () => {
  const name = entity("filed");
  const { id } = await started(name, "Plan");
  const page = await signedIn(browser, "admin", { javaScriptEnabled: false });
  const address = `${url}/console/audit?actor=author&type=FLOW_STARTED`;
  for (let tries = 0; tries < 200 && !(await page.locator("tr", { hasText: id }).count()); tries += 1) await page.goto(address);
  // The test requests the address of the link, because the system's browser may block downloads.
  const href = await page.getByRole("link", { name: "Save as a file" }).getAttribute("href");
  const file = await page.request.get(url + href);
  assert.equal(file.headers()["content-disposition"], 'attachment; filename="audit.jsonl"');
  const text = await file.text();
  assert.ok(text.endsWith("\n"));
  const lines = text.trim().split("\n").map((line) => JSON.parse(line));
  assert.deepEqual(lines.pop(), { next: null });
  assert.ok(lines.some((line) => line.streamId === id && line.hash.length === 64));
  assert.ok(lines.every((line) => line.actor === "author" && line.type === "FLOW_STARTED"));
  // The next file of a longer list begins after the last entry.
  const first = await api("GET", "/audit?actor=author&type=FLOW_STARTED&limit=1");
  const rest = await (await page.request.get(`${url}${href}&after=${encodeURIComponent(first.body.page.next)}`)).text();
  assert.equal(JSON.parse(rest.split("\n")[0]).id, lines[1].id);
  await page.context().close();
  const reviewer = await signedIn(browser, "reviewer");
  assert.equal((await reviewer.request.get(`${url}/console/audit/entries.jsonl`)).status(), 403);
  await reviewer.context().close();
});

test("days and moments of filters are those of the reader's zone", async () => {
  const { id } = await started(entity("zoned"), "Plan");
  const token = tokenOf("admin");
  const preferences = (await api("GET", "/me/preferences", undefined, token)).body;
  const put = (timeZone) => api("PUT", "/me/preferences", { ...preferences, timeZone }, token);
  assert.equal((await put("Pacific/Kiritimati")).status, 200);
  const page = await signedIn(browser, "admin");
  await page.goto(`${url}/console/audit?from=2999-01-02&until=2999-01-01`);
  await page.getByRole("alert").getByText("from must be before until").waitFor();
  await page.getByLabel("From (Pacific/Kiritimati)").waitFor();
  // The clocks of this zone are fourteen hours ahead of UTC.
  const now = new Date();
  const there = new Date(now.getTime() + 14 * 3_600_000).toISOString().slice(0, 23);
  await page.goto(`${url}/console/instances/${id}/who`);
  await page.getByLabel("At (Pacific/Kiritimati)").fill(there);
  await page.getByRole("button", { name: "Show" }).click();
  await page.getByRole("link", { name: "Now" }).waitFor();
  assert.equal(new Date(await page.locator("main time").first().getAttribute("datetime")).getTime(), now.getTime());
  await put(preferences.timeZone ?? null);
  await page.context().close();
});
