// A decision is undone by the flow: the manager may take the approval of a purchase back until finance decides.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { api, entity, file, launch, published, sentTwice, signedIn, sound, tokenOf, url } from "./support.js";

const FLOW = "purchase-approval";
const FINANCE = ["reviewer", "fay", "finn", "flora"];

let browser;
/** The purchases of these tests. Other tests have no tasks of them. */
const purchases = [];
before(async () => {
  browser = await launch();
  for (const person of FINANCE) if (person !== "reviewer") assert.equal((await api("PUT", `/people/${person}`, { name: person })).status, 200);
  const config = { finance: FINANCE, financeNeeded: 2, cfoGroup: "approvers", fallbackGroup: "approvers" };
  const version = await published(FLOW, file("WRKFLW_TEST_PURCHASE"), config);
  assert.equal((await api("POST", `/definitions/${FLOW}/versions/${version}/activate`, { force: true })).status, 200);
  assert.equal((await api("PUT", "/people/author/manager", { manager: "approver" })).status, 200);
});
after(async () => {
  for (const id of purchases) await api("POST", `/instances/${id}/cancel`, { reason: "the tests are over" });
  await api("DELETE", "/people/author/manager");
  await browser.close();
});

/** A purchase that its manager has just approved, on the manager's page. */
async function approved() {
  const data = { amount: 100, currency: "EUR", supplier: "Desks Ltd" };
  const body = { definitionKey: FLOW, entityType: "purchase", entityId: entity("purchase"), data };
  const started = await api("POST", "/instances", body, tokenOf("author"));
  assert.equal(started.status, 201, JSON.stringify(started.body));
  const { id } = started.body.instance;
  purchases.push(id);
  const page = await signedIn(browser, "approver");
  await page.goto(`${url}/console/instances/${id}`);
  await page.getByRole("link", { name: "APPROVE", exact: true }).click();
  await page.getByRole("button", { name: "Confirm: APPROVE" }).click();
  await page.getByText("Your decision is recorded.").waitFor();
  return { id, page };
}

test("a decision is undone by the flow's way back, and the task is offered again", async () => {
  const { page } = await approved();
  const undo = page.getByRole("status").getByRole("link", { name: "Take the approval back" });
  await undo.waitFor();
  await sound(page, "undo");
  await undo.click();
  await page.locator("#preview").getByText("Approval by the manager").waitFor();
  await page.getByRole("button", { name: /^Confirm/ }).click();
  const active = page.locator("li[aria-current=step]");
  await active.getByRole("heading", { name: "Approval by the manager" }).waitFor();
  // The decision stays in the history, and the task can be decided again.
  await page.getByText("Amy Approver: APPROVE").waitFor();
  await page.getByRole("link", { name: "REJECT" }).waitFor();
  await page.context().close();
});

test("a signal whose input is no JSON is refused, and what was written stays", async () => {
  const { id, page } = await approved();
  await page.getByRole("status").getByRole("link", { name: "Take the approval back" }).click();
  await page.locator("#preview").waitFor();
  const field = page.locator("#act").getByLabel("JSON");
  await field.fill(`{"iban": "DE1"`);
  await page.getByRole("button", { name: /^Confirm/ }).click();
  await page.getByRole("alert").waitFor();
  assert.equal(await field.inputValue(), `{"iban": "DE1"`);
  assert.equal(await field.getAttribute("aria-invalid"), "true");
  const { body } = await api("GET", `/instances/${id}`);
  assert.ok(JSON.stringify(body.states[0].tasks).includes('"reviewer"'), "finance has it still");
  await page.context().close();
});

test("a signal that is confirmed twice is sent once", async () => {
  const { id, page } = await approved();
  await page.getByRole("status").getByRole("link", { name: "Take the approval back" }).click();
  await page.locator("#preview").waitFor();
  assert.deepEqual(await sentTwice(page), ["opaqueredirect", "opaqueredirect"]);
  const signals = async () => (await api("GET", `/instances/${id}/signals`)).body.data.length;
  assert.equal(await signals(), 1);
  // With another input, the signal was not sent before.
  await page.locator("#act").getByLabel("JSON").fill(`{"iban": "DE1"}`);
  assert.deepEqual(await sentTwice(page), ["basic", "basic"]);
  assert.equal(await signals(), 1);
  // A third signal comes from a form that was not sent before, and is too late.
  const other = await approved();
  await other.page.getByRole("status").getByRole("link", { name: "Take the approval back" }).click();
  await other.page.locator("#preview").waitFor();
  assert.equal((await api("POST", `/instances/${other.id}/signals/TAKE_BACK`, {}, tokenOf("approver"))).status, 200);
  await other.page.getByRole("button", { name: /^Confirm/ }).click();
  const said = await other.page.getByRole("alert").innerText();
  assert.notEqual(said.trim(), "");
  assert.doesNotMatch(said, /\/v1\//, "no route is named");
  await page.context().close();
  await other.page.context().close();
});

test("after somebody else has acted, no way back is offered", async () => {
  const { id, page } = await approved();
  const { body } = await api("GET", `/instances/${id}`);
  const [task] = body.states[0].tasks.filter((one) => JSON.stringify(one.candidates).includes('"reviewer"'));
  const decision = { outcome: "APPROVE", input: { costCentre: "4711" } };
  assert.equal((await api("POST", `/tasks/${task.id}/decide`, decision, tokenOf("reviewer"))).status, 200);
  // The same address again: the page just after the decision.
  await page.reload();
  await page.getByText("Your decision is recorded.").waitFor();
  assert.equal(await page.getByRole("status").getByRole("link", { name: "Take the approval back" }).count(), 0);
  await page.context().close();
});
