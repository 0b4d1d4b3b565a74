// An administrator finds people, sees which open tasks a change would orphan, and makes the change.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { api, entity, launch, signedIn, sound, started, tokenOf, url } from "./support.js";

let browser;
before(async () => (browser = await launch()));
after(() => browser.close());

/** A text that would be harmful if a page took it for markup. */
const hostile = `"><img src=x onerror=alert(1)> \u202e`;

/** A new person, unknown to all other tests. */
async function person(name) {
  const id = entity("person");
  assert.equal((await api("PUT", `/people/${id}`, { name })).status, 200);
  return id;
}

/** A new group with these members. */
async function group(name, ...members) {
  const id = entity("group");
  assert.equal((await api("PUT", `/groups/${id}`, { name })).status, 200);
  for (const member of members) assert.equal((await api("PUT", `/groups/${id}/members/${member}`)).status, 200);
  return id;
}

test("people and groups are found, and lead to each other", async () => {
  const name = `Mara ${entity("Muster")}`;
  const id = await person(name);
  const of = await group("Plan readers", id);
  const page = await signedIn(browser, "admin");
  await page.getByRole("link", { name: "People", exact: true }).click();
  await sound(page, "people");
  await page.getByLabel("Beginning of a name or an id").fill(name.toLowerCase());
  await page.getByRole("button", { name: "Apply" }).click();
  await page.getByRole("link", { name, exact: true }).click();
  await page.getByRole("heading", { level: 1, name }).waitFor();
  await sound(page, "person");
  await page.getByRole("link", { name: "Plan readers", exact: true }).click();
  await page.getByRole("heading", { name: "Members", exact: true }).waitFor();
  assert.equal(new URL(page.url()).pathname, `/console/groups/${of}`);
  await sound(page, "group");
  await page.getByRole("link", { name, exact: true }).waitFor();
  await page.goto(`${url}/console/groups`);
  await sound(page, "groups");
  await page.context().close();
});

test("a group has pages of members, and each can be taken out", async () => {
  const ids = [];
  for (let number = 0; number < 51; number += 1) ids.push(await person(`Crowd ${number}`));
  const of = await group("Crowd", ...ids);
  const last = ids.toSorted().at(-1);
  const page = await signedIn(browser, "admin");
  await page.goto(`${url}/console/groups/${of}`);
  await page.getByRole("heading", { name: "Members", exact: true }).waitFor();
  assert.equal(await page.getByText(last, { exact: true }).count(), 0);
  await page.getByRole("link", { name: "Next page" }).click();
  await page.getByText(last, { exact: true }).waitFor();
  assert.equal(await page.getByRole("link", { name: "Next page" }).count(), 0);
  await sound(page, "group-members");
  await page.getByRole("link", { name: /^Remove/ }).click();
  await page.getByRole("button", { name: /^Confirm/ }).click();
  await page.getByRole("heading", { name: "Members", exact: true }).waitFor();
  const left = (await api("GET", `/people?group=${of}&limit=100`)).body;
  assert.equal(left.data.length, 50);
  assert.ok(left.data.every((one) => one.id !== last));
  await page.context().close();
});

test("a change shows beforehand the open tasks that nobody could do afterwards", async () => {
  const { id } = await started(entity("orphan"), "Plan");
  const members = (await api("GET", "/groups/reviewers")).body.members;
  // One reviewer is left, so each open review depends on that one.
  for (const one of members.filter((one) => one !== "reviewer")) await api("DELETE", `/groups/reviewers/members/${one}`);
  const page = await signedIn(browser, "admin", { javaScriptEnabled: false });
  await page.goto(`${url}/console/groups/reviewers`);
  await page.getByRole("link", { name: "Remove Rob Reviewer" }).click();
  const preview = page.locator("#preview");
  await preview.getByText(/open tasks? (is|are) left to nobody:/).waitFor();
  assert.ok(await preview.locator(`a[href="/console/instances/${id}/who"]`).count(), "the task is named");
  assert.deepEqual((await api("GET", "/groups/reviewers")).body.members, ["reviewer"], "nothing has happened yet");
  await page.getByRole("link", { name: "Do not do it" }).click();
  for (const one of members) await api("PUT", `/groups/reviewers/members/${one}`);
  await page.goto(`${url}/console/groups/reviewers?do=remove-member&of=reviewer#act`);
  // Tasks of other tests may depend on this reviewer alone, but this task does not any more.
  await preview.getByText(/left to nobody/).waitFor();
  assert.equal(await preview.locator(`a[href="/console/instances/${id}/who"]`).count(), 0);
  await page.context().close();
});

test("a membership begins and ends, with its effect shown before", async () => {
  const id = await person("Mara");
  const of = await group("Plan readers");
  const page = await signedIn(browser, "admin");
  await page.goto(`${url}/console/people/${id}`);
  await page.getByRole("link", { name: "Add to a group" }).click();
  await page.getByLabel(/^Group/).fill(of);
  await page.getByRole("button", { name: "Show what will happen" }).click();
  await page.locator("#preview").getByText("The person gets what is offered to the group").waitFor();
  await sound(page, "person-join");
  await page.getByRole("button", { name: "Confirm: Add to a group" }).click();
  await page.getByText("The person is a member now.").waitFor();
  await page.getByRole("link", { name: "End the membership of Plan readers" }).click();
  await page.locator("#preview").getByText("No open task is left to nobody.").waitFor();
  await page.getByRole("button", { name: "Confirm: End the membership" }).click();
  await page.getByText("The membership has ended.").waitFor();
  assert.deepEqual((await api("GET", `/groups/${of}`)).body.members, []);
  await page.context().close();
});

test("a change is previewed again if the data has changed since its preview", async () => {
  const id = await person("Mara");
  const page = await signedIn(browser, "admin");
  await page.goto(`${url}/console/people/${id}?do=rename#act`);
  assert.equal(await page.getByLabel(/^Name/).inputValue(), "Mara");
  await page.getByLabel(/^Name/).fill("Maria");
  await page.getByRole("button", { name: "Show what will happen" }).click();
  await page.locator("#preview").waitFor();
  await page.getByLabel(/^Name/).fill(hostile);
  await page.getByRole("button", { name: "Confirm: Rename" }).click();
  await page.locator("#preview").waitFor();
  assert.equal((await api("GET", `/people/${id}`)).body.name, "Mara", "not yet");
  await page.getByLabel(/^Name/).fill(hostile.slice(0, -2));
  await page.getByRole("button", { name: "Confirm: Rename" }).click();
  await page.getByRole("button", { name: "Confirm: Rename" }).click();
  await page.getByText("The name is changed.").waitFor();
  await page.getByRole("heading", { level: 1, name: hostile.slice(0, -2) }).waitFor();
  assert.equal(await page.locator("main img").count(), 0);
  await sound(page, "person-hostile");
  await page.context().close();
});

test("a manager and an absence are entered and taken back; a refusal is shown at its field", async () => {
  const id = await person("Mara");
  const page = await signedIn(browser, "admin");
  await page.goto(`${url}/console/people/${id}`);
  await page.getByRole("link", { name: "Set the manager" }).click();
  await page.getByLabel(/^Manager/).fill("nobody-of-this-id");
  await page.getByRole("button", { name: "Show what will happen" }).click();
  await page.getByRole("alert").waitFor();
  await page.getByLabel(/^Manager/).fill("approver");
  await page.getByRole("button", { name: "Show what will happen" }).click();
  await page.getByRole("button", { name: "Confirm: Set the manager" }).click();
  await page.getByText("The manager is set.").waitFor();
  assert.equal((await api("GET", `/people/${id}`)).body.manager, "approver");
  await page.getByRole("link", { name: "Remove the manager" }).click();
  await page.getByRole("button", { name: "Confirm: Remove the manager" }).click();
  await page.getByText("The manager is removed.").waitFor();
  await page.getByRole("link", { name: "Enter an absence" }).click();
  await page.getByLabel(/^Substitute/).fill("approver");
  await page.getByLabel(/^From/).fill("2999-01-02T08:00");
  await page.getByLabel(/^Until/).fill("2999-01-01T08:00");
  await page.getByRole("button", { name: "Show what will happen" }).click();
  await page.getByRole("alert").waitFor();
  await sound(page, "absence-refused");
  await page.getByLabel(/^Until/).fill("2999-01-05T08:00");
  await page.getByRole("button", { name: "Show what will happen" }).click();
  await page.getByRole("button", { name: "Confirm: Enter an absence" }).click();
  await page.getByText("The absence is entered.").waitFor();
  const [absence] = (await api("GET", `/people/${id}/absences`)).body.data;
  assert.equal(absence.from, "2999-01-02T08:00:00Z");
  await page.getByRole("link", { name: "End the absence of Mara" }).click();
  await page.getByRole("button", { name: "Confirm: End the absence" }).click();
  await page.getByText("The absence has ended.").waitFor();
  await page.context().close();
});

test("a person and a group are added, and an id that exists is said to", async () => {
  const [id, name] = [entity("new"), "Nina New"];
  const page = await signedIn(browser, "admin");
  await page.goto(`${url}/console/people?do=add-person#act`);
  await page.getByLabel(/^Id/).fill("author");
  await page.getByLabel(/^Name/).fill(name);
  await page.getByRole("button", { name: "Show what will happen" }).click();
  await page.locator("#preview").getByText("This id exists already").waitFor();
  await page.getByLabel(/^Id/).fill(id);
  await page.getByRole("button", { name: "Confirm: Add a person" }).click();
  await page.locator("#preview").getByText("The person is added.").waitFor();
  await page.getByRole("button", { name: "Confirm: Add a person" }).click();
  await page.getByText("The person is there.").waitFor();
  await page.getByRole("heading", { level: 1, name }).waitFor();
  await page.context().close();
});

test("a role shows what it permits, and what a change adds and takes", async () => {
  const role = entity("role");
  const page = await signedIn(browser, "admin");
  await page.goto(`${url}/console/roles?do=add-role#act`);
  await page.getByLabel(/^Id/).fill(role);
  await page.getByLabel("task:act").check();
  await page.getByLabel("Permissions that flows ask for").fill("plan:sign");
  await page.getByRole("button", { name: "Show what will happen" }).click();
  await page.locator("#preview").getByText("It permits also: plan:sign, task:act").waitFor();
  await sound(page, "role-form");
  await page.getByRole("button", { name: "Confirm: Add a role" }).click();
  await page.getByText("The role is there.").waitFor();
  await page.getByRole("heading", { name: "2 permissions" }).waitFor();
  await sound(page, "role");
  await page.getByRole("link", { name: "Change the permissions" }).click();
  assert.ok(await page.getByLabel("task:act").isChecked());
  await page.getByLabel("task:act").uncheck();
  await page.getByLabel("task:read").check();
  await page.getByRole("button", { name: "Show what will happen" }).click();
  await page.locator("#preview").getByText("It permits also: task:read").waitFor();
  await page.locator("#preview").getByText("It no longer permits: task:act").waitFor();
  await page.getByRole("button", { name: "Confirm: Change the permissions" }).click();
  await page.getByText("The permissions are changed.").waitFor();
  assert.deepEqual((await api("GET", `/roles/${role}`)).body.permissions, ["plan:sign", "task:read"]);
  await page.getByRole("link", { name: "Remove the role" }).click();
  await page.locator("#preview").getByText("It no longer permits: plan:sign, task:read").waitFor();
  await page.getByRole("button", { name: "Confirm: Remove the role" }).click();
  await page.getByText("The role is removed.").waitFor();
  await sound(page, "roles");
  assert.equal((await api("GET", `/roles/${role}`)).status, 404);
  await page.context().close();
});

test("a person without the permission sees no link, no form, and no roles", async () => {
  const page = await signedIn(browser, "reviewer");
  assert.equal(await page.getByRole("link", { name: "People", exact: true }).count(), 0);
  for (const address of ["/console/people?do=add-person", "/console/people/author?do=rename", "/console/groups/reviewers?do=add-member"]) {
    await page.goto(url + address);
    await page.getByRole("heading", { level: 1 }).waitFor();
    assert.equal(await page.locator("#act").count(), 0, address);
    for (const name of [/^Add/, /^Rename/, /^Remove/, /^Roles/]) assert.equal(await page.getByRole("link", { name }).count(), 0, address);
  }
  assert.deepEqual(await page.getByRole("columnheader").allInnerTexts(), ["Person"]);
  await sound(page, "group-forbidden");
  await page.goto(`${url}/console/roles`);
  await page.getByText("this needs the permission role:read").waitFor();
  // The API refuses a form that is sent nevertheless, and the page shows it.
  await page.goto(`${url}/console/people/author`);
  await page.evaluate(() => {
    const token = document.querySelector("input[name=token]").value;
    const form = document.createElement("form");
    form.method = "post";
    for (const [name, value] of [["token", token], ["do", "no-manager"], ["step", "preview"]]) {
      const field = document.createElement("input");
      [field.name, field.value] = [name, value];
      form.append(field);
    }
    document.body.append(form);
    form.submit();
  });
  await page.getByRole("alert").getByText("directory:write").waitFor();
  assert.equal((await api("GET", "/people/author", undefined, tokenOf("admin"))).status, 200);
  await page.context().close();
});
