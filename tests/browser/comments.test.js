// Comments that mention people, and the display names in the timeline.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { api, entity, launch, signedIn, sound, started, tokenOf, url } from "./support.js";

let browser;
before(async () => (browser = await launch()));
after(() => browser.close());

test("a comment mentions people by a picker, without scripts too, and shows their names", async () => {
  const { id } = await started(entity("mention"), "Plan");
  const page = await signedIn(browser, "author", { javaScriptEnabled: false });
  await page.goto(`${url}/console/instances/${id}?action=comment`);
  const people = page.getByRole("group", { name: /^Mention people/ }).getByLabel("Person to mention");
  assert.ok((await page.locator("#people option[value=reviewer2]").count()) === 1, "people are proposed");
  await page.getByRole("textbox", { name: /^Comment/ }).fill("Please <i>look</i>");
  await people.nth(0).fill("reviewer2");
  await people.nth(1).fill('no"body<script>');
  await page.getByRole("button", { name: "Show what will happen" }).click();
  await page.getByRole("alert").waitFor();
  assert.equal(await people.nth(1).getAttribute("aria-invalid"), "true", "the unknown id");
  assert.equal(await people.nth(0).getAttribute("aria-invalid"), null);
  assert.equal(await people.nth(1).inputValue(), 'no"body<script>');
  await people.nth(1).fill("reviewer");
  await page.getByRole("button", { name: "Show what will happen" }).click();
  assert.equal(await people.count(), 4, "there is room for more");
  await page.getByRole("button", { name: "Confirm: Comment" }).click();
  await page.getByRole("region", { name: "Comments" }).getByText(/^Ada Author to R\S+ Reviewer, R\S+ Reviewer/).waitFor();
  const comments = (await api("GET", `/instances/${id}/comments`)).body.data;
  assert.deepEqual(comments.map((one) => one.mentions.toSorted()), [["reviewer", "reviewer2"]]);
  await page.context().close();
});

test("the picker is accessible, and who is mentioned is notified", async () => {
  const { id } = await started(entity("told"), "Plan");
  const page = await signedIn(browser, "author");
  await page.goto(`${url}/console/instances/${id}?action=comment`);
  await page.getByRole("textbox", { name: /^Comment/ }).focus();
  await page.keyboard.type("By keys");
  await page.keyboard.press("Tab");
  await page.keyboard.type("approver");
  await sound(page, "mention");
  await page.keyboard.press("Control+Enter");
  await page.getByRole("button", { name: "Confirm: Comment" }).click();
  await page.getByText("Your comment is recorded.").waitFor();
  await sound(page, "mentioned");
  const deadline = Date.now() + 10_000;
  let told = [];
  while (told.length === 0 && Date.now() < deadline) {
    const found = await api("GET", "/notifications?kind=MENTION", undefined, tokenOf("approver"));
    told = found.body.data.filter((one) => one.instanceId === id);
  }
  assert.equal(told.length, 1);
  await page.context().close();
});
