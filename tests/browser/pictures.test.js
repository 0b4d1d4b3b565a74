// The pictures of the README: an inbox, an instance, and its way on the diagram. With UPDATE=1 they are written to docs/images; run
// this file alone for that, so that nothing else is in the inbox.
import assert from "node:assert/strict";
import { mkdirSync, readFileSync, statSync } from "node:fs";
import path from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { api, launch, setting, signedIn, started, tokenOf, url } from "./support.js";

const BYTES_MAX = 150_000;
const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "../..");
const committed = path.join(root, "docs/images");
const folder = process.env.UPDATE ? committed : path.join(setting("WRKFLW_TEST_SCREENSHOTS"), "readme");
const NAMES = ["inbox", "instance", "diagram"];

let browser;
before(async () => {
  mkdirSync(folder, { recursive: true });
  browser = await launch();
});
const shown = [];
after(async () => {
  for (const id of shown) await api("POST", `/instances/${id}/cancel`, { reason: "the tests are over" });
  await browser.close();
});

async function decided(task, person, outcome, comment) {
  const { status, body } = await api("POST", `/tasks/${task}/decide`, { outcome, comment }, tokenOf(person));
  assert.equal(status, 200, JSON.stringify(body));
  return body.instance.states[0].tasks[0]?.id;
}

/** A document that was sent back once and waits for its final review. */
async function reviewed() {
  const { id, task } = await started("2027-014", "Travel policy 2027");
  shown.push(id);
  const rework = await decided(task, "reviewer", "REJECT", "Please name who approves flights.");
  const again = await decided(rework, "author", "SUBMIT", "Added to section 3.");
  await decided(again, "reviewer", "APPROVE", "Clear and complete.");
  return id;
}

/** A picture of a page, or of a part of it. */
async function picture(shot, name) {
  const file = path.join(folder, `${name}.png`);
  await shot.screenshot({ path: file, animations: "disabled" });
  assert.ok(statSync(file).size < BYTES_MAX, `${name}.png has ${statSync(file).size} bytes`);
}

test("the pictures of the README show an inbox, an instance and its way, and are small", async () => {
  const titles = ["Supplier contract for print", "Safety concept for hall 4", "Data protection assessment", "Training budget", "Press release on the new site"];
  for (const [number, title] of titles.entries()) shown.push((await started(`2027-02${number}`, title)).id);
  const { id: leased, task } = await started("2027-030", "Office lease, second floor");
  shown.push(leased);
  assert.equal((await api("POST", `/tasks/${task}/claim`, {}, tokenOf("reviewer2"))).status, 200);
  const id = await reviewed();
  const size = { viewport: { width: 1100, height: 740 }, deviceScaleFactor: 1.25 };
  const reviewer = await signedIn(browser, "reviewer", size);
  await reviewer.goto(`${url}/console?view=available`);
  await reviewer.locator(".row").first().waitFor();
  await picture(reviewer, "inbox");
  await reviewer.context().close();

  const approver = await signedIn(browser, "approver", { ...size, viewport: { width: 1100, height: 900 } });
  await approver.goto(`${url}/console/instances/${id}`);
  await approver.locator("#timeline .step").last().waitFor();
  await picture(approver, "instance");
  await approver.goto(`${url}/console/instances/${id}?tab=diagram`);
  const drawn = approver.locator(".diagram svg");
  await picture(drawn, "diagram");
  await approver.context().close();
});

test("the README has the pictures that are there", () => {
  const readme = readFileSync(path.join(root, "README.md"), "utf8");
  for (const name of NAMES) {
    assert.ok(readme.includes(`(docs/images/${name}.png)`), name);
    assert.ok(statSync(path.join(committed, `${name}.png`)).size < BYTES_MAX, name);
  }
});
