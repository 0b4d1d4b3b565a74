// Requirements for every page: it is accessible in every language, and no text overflows in languages with long words.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { after, before, test } from "node:test";
import { accessible, api, entity, launch, lengthened, misfits, overflowing, pictures, profile, signedIn, started, tokenOf, unlengthened, url } from "./support.js";

/** The colour schemes that are checked in a language. Colours do not depend on the language, so the first one covers both. */
const schemesOf = (locale) => (locale === "de" ? ["light", "dark"] : ["light"]);

let browser;
before(async () => (browser = await launch()));
after(() => browser.close());

/** The date in this number of days. */
function inDays(days) {
  return new Date(Date.now() + days * 86_400_000).toISOString().slice(0, 10);
}

/** Every page with content, by name: its reader and its address. */
async function everyPage() {
  const name = entity("every");
  const { id, task } = await started(name, `Plan ${name}`);
  const said = await api("POST", `/instances/${id}/comment`, { comment: "Where is page 3?" }, tokenOf("reviewer"));
  assert.equal(said.status, 200);
  const webhook = await api("POST", "/subscriptions", { url: "https://example.org/hook", types: ["task.*"] });
  assert.equal(webhook.status, 201);
  const instance = `/console/instances/${id}`;
  const reviewer = {
    inbox: "/console?view=all",
    "inbox-empty": "/console?view=all&q=nothing-of-this-name",
    instance,
    decide: `${instance}?action=decide&task=${task}&outcome=REJECT`,
    diagram: `${instance}?tab=diagram`,
    data: `${instance}?tab=data`,
    events: `${instance}?tab=events`,
    related: `${instance}?tab=related`,
    start: "/console/start",
    "start-form": "/console/start?definition=document-approval",
    search: "/console/search?q=plan",
    notifications: "/console/notifications",
    queue: `${instance}?queue=view%3Dall`,
    me: "/console/me",
    "me-absence": `/console/me?from=${inDays(3)}&until=${inDays(5)}`,
    missing: "/console/nowhere",
    forbidden: "/console/audit",
  };
  const admin = {
    "instance-audit": `${instance}?tab=audit`,
    who: `${instance}/who`,
    definitions: "/console/definitions",
    definition: "/console/definitions/document-approval",
    version: "/console/definitions/document-approval/1",
    operations: "/console/operations",
    jobs: "/console/operations/jobs",
    hosts: "/console/operations/hosts",
    refusals: "/console/operations/refusals",
    overdue: "/console/operations/instances/overdue",
    stale: "/console/operations/instances/stale",
    unassignable: "/console/operations/instances/unassignable",
    "dead-letters": "/console/operations/dead-letters",
    webhooks: "/console/operations/webhooks",
    webhook: `/console/operations/webhooks/${webhook.body.id}`,
    "audit-list": "/console/audit",
    compliance: "/console/audit/self-approvals",
    checkpoints: "/console/audit/checkpoints",
    activate: "/console/definitions/document-approval/1?do=activate",
    "events-delivered": `${instance}?tab=events`,
    "data-changes": `${instance}?tab=data`,
    custody: `${instance}/custody`,
    verified: `${instance}?tab=audit&verify=true`,
    people: "/console/people",
    person: "/console/people/reviewer",
    groups: "/console/groups",
    group: "/console/groups/reviewers",
    roles: "/console/roles",
    role: "/console/roles/reviewer",
    upload: "/console/upload",
    migrate: "/console/definitions/document-approval/1/migrate",
    "bulk-operations": "/console/operations/bulk",
  };
  return { reviewer, admin };
}

/** Opens each page as its reader in a language, and calls the function. */
async function eachPage(pages, locale, then) {
  for (const [person, addresses] of Object.entries(pages)) {
    const page = await signedIn(browser, person, { locale });
    // No page changes during the check: the stream gets the response for too many open pages.
    await page.route("**/console/live*", (route) => route.fulfill({ status: 429 }));
    for (const [what, address] of Object.entries(addresses)) {
      await page.goto(url + address);
      assert.equal(await page.locator("html").getAttribute("lang"), locale, what);
      await then(page, what);
    }
    assert.deepEqual(page.context().complaints, [], locale);
    await page.context().close();
  }
}

test("every page is accessible and fits in every language", async () => {
  const [pages, found] = [await everyPage(), []];
  for (const locale of ["de", "th"]) {
    await eachPage(pages, locale, async (page, what) => {
      await accessible(page, `${what} in ${locale}`);
      found.push(...(await misfits(page, `${what} in ${locale}`)));
      await pictures(page, `${what}-${locale}`, schemesOf(locale));
    });
  }
  assert.deepEqual(found, []);
});

test("every page without a session is accessible and fits in every language", async (t) => {
  // A form of another site, whose response is a page of its own.
  const other = createServer((_, response) => {
    response.setHeader("content-type", "text/html");
    response.end(`<form method=post action="${url}/console/sign-in/demo"><button>go</button></form>`);
  });
  await new Promise((resolve) => other.listen(0, "127.0.0.1", resolve));
  t.after(() => other.close().closeAllConnections());
  const found = [];
  for (const locale of ["en", "de", "th"]) {
    const context = await profile(browser, { locale, origins: [url, "http://localhost"] });
    const page = await context.newPage();
    const seen = async (name) => {
      assert.equal(await page.locator("html").getAttribute("lang"), locale, name);
      await accessible(page, `${name} in ${locale}`);
      found.push(...(await misfits(page, `${name} in ${locale}`)));
      await pictures(page, `${name}-${locale}`, schemesOf(locale));
    };
    // Any requested page shows the sign-in.
    await page.goto(`${url}/console/audit`);
    await page.locator("button[name=person]").first().waitFor();
    await seen("sign-in");
    await page.locator("summary").click();
    await page.locator("input[name=bearer]").fill("nonsense");
    await page.locator("input[name=bearer]").press("Enter");
    await page.getByRole("alert").waitFor();
    await seen("sign-in-refused-token");
    assert.equal((await page.goto(`${url}/console/nowhere`)).status(), 404);
    await seen("missing-signed-out");
    await page.goto(`http://localhost:${other.address().port}/`);
    const [answer] = await Promise.all([page.waitForResponse(`${url}/console/sign-in/demo`), page.getByRole("button").click()]);
    assert.equal(answer.status(), 403);
    await page.locator("main h1").waitFor();
    await seen("foreign-form");
    assert.deepEqual(context.complaints, [], locale);
    await context.close();
  }
  assert.deepEqual(found, []);
});

test("no text overflows in a language with long words", async () => {
  const found = [];
  await eachPage(await everyPage(), "en", async (page, what) => {
    await page.evaluate(lengthened);
    assert.match(await page.locator("footer").textContent(), /ö/, what);
    found.push(...(await misfits(page, what)));
    await pictures(page, `${what}-pseudo`, schemesOf("pseudo"));
    assert.equal(await page.evaluate(unlengthened), 0, what);
  });
  assert.deepEqual(found, []);
});

test("the check for overflow finds what overflows", async () => {
  const page = await signedIn(browser, "reviewer");
  await page.goto(`${url}/console/me`);
  await page.evaluate(() => (document.querySelector("h1").textContent = "x".repeat(400)));
  await page.evaluate(() => (document.querySelector("h1").style.overflowWrap = "normal"));
  assert.notDeepEqual(await page.evaluate(overflowing), []);
  await page.context().close();
});

test("the check of colours finds a poor contrast of the dark scheme", async () => {
  const page = await signedIn(browser, "reviewer");
  await page.goto(`${url}/console/me`);
  await accessible(page, "as it is");
  await page.evaluate(() => {
    const sheet = new CSSStyleSheet();
    sheet.replaceSync("@media (prefers-color-scheme: dark) { main * { color: #777 !important; background: #666 !important } }");
    document.adoptedStyleSheets = [sheet];
  });
  await assert.rejects(accessible(page, "changed"), /color-contrast/);
  await page.context().close();
});
