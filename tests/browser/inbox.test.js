// Many tasks at once, columns, saved views, drafts, and working through a view by keys.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { api, entity, launch, signedIn, sound, started, tokenOf, url } from "./support.js";

let browser;
before(async () => (browser = await launch()));
after(() => browser.close());

/** Starts as many approvals, with titles that end in A, B, C ... */
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
  // One of them is somebody else's by now.
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
  // The same page sent again repeats its answer, and does nothing anew.
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
  await page.getByText("REJECT needs a comment").waitFor();
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

  // It is what one sees first, and its tab leads to it from everywhere.
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
