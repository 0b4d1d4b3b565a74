// Working through a view by keyboard: after a decision the next task opens. Unsent comments are kept.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { api, entity, launch, signedIn, sound, started, tokenOf, url } from "./support.js";

let browser;
before(async () => (browser = await launch()));
after(() => browser.close());

async function several(name, letters) {
  const all = [];
  for (const one of letters) all.push(await started(`${name}-${one}`, `${name} ${one}`));
  return all;
}

test("a view is worked through by keys alone: after a decision the next task opens", async () => {
  const name = entity("queue");
  await several(name, "ABC");
  const page = await signedIn(browser, "reviewer");
  await page.goto(`${url}/console?view=available&q=${name}`);
  await page.keyboard.press("j");
  await page.keyboard.press("x");
  assert.ok(await page.getByLabel(`Select: ${name} A`).isChecked());
  await page.keyboard.press("x");
  await page.keyboard.press("o");
  await page.getByRole("heading", { name: `${name} A` }).waitFor();
  await page.getByText("Task 1 / 3").waitFor();
  await sound(page, "queue");
  await page.keyboard.press("j");
  await page.getByRole("heading", { name: `${name} B` }).waitFor();
  await page.keyboard.press("k");
  await page.getByRole("heading", { name: `${name} A` }).waitFor();
  for (const [one, next] of ["AB", "BC"]) {
    await page.getByRole("heading", { name: `${name} ${one}` }).waitFor();
    await page.keyboard.press("a");
    await page.getByRole("button", { name: "Confirm: APPROVE" }).waitFor();
    await page.keyboard.press("c");
    await page.keyboard.type("jk");
    await page.keyboard.press("Control+Enter");
    await page.getByText("Your decision is recorded. This is the next task.").waitFor();
    await page.getByRole("heading", { name: `${name} ${next}` }).waitFor();
  }
  // After the last task, the list says that nothing is left.
  await page.keyboard.press("r");
  await page.getByRole("button", { name: "Show what will happen" }).waitFor();
  await page.keyboard.press("c");
  await page.keyboard.type("Too dear");
  await page.keyboard.press("Control+Enter");
  await page.getByRole("button", { name: "Confirm: REJECT" }).waitFor();
  await page.keyboard.press("Control+Enter");
  await page.getByText("No task of this view is left.").waitFor();
  assert.equal(new URL(page.url()).searchParams.get("q"), name);
  assert.deepEqual(page.context().complaints, []);
  await page.context().close();
});

test("without scripts a view is worked through by links, and a colleague's work is skipped", async () => {
  const name = entity("links");
  const all = await several(name, "ABC");
  const page = await signedIn(browser, "reviewer", { javaScriptEnabled: false });
  await page.goto(`${url}/console?view=available&q=${name}`);
  await page.getByRole("link", { name: "Work through these" }).click();
  await page.getByRole("link", { name: "APPROVE" }).click();
  await api("POST", `/tasks/${all[1].task}/decide`, { outcome: "APPROVE" }, tokenOf("reviewer2"));
  await page.getByRole("button", { name: "Confirm: APPROVE" }).click();
  await page.getByRole("heading", { name: `${name} C` }).waitFor();
  await page.getByText("Task 1 / 1").waitFor();
  await page.getByRole("link", { name: "Back to the list" }).click();
  assert.equal(await page.locator(".row").count(), 1);
  // Whatever list the address names, the links stay in the console.
  await page.goto(`${url}/console/instances/${all[2].id}?queue=${encodeURIComponent("//evil.example/?view=available\"><script>")}`);
  const leave = await page.getByRole("link", { name: "Back to the list" }).getAttribute("href");
  assert.match(leave, /^\/console\?/);
  await page.context().close();
});

test("a live update keeps the queue and the focus", async () => {
  const name = entity("kept");
  const [{ id, task }] = await several(name, "AB");
  const page = await signedIn(browser, "reviewer");
  const stream = page.waitForResponse((answer) => answer.url().includes("/console/live"));
  await page.goto(`${url}/console/instances/${id}?queue=${encodeURIComponent(`view=available&q=${name}`)}`);
  await stream;
  const approve = page.getByRole("link", { name: "APPROVE" });
  await approve.focus();
  assert.equal((await api("POST", `/tasks/${task}/claim`, {}, tokenOf("reviewer"))).status, 200);
  await page.locator("#banner").getByText("Yours").waitFor();
  assert.ok(await approve.evaluate((link) => link === document.activeElement), "the focus stays");
  assert.match(await approve.getAttribute("href"), /queue=/);
  await page.context().close();
});

test("a comment is kept while it is written, for its writer alone, until the decision", async () => {
  const name = entity("draft");
  const { id, task } = await started(name, `Plan ${name}`);
  const address = `${url}/console/instances/${id}?action=decide&task=${task}&outcome=REJECT`;
  const text = 'Half a <b>sentence</b>\nand "more"';
  const page = await signedIn(browser, "reviewer");
  await page.goto(address);
  const comment = page.getByRole("textbox", { name: /^Comment/ });
  await comment.fill(text);
  await page.getByRole("status").getByText("Draft saved").waitFor();
  await sound(page, "draft");
  await page.goto(`${url}/console`);
  await page.goto(address);
  assert.equal(await comment.inputValue(), text);
  const colleague = await signedIn(browser, "reviewer2");
  await colleague.goto(address);
  assert.equal(await colleague.getByRole("textbox", { name: /^Comment/ }).inputValue(), "");
  await colleague.context().close();
  await page.getByRole("button", { name: "Show what will happen" }).click();
  await page.getByRole("button", { name: "Confirm: REJECT" }).click();
  await page.getByText("Your decision is recorded.").waitFor();
  assert.equal((await api("GET", `/tasks/${task}/draft`, undefined, tokenOf("reviewer"))).status, 404);
  assert.deepEqual(page.context().complaints, []);
  await page.context().close();
});

test("without scripts a draft is kept by a button, and by the preview", async () => {
  const { id, task } = await started(entity("button"), "Plan");
  const address = `${url}/console/instances/${id}?action=decide&task=${task}&outcome=REJECT`;
  const page = await signedIn(browser, "reviewer", { javaScriptEnabled: false });
  const comment = page.getByRole("textbox", { name: /^Comment/ });
  await page.goto(address);
  await comment.fill("By the button");
  await page.getByRole("button", { name: "Save draft" }).click();
  assert.equal(await comment.inputValue(), "By the button");
  await comment.fill("By the preview");
  await page.getByRole("button", { name: "Show what will happen" }).click();
  await page.locator("#preview").waitFor();
  await page.goto(address);
  assert.equal(await comment.inputValue(), "By the preview");
  await page.context().close();
});

test("a draft that cannot be saved shows the reason, and its text is kept", async () => {
  const { id, task } = await started(entity("late"), "Plan");
  const page = await signedIn(browser, "reviewer");
  await page.goto(`${url}/console/instances/${id}?action=decide&task=${task}&outcome=REJECT`);
  await api("POST", `/tasks/${task}/decide`, { outcome: "APPROVE" }, tokenOf("reviewer2"));
  const comment = page.getByRole("textbox", { name: /^Comment/ });
  await comment.fill("Too late");
  await page.getByRole("status").getByText("The draft is not saved").waitFor();
  assert.equal(await comment.inputValue(), "Too late");
  await page.context().close();
});
