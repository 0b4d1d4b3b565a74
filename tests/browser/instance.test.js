// What the pages of an instance show besides the work: the way on the diagram, and what each step changed.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { api, entity, launch, signedIn, sound, started, tokenOf, url } from "./support.js";

let browser;
before(async () => (browser = await launch()));
after(() => browser.close());

test("each entered state of the diagram leads to its step, also by keyboard and without script", async () => {
  const { id, task } = await started(entity("mapped"), "Plan");
  assert.equal((await api("POST", `/tasks/${task}/decide`, { outcome: "APPROVE" }, tokenOf("reviewer"))).status, 200);
  const page = await signedIn(browser, "author", { javaScriptEnabled: false });
  await page.goto(`${url}/console/instances/${id}?tab=diagram`);
  const areas = page.locator("map area");
  assert.deepEqual(await areas.evaluateAll((all) => all.map((one) => one.alt)), ["To the step: First review", "To the step: Final review"]);
  const [left, top, right, bottom] = (await areas.first().getAttribute("coords")).split(",").map(Number);
  await page.locator(".diagram img").click({ position: { x: (left + right) / 2, y: (top + bottom) / 2 } });
  await page.waitForURL(/tab=timeline#step-/);
  await page.locator(".step:target").getByText("First review").waitFor();
  await page.goBack();
  await areas.last().focus();
  await page.keyboard.press("Enter");
  await page.locator(".step:target").getByText("Final review").waitFor();
  await page.context().close();
  const scripted = await signedIn(browser, "author");
  await scripted.goto(`${url}/console/instances/${id}?tab=diagram`);
  await scripted.emulateMedia({ colorScheme: "dark" });
  // The drawing has a ground of its own, so nothing shines around it.
  const style = await scripted.locator(".diagram img").evaluate((image) => [getComputedStyle(image).backgroundColor, getComputedStyle(image).padding]);
  assert.deepEqual(style, ["rgba(0, 0, 0, 0)", "0px"]);
  await sound(scripted, "diagram-map");
  await scripted.context().close();
});

test("the data show what each step changed, and who did it", async () => {
  const hostile = `"><img src=x onerror=alert(1)>`;
  const { id } = await started(entity("changed"), hostile);
  const page = await signedIn(browser, "author");
  await page.goto(`${url}/console/instances/${id}?tab=data`);
  const row = page.getByRole("table", { name: "What each step changed" }).locator("tbody tr").first();
  await row.locator("td").nth(1).getByText("Start").waitFor();
  await row.getByText(`/title = ${JSON.stringify(hostile)}`).waitFor();
  assert.equal(await page.locator("main img").count(), 0);
  await sound(page, "data-changes");
  // A page has fifty events; nothing behind them is left out in silence.
  assert.equal(await page.getByRole("link", { name: "Next page" }).count(), 0);
  for (let said = 0; said < 50; said++) await api("POST", `/instances/${id}/comment`, { comment: `${said}` }, tokenOf("author"));
  await page.reload();
  await page.getByRole("link", { name: "Next page" }).click();
  await page.getByText("None of these events changed the data.").waitFor();
  assert.match(page.url(), /tab=data&after=/);
  await page.context().close();
});
