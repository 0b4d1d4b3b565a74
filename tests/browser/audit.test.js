// What an auditor does: find what happened, by actor, type and time.
import { after, before, test } from "node:test";
import { entity, launch, signedIn, sound, started, url } from "./support.js";

let browser;
before(async () => (browser = await launch()));
after(() => browser.close());

test("the audit is searched by actor, type and time, and leads to the instance", async () => {
  const name = entity("audited");
  const { id } = await started(name, `Plan ${name}`);
  const page = await signedIn(browser, "admin");
  const address = `${url}/console/audit?actor=author&type=FLOW_STARTED`;
  const entry = page.locator("tr", { hasText: id });
  // An entry is in the list once a checkpoint covers it.
  for (let tries = 0; tries < 200 && !(await entry.count()); tries += 1) await page.goto(address);
  await entry.getByText("FLOW_STARTED").waitFor();
  await sound(page, "audit");
  await page.getByLabel("Done by").fill("nobody-of-this-id");
  await page.getByRole("button", { name: "Apply" }).click();
  await page.getByText("No entry matches.").waitFor();
  await page.goto(address);
  await entry.getByRole("link", { name: "Instance" }).click();
  await page.getByRole("heading", { name: `Plan ${name}` }).waitFor();
  await page.context().close();
});

test("who may not read the audit has no link to it, and reads why", async () => {
  const page = await signedIn(browser, "reviewer");
  await page.goto(`${url}/console/audit`);
  await page.getByText("this needs the permission audit:read").waitFor();
  await sound(page, "audit-forbidden");
  await page.context().close();
});
