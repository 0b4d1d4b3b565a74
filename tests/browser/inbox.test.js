// Many tasks at once, columns, saved views, drafts, and work by keyboard.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { api, committee, entity, launch, signedIn, sound, sql, started, tokenOf, url, vote } from "./support.js";

let browser;
before(async () => (browser = await launch()));
after(() => browser.close());

/** Starts this many approvals, with titles that end in A, B, C ... */
async function several(name, count) {
  const all = [];
  for (let i = 0; i < count; i += 1) all.push(await started(`${name}-${i}`, `${name} ${String.fromCharCode(65 + i)}`));
  return all;
}

function inbox(name, view = "available") {
  return `${url}/console?view=${view}&q=${name}`;
}

test("selected tasks are claimed together after a counted preview, without scripts too", async () => {
  const name = entity("bulk");
  const all = await several(name, 4);
  const page = await signedIn(browser, "reviewer", { javaScriptEnabled: false });
  await page.goto(inbox(name));
  await page.getByRole("button", { name: "Claim selected" }).click();
  await page.getByText("No task is selected.").waitFor();
  await page.getByRole("link", { name: "Back to the inbox" }).click();
  for (const one of ["A", "B", "C"]) await page.getByLabel(`Select: ${name} ${one}`).check();
  // One of them belongs to somebody else now.
  assert.equal((await api("POST", `/tasks/${all[1].task}/claim`, {}, tokenOf("reviewer2"))).status, 200);
  await page.getByRole("button", { name: "Claim selected" }).click();
  await page.getByRole("heading", { name: "Claim 3 tasks" }).waitFor();
  await page.getByRole("status").getByText("2 tasks will change. 1 is refused.").waitFor();
  assert.equal(await page.locator(".refused-group a").textContent(), `${name} B`, "by its title, though it is not in the list any more");
  assert.equal((await api("GET", `/tasks/${all[0].task}`)).body.task.owner, null, "nothing is written before");
  await page.getByRole("button", { name: "Confirm: Claim 2 tasks" }).click();
  await page.getByRole("status").getByText("2 tasks are done. 1 was refused.").waitFor();
  for (const [i, owner] of [[0, "reviewer"], [1, "reviewer2"], [2, "reviewer"], [3, null]]) {
    assert.equal((await api("GET", `/tasks/${all[i].task}`)).body.task.owner, owner);
  }
  // Sending the same page again repeats its response and has no further effect.
  await page.reload();
  await page.getByRole("status").getByText("2 tasks are done. 1 was refused.").waitFor();
  await page.getByRole("link", { name: "Back to the inbox" }).click();
  assert.equal(await page.locator(".row").count(), 1);
  await page.context().close();
});

test("all that match are decided with one comment, and each has its result", async () => {
  const name = entity("decided");
  const all = await several(name, 3);
  const page = await signedIn(browser, "reviewer");
  await page.goto(inbox(name));
  await sound(page, "bulk-inbox");
  await page.getByLabel("All that match").check();
  await page.getByRole("button", { name: "Decide selected" }).click();
  await page.getByRole("heading", { name: "Decide 3 tasks" }).waitFor();
  assert.equal(await page.getByRole("button", { name: /^Confirm/ }).count(), 0, "an outcome comes first");
  await sound(page, "bulk-decide");
  await page.getByRole("radio", { name: "REJECT 3 tasks" }).check();
  await page.getByRole("button", { name: "Show what will happen" }).click();
  await page.getByRole("status").getByText("No task will change. 3 are refused.").waitFor();
  await page.locator(".refused-group").getByText("Comment: This is required.").waitFor();
  assert.equal(await page.getByRole("button", { name: /^Confirm/ }).count(), 0);
  await page.getByLabel("Comment on each of them").fill("Too <b>dear</b>");
  await page.getByRole("button", { name: "Show what will happen" }).click();
  await page.getByRole("status").getByText("3 tasks will change.").waitFor();
  await sound(page, "bulk-preview");
  await page.getByRole("button", { name: "Confirm: Decide 3 tasks" }).click();
  await page.getByRole("status").getByText("3 tasks are done.").waitFor();
  await sound(page, "bulk-results");
  for (const { id } of all) {
    const decision = (await api("GET", `/instances/${id}/history`)).body.data[0].tasks[0].decision;
    assert.deepEqual([decision.outcome, decision.comment], ["REJECT", "Too <b>dear</b>"]);
  }
  await page.context().close();
});

test("all that match are decided from a later page, too, by their titles and outcomes", async () => {
  const name = entity("behind");
  await several(name, 26);
  const page = await signedIn(browser, "reviewer");
  await page.goto(inbox(name));
  await page.getByRole("link", { name: "Next page" }).click();
  await page.waitForURL(/after=/);
  await page.getByLabel("All that match").check();
  await page.getByRole("button", { name: "Decide selected" }).click();
  await page.getByRole("radio", { name: "APPROVE 26 tasks" }).check();
  await page.getByRole("button", { name: "Show what will happen" }).click();
  await page.getByRole("status").getByText("26 tasks will change.").waitFor();
  await page.getByRole("radio", { name: "REJECT 26 tasks" }).waitFor();
  const titles = await page.locator("#preview .lines li").allTextContents();
  assert.deepEqual(titles.filter((title) => !title.startsWith(name)), [], "none by its id");
  assert.equal(titles.length, 26);
  await page.context().close();
});

test("two people claim the same tasks together: each task goes to one of them", async () => {
  const name = entity("both");
  const all = await several(name, 5);
  const pages = [await signedIn(browser, "reviewer"), await signedIn(browser, "reviewer2")];
  for (const page of pages) {
    await page.goto(inbox(name));
    await page.getByLabel("All that match").check();
    await page.getByRole("button", { name: "Claim selected" }).click();
    await page.getByRole("status").getByText("5 tasks will change.").waitFor();
  }
  await Promise.all(pages.map((page) => page.getByRole("button", { name: "Confirm: Claim 5 tasks" }).click()));
  const done = [];
  for (const page of pages) {
    await page.getByRole("heading", { name: "What happened" }).waitFor();
    const works = page.locator(".group:not(.refused-group) li");
    const refused = page.locator(".refused-group li");
    done.push(await works.count());
    assert.equal((await works.count()) + (await refused.count()), 5);
    for (const title of await refused.allTextContents()) assert.match(title, new RegExp(`^${name} [A-E]$`));
    assert.deepEqual(page.context().complaints, []);
  }
  assert.equal(done[0] + done[1], 5);
  const owners = [];
  for (const { task } of all) owners.push((await api("GET", `/tasks/${task}`)).body.task.owner);
  assert.equal(owners.filter((owner) => owner === "reviewer").length, done[0]);
  assert.equal(owners.filter((owner) => owner === "reviewer2").length, done[1]);
  for (const page of pages) await page.context().close();
});

test("more than a hundred are not handled at once, and the page says so", async () => {
  const name = entity("hundred");
  await several(name, 1);
  for (let i = 0; i < 100; i += 1) await started(`${name}-x${i}`, `${name} ${i}`);
  const page = await signedIn(browser, "reviewer");
  await page.goto(inbox(name));
  await page.getByLabel("All that match").check();
  await page.getByRole("button", { name: "Claim selected" }).click();
  await page.getByText("These are the first 100.").waitFor();
  await page.getByRole("status").getByText("100 tasks will change.").waitFor();
  await page.context().close();
});

test("columns are in the address, and any number of them fits", async () => {
  const name = entity("columns");
  await several(name, 1);
  const page = await signedIn(browser, "reviewer");
  await page.goto(inbox(name));
  await page.getByText("More filters and order").click();
  await page.getByRole("group", { name: "Columns" }).getByLabel("Flow").check();
  await page.getByRole("group", { name: "Columns" }).getByLabel("Due").uncheck();
  await page.getByRole("button", { name: "Apply" }).click();
  const row = page.locator(".row");
  await row.getByText(/document-approval \d/).waitFor();
  assert.equal(await row.locator(".row-due").count(), 0);
  await page.getByRole("link", { name: "My groups" }).click();
  assert.equal(new URL(page.url()).searchParams.get("columns"), "state,holder,flow");
  await row.getByText(/document-approval \d/).waitFor();
  await page.goto(`${inbox(name)}&columns=state,priority,due,created,holder,initiator,flow`);
  await row.getByText("started by Ada Author").waitFor();
  await sound(page, "inbox-columns");
  await page.goto(`${inbox(name)}&columns=nonsense`);
  assert.equal(await row.locator(".row-due").count(), 1, "the usual ones");
  await page.context().close();
});

test("a view is saved, shown first, renamed and deleted, without scripts too", async () => {
  const name = entity("view");
  await several(name, 2);
  const page = await signedIn(browser, "reviewer2", { javaScriptEnabled: false });
  const tabs = page.getByRole("navigation", { name: "Views" });
  await page.goto(`${inbox(name)}&columns=state,flow`);
  await page.getByText("Save this view").click();
  await page.getByLabel("Name of the view").fill('My <b>"plan"</b>');
  await page.getByLabel("Show it first").check();
  await page.getByRole("button", { name: "Save", exact: true }).click();
  const tab = tabs.getByRole("link", { name: 'My <b>"plan"</b>' });
  assert.equal(await tab.getAttribute("aria-current"), "page");

  // The default view is the first page, and its tab links to it from everywhere.
  await page.goto(`${url}/console`);
  assert.equal(await page.locator(".row").count(), 2);
  await page.locator(".row").getByText(/document-approval \d/).first().waitFor();
  await tabs.getByRole("link", { name: "Mine" }).click();
  assert.equal(await tab.getAttribute("aria-current"), null);
  await tab.click();
  assert.equal(await tab.getAttribute("aria-current"), "page");
  const other = await signedIn(browser, "reviewer");
  await other.goto(`${url}/console?view=all`);
  assert.equal(await other.getByRole("link", { name: 'My <b>"plan"</b>' }).count(), 0, "nobody else's");
  await other.context().close();

  await page.getByText("Change this view").click();
  await page.getByLabel("Name of the view").fill("Renamed");
  await page.getByLabel("Show it first").uncheck();
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await tabs.getByRole("link", { name: "Renamed" }).waitFor();
  assert.equal(await tab.count(), 0);

  // A second view of the same name is refused in place.
  await page.goto(`${url}/console?view=all`);
  await page.getByText("Save this view").click();
  await page.getByLabel("Name of the view").fill("Renamed");
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await page.getByRole("alert").getByText("another of your saved views has this name").waitFor();
  assert.equal(await page.getByLabel("Name of the view").inputValue(), "Renamed");

  await tabs.getByRole("link", { name: "Renamed" }).click();
  await page.getByText("Change this view").click();
  await page.getByRole("button", { name: "Delete the view" }).click();
  assert.equal(await tabs.getByRole("link", { name: "Renamed" }).count(), 0);
  await page.context().close();
});

test("the form of a view is accessible, and a default that does not work any more keeps nobody out", async () => {
  const id = crypto.randomUUID();
  const page = await signedIn(browser, "approver");
  await page.goto(`${url}/console?view=all`);
  await page.getByText("Save this view").click();
  await sound(page, "inbox-view");
  const token = tokenOf("approver");
  const kept = await api("PUT", `/me/views/${id}`, { name: "Broken", query: "minPriority=abc", default: true }, token);
  assert.equal(kept.status, 200);
  await page.goto(`${url}/console`);
  await page.getByRole("heading", { name: "Inbox" }).waitFor();
  await page.getByRole("link", { name: "Mine" }).waitFor();
  assert.equal((await api("DELETE", `/me/views/${id}`, undefined, token)).status, 204);
  await page.context().close();
});

/** A deadline that is due after this many seconds and changes nothing. */
const due = (after) => ({ deadlines: [{ after, do: "remind" }] });

test("urgent and due work has a badge and a colour, and shows the time on hover", async () => {
  const key = entity("due");
  await committee(key, { priorities: [{ name: "usual", atLeast: 1 }, { name: "pressing", atLeast: 100 }] });
  await vote(key, `${key} far`, { priority: 1, ...due(20 * 86_400) });
  await vote(key, `${key} soon`, { priority: 120, ...due(7200) });
  const late = await vote(key, `${key} late`, due(7200));
  sql(`update task set due_at = now() - interval '3 hours' where id = '${late.task}'`);
  const page = await signedIn(browser, "reviewer");
  const address = `${inbox(key)}&columns=state,due`;
  await page.goto(address);
  const row = (name) => page.locator(".row", { hasText: `${key} ${name}` });
  const look = (place) => place.evaluate((one) => [getComputedStyle(one).color, getComputedStyle(one).backgroundColor].join(" on "));
  await row("soon").locator(".badge.high").getByText("pressing").waitFor();
  await row("far").locator(".badge:not(.high)").getByText("usual").waitFor();
  assert.notEqual(await look(row("soon").getByText("pressing")), await look(row("far").getByText("usual")));
  assert.equal(await row("late").locator(".badge:not(.state)").count(), 0, "the lowest priority without a name says nothing");
  const colours = [];
  for (const name of ["far", "soon", "late"]) colours.push(await look(row(name).locator(".due")));
  assert.equal(new Set(colours).size, 3, colours.join(", "));
  await row("soon").getByText("in 1 hour").waitFor();
  await row("late").getByText("3 hours ago").waitFor();
  await sound(page, "inbox-due");
  await page.context().close();

  // Without scripts the page shows the time in UTC. A script shows it in the language of the reader.
  const plain = await signedIn(browser, "reviewer", { javaScriptEnabled: false });
  const german = await signedIn(browser, "reviewer", { locale: "de", timezoneId: "Asia/Bangkok" });
  for (const [reader, form] of [[plain, (at) => `${at.toISOString().slice(0, 16).replace("T", " ")} UTC`], [german, (at) => at.toLocaleString("de", { timeZone: "Asia/Bangkok", hour: "2-digit", minute: "2-digit" })]]) {
    await reader.goto(address);
    const moment = reader.locator(".row", { hasText: `${key} soon` }).locator(".due time");
    const told = form(new Date(await moment.getAttribute("datetime")));
    await moment.hover();
    const title = await moment.getAttribute("title");
    assert.ok(title.includes(told), `${title} has ${told}`);
    await reader.context().close();
  }
});

test("a filter shows matches only, and the order by deadline shows the earliest first", async () => {
  const key = entity("sorted");
  await committee(key);
  await vote(key, `${key} C`, { priority: 10, ...due(3 * 86_400) });
  await vote(key, `${key} A`, { priority: 90, ...due(86_400) });
  await vote(key, `${key} B`, { priority: 50, ...due(2 * 86_400) });
  await several(key, 1);
  const page = await signedIn(browser, "reviewer");
  const titles = async () => (await page.locator(".row-title").allInnerTexts()).map((one) => one.replace(`${key} `, ""));
  await page.goto(`${inbox("")}&definitionKey=${key}`);
  assert.deepEqual(await titles(), ["C", "A", "B"], "the oldest first, and nothing of another flow");
  const apply = async (label, value) => {
    const field = page.getByLabel(label, { exact: true });
    await (label === "Order" ? field.selectOption({ label: value }) : field.fill(value));
    await page.getByRole("button", { name: "Apply" }).click();
    await page.waitForURL((address) => [...address.searchParams.values()].length > 0);
  };
  await apply("Order", "Due first");
  assert.deepEqual(await titles(), ["A", "B", "C"]);
  await apply("Priority from", "50");
  assert.deepEqual(await titles(), ["A", "B"]);
  await apply("Priority from", "");
  await apply("Due before", new Date(Date.now() + 2.5 * 86_400_000).toISOString().slice(0, 10));
  assert.ok(!(await titles()).includes("C"));
  assert.ok((await titles()).includes("A"));
  await page.getByRole("link", { name: "My groups" }).click();
  assert.ok(!(await titles()).includes("C"), "the filter stays when the view changes");
  await page.context().close();
});
