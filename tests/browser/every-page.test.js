// What holds for every page: accessible in every language, and no text that overflows, however long a language makes it.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { accessible, api, entity, launch, pictures, signedIn, started, tokenOf, url } from "./support.js";

let browser;
before(async () => (browser = await launch()));
after(() => browser.close());

/** A narrow phone and a common notebook, in CSS pixels. */
const WIDTHS = [360, 1280];

/** A day so many days from now. */
function inDays(days) {
  return new Date(Date.now() + days * 86_400_000).toISOString().slice(0, 10);
}

/** Every page with content, by name: who looks at it, and where. */
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
    verified: `${instance}?tab=audit&verify=1`,
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

/** The texts of a page as a language would have them whose words are half as long again, with marks above and below the letters. */
function lengthened() {
  const marked = { a: "ą̊", e: "ę̈", i: "ï", o: "ǫ̈", u: "ų̈", A: "Å", E: "Ë", I: "Ï", O: "Ö", U: "Ü", n: "ñ", s: "š", g: "ĝ", y: "ÿ" };
  // A word between other signs than letters and digits; ids and digests are the same in every language.
  const word = /(?<![\p{L}\p{N}_-])\p{L}{2,}(?![\p{L}\p{N}_-])/gu;
  const longer = (text) =>
    text.replace(word, (one) => [...one].map((letter) => marked[letter] ?? letter).join("") + "ö".repeat(Math.ceil(one.length / 2)));
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    if (!texts.currentNode.parentElement.closest("script, style, pre, code, kbd, svg")) texts.currentNode.data = longer(texts.currentNode.data);
  }
  for (const field of document.querySelectorAll("[placeholder]")) field.placeholder = longer(field.placeholder);
}

/** How many words of the page are as they were. */
function unlengthened() {
  const texts = [...document.querySelectorAll("main h1, main h2, main button, main .badge, main label")];
  return texts.filter((one) => /(?<![\p{L}\p{N}_-])\p{L}{2,}(?<!ö)(?![\p{L}\p{N}\p{M}_-])/u.test(one.textContent)).length;
}

/** The elements whose text does not fit into them, or that stick out of the window. */
function overflowing() {
  // What only a screen reader reads.
  const clipped = (element) => element && (getComputedStyle(element).clipPath !== "none" || clipped(element.parentElement));
  const scrolls = (element) => ["auto", "scroll"].includes(getComputedStyle(element).overflowX);
  const within = (element) => element && (scrolls(element) || within(element.parentElement));
  const found = [];
  for (const element of document.body.querySelectorAll("*")) {
    const box = element.getBoundingClientRect();
    // The last is shown when it gets the focus.
    const unseen = clipped(element) || !element.checkVisibility({ visibilityProperty: true }) || element.closest("svg, .skip");
    if (unseen) continue;
    const spills = element.clientWidth > 0 && element.scrollWidth > element.clientWidth + 1 && !scrolls(element) && !["INPUT", "TEXTAREA", "SELECT"].includes(element.tagName);
    const sticksOut = (box.right > innerWidth + 1 || box.left < -1) && !within(element.parentElement);
    if (spills || sticksOut) found.push(`${element.tagName}.${element.className} ${element.scrollWidth}/${element.clientWidth}: ${element.textContent.trim().slice(0, 60)}`);
  }
  return found;
}

/** What overflows in this page, at each width. */
async function misfits(page, what) {
  const size = page.viewportSize();
  const found = [];
  for (const width of WIDTHS) {
    await page.setViewportSize({ width, height: 740 });
    for (const one of await page.evaluate(overflowing)) found.push(`${what} at ${width} px: ${one}`);
  }
  await page.setViewportSize(size);
  return found;
}

/** Opens each page as its reader in a language, and does this there. */
async function eachPage(pages, locale, then) {
  for (const [person, addresses] of Object.entries(pages)) {
    const page = await signedIn(browser, person, { locale });
    // No page changes while it is looked at: this is the answer where too many pages are open.
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
      await pictures(page, `${what}-${locale}`);
    });
  }
  assert.deepEqual(found, []);
});

test("no text overflows in a language with long words", async () => {
  const found = [];
  await eachPage(await everyPage(), "en", async (page, what) => {
    await page.evaluate(lengthened);
    assert.match(await page.locator("footer").textContent(), /ö/, what);
    found.push(...(await misfits(page, what)));
    await pictures(page, `${what}-pseudo`);
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
