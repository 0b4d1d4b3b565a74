// A reviewer's day: find work, read it, decide it. Also without scripts, and concurrently with a colleague.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { api, entity, launch, sentTwice, signedIn, sound, started, tokenOf, url } from "./support.js";

let browser;
before(async () => (browser = await launch()));
after(() => browser.close());

test("an empty inbox says why, and what the reader may claim instead", async () => {
  const page = await signedIn(browser, "outsider");
  await page.getByText("Nothing waits for you.").waitFor();
  await page.getByRole("link", { name: "Mine" }).click();
  await page.getByText("You hold no task.").waitFor();
  await page.getByRole("link", { name: "See what you may claim" }).waitFor();
  await sound(page, "inbox-empty");
  await page.context().close();
});

test("filters, order and search are in the address, and a page has a next one", async () => {
  const name = entity("many");
  for (let i = 0; i < 26; i += 1) await started(`${name}-${i}`, `Budget ${name} ${i}`);
  const page = await signedIn(browser, "reviewer");
  await page.goto(`${url}/console?view=available`);
  await page.getByRole("search", { name: "Filter" }).getByLabel("Search").fill(name);
  await page.getByRole("button", { name: "Apply" }).click();
  assert.match(page.url(), new RegExp(`q=${name}`));
  await page.getByText("More than 25 tasks").waitFor();
  assert.equal(await page.locator(".row").count(), 25);
  await sound(page, "inbox");
  await page.getByRole("link", { name: "Next page" }).click();
  assert.equal(await page.locator(".row").count(), 1);
  await page.getByRole("link", { name: "My groups" }).click();
  assert.match(page.url(), new RegExp(`q=${name}`), "the search stays when the view changes");
  await page.goto(`${url}/console?view=available&q=${name}-nothing`);
  await page.getByText("No task of this view matches the filter.").waitFor();
  await page.context().close();
});

test("a reviewer claims, sees what a decision will do, and decides", async () => {
  const name = entity("plan");
  await started(name, `Plan ${name}`);
  const page = await signedIn(browser, "reviewer");
  await page.goto(`${url}/console?q=${name}`);
  await page.goto(`${url}/console?view=available&q=${name}`);
  await page.getByRole("button", { name: `Claim: Plan ${name}` }).click();
  await page.getByRole("heading", { name: `Plan ${name}` }).waitFor();
  await page.getByText("Yours").waitFor();
  await sound(page, "instance");

  // Everything that a reviewer needs comes first on the page, and refused actions show the reason.
  const order = await page.evaluate(() => {
    const banner = document.querySelector("#banner");
    const timeline = document.querySelector("#timeline");
    return Boolean(banner.compareDocumentPosition(timeline) & Node.DOCUMENT_POSITION_FOLLOWING);
  });
  assert.ok(order, "the banner comes first");
  await page.getByText("What you may not do now, and why").click();
  await page.getByText("this needs the permission task:assign").first().waitFor();

  await page.getByRole("link", { name: "APPROVE" }).click();
  const preview = page.locator("#preview");
  await preview.getByText("Final review").waitFor();
  await preview.getByText("Approvers").waitFor();
  assert.match(await preview.textContent(), /Approvers/, "by its name, not by its id");
  await sound(page, "decide");
  await page.getByLabel("Comment").fill("Well done");
  await page.getByRole("button", { name: "Confirm: APPROVE" }).click();
  await page.getByText("Your decision is recorded.").waitFor();
  const active = page.locator("li[aria-current=step]");
  await active.getByRole("heading", { name: "Final review" }).waitFor();
  await page.getByText("Rob Reviewer: APPROVE").waitFor();
  await page.locator("blockquote", { hasText: "Well done" }).waitFor();

  // Only the active step is indigo and pulses. It does not pulse for readers who prefer reduced motion.
  await page.emulateMedia({ reducedMotion: "no-preference" });
  const look = (selector) =>
    page.locator(selector).first().evaluate((step) => {
      const style = getComputedStyle(step, "::before");
      return [style.backgroundColor, style.animationName];
    });
  assert.deepEqual(await look(".step.active"), ["rgb(99, 102, 241)", "pulse"]);
  assert.equal((await look(".step.done"))[1], "none");
  await page.emulateMedia({ reducedMotion: "reduce" });
  assert.equal((await look(".step.active"))[1], "none");
  await page.context().close();
});

test("a decision that needs a comment says so at the field, and keeps the text", async () => {
  const name = entity("reject");
  const { id } = await started(name, `Plan ${name}`);
  const page = await signedIn(browser, "reviewer");
  await page.goto(`${url}/console/instances/${id}`);
  await page.getByRole("link", { name: "REJECT" }).click();
  const key = () => page.locator("#act input[name=key]").inputValue();
  const first = await key();
  await page.evaluate(() => document.querySelectorAll("[required]").forEach((field) => field.removeAttribute("required")));
  await page.getByRole("button", { name: "Show what will happen" }).click();
  await page.getByRole("alert").getByText("Some fields need another value.").waitFor();
  await page.getByText("This is required.").waitFor();
  await sound(page, "refused");
  await page.getByLabel("Comment").fill("The sum is wrong");
  await page.getByRole("button", { name: "Show what will happen" }).click();
  await page.locator("#preview").getByText("Rework").waitFor();
  assert.equal(await page.getByLabel("Comment").inputValue(), "The sum is wrong");
  assert.equal(await key(), first, "a form that is sent repeatedly stays one form");
  await page.getByRole("button", { name: "Confirm: REJECT" }).click();
  await page.getByText("Your decision is recorded.").waitFor();
  await page.context().close();
});

test("a comment on an instance needs words, and stands below the timeline", async () => {
  const name = entity("said");
  const { id } = await started(name, `Plan ${name}`);
  const page = await signedIn(browser, "author");
  await page.goto(`${url}/console/instances/${id}`);
  await page.getByRole("link", { name: "Comment", exact: true }).click();
  await page.getByRole("textbox", { name: /^Comment/ }).fill("The sum is <b>final</b>");
  await page.getByRole("button", { name: "Show what will happen" }).click();
  await page.getByRole("button", { name: "Confirm: Comment" }).click();
  await page.getByText("Your comment is recorded.").waitFor();
  await page.getByRole("region", { name: "Comments" }).getByText("The sum is <b>final</b>").waitFor();
  await sound(page, "comment");
  await page.context().close();
});

test("of two reviewers one wins, and the other sees who decided what, and what is open now", async () => {
  const name = entity("race");
  const { id } = await started(name, `Plan ${name}`);
  const [first, second] = [await signedIn(browser, "reviewer"), await signedIn(browser, "reviewer2")];
  for (const page of [first, second]) {
    await page.goto(`${url}/console/instances/${id}`);
    await page.getByRole("link", { name: "APPROVE" }).click();
  }
  await first.getByRole("button", { name: "Confirm: APPROVE" }).click();
  await first.getByText("Your decision is recorded.").waitFor();
  await second.getByRole("button", { name: "Confirm: APPROVE" }).click();
  const alert = second.getByRole("alert");
  await alert.getByText("Rob Reviewer was first: APPROVE").waitFor();
  await second.locator("#banner").getByText("Final review").first().waitFor();
  await sound(second, "race-lost");
  const history = await api("GET", `/instances/${id}/history`);
  assert.equal(history.body.data[0].tasks[0].decision.actor, "reviewer");
  await first.context().close();
  await second.context().close();
});

test("a confirmed form that is sent twice decides once", async () => {
  const name = entity("twice");
  const { id } = await started(name, `Plan ${name}`);
  const page = await signedIn(browser, "reviewer");
  await page.goto(`${url}/console/instances/${id}`);
  await page.getByRole("link", { name: "APPROVE" }).click();
  assert.deepEqual(await sentTwice(page), ["opaqueredirect", "opaqueredirect"]);
  const history = await api("GET", `/instances/${id}/history`);
  assert.equal(history.body.data.length, 2);
  await page.context().close();
});

test("a claim that is confirmed twice is done once, and a claim of an own task changes nothing", async () => {
  const { id, task } = await started(entity("claimed"), "Plan");
  const page = await signedIn(browser, "reviewer");
  const address = `${url}/console/instances/${id}?action=claim&task=${task}`;
  await page.goto(address);
  await page.locator("#preview").waitFor();
  assert.deepEqual(await sentTwice(page), ["opaqueredirect", "opaqueredirect"]);
  assert.equal((await api("GET", `/tasks/${task}`)).body.task.owner, "reviewer");
  assert.equal((await api("POST", `/tasks/${task}/release`, {}, tokenOf("reviewer"))).status, 200);
  await page.goto(address);
  await page.locator("#preview").waitFor();
  assert.equal((await api("POST", `/tasks/${task}/claim`, {}, tokenOf("reviewer"))).status, 200);
  await page.getByRole("button", { name: "Confirm: Claim" }).click();
  await page.waitForURL(/done=task-claim/);
  await page.context().close();
});

test("a person who delegates a task that was decided meanwhile sees who decided it, and how", async () => {
  const { id, task } = await started(entity("late"), "Plan");
  const page = await signedIn(browser, "admin");
  await page.goto(`${url}/console/instances/${id}`);
  await page.getByRole("link", { name: "Hand to somebody else", exact: true }).click();
  await page.getByLabel(/Person/).fill("reviewer2");
  await page.getByLabel(/Reason/).fill("The others are away");
  await page.getByRole("button", { name: "Show what will happen" }).click();
  await page.locator("#preview").waitFor();
  assert.equal((await api("POST", `/tasks/${task}/decide`, { outcome: "APPROVE" }, tokenOf("reviewer"))).status, 200);
  await page.getByRole("button", { name: "Confirm: Hand to somebody else" }).click();
  await page.getByRole("alert").getByText("Rob Reviewer was first: APPROVE").waitFor();
  await page.context().close();
});

test("a reviewer delegates work with a picker of people", async () => {
  const name = entity("delegate");
  const { id, task } = await started(name, `Plan ${name}`);
  await api("POST", `/tasks/${task}/claim`, {}, tokenOf("reviewer"));
  const page = await signedIn(browser, "reviewer");
  await page.goto(`${url}/console/instances/${id}`);
  await page.getByRole("link", { name: "Delegate" }).click();
  assert.ok((await page.locator("#people option").count()) >= 6);
  await page.getByLabel(/Person/).fill("reviewer2");
  await page.getByLabel(/Reason/).fill("Your field");
  await page.getByRole("button", { name: "Show what will happen" }).click();
  await page.locator("#preview").getByText("reviewer2").waitFor();
  await sound(page, "delegate");
  await page.getByRole("button", { name: "Confirm: Delegate" }).click();
  await page.getByText("The task is delegated.").waitFor();
  await page.context().close();
});

test("delegated work is resolved, released, and reassigned with a picker of people", async () => {
  const name = entity("handed");
  const { id, task } = await started(name, `Plan ${name}`);
  const owner = async () => (await api("GET", `/tasks/${task}`)).body.task.owner;
  const act = async (page, name, fill) => {
    await page.getByRole("link", { name, exact: true }).click();
    await fill?.();
    const preview = page.getByRole("button", { name: "Show what will happen" });
    if (await preview.count()) await preview.click();
    await page.locator("#preview").waitFor();
    await page.getByRole("button", { name: `Confirm: ${name}` }).click();
  };
  await api("POST", `/tasks/${task}/claim`, {}, tokenOf("reviewer"));
  assert.equal((await api("POST", `/tasks/${task}/delegate`, { to: "reviewer2", reason: "Your field" }, tokenOf("reviewer"))).status, 200);
  const second = await signedIn(browser, "reviewer2");
  await second.goto(`${url}/console/instances/${id}`);
  await act(second, "Give back to who delegated it");
  await second.getByText("The task is back with who delegated it.").waitFor();
  assert.equal(await owner(), "reviewer");
  assert.equal(await second.getByRole("link", { name: "Release", exact: true }).count(), 0, "it is not theirs");
  await second.context().close();
  const first = await signedIn(browser, "reviewer");
  await first.goto(`${url}/console/instances/${id}`);
  await act(first, "Release");
  await first.getByText("The task is offered again.").waitFor();
  assert.equal(await owner(), null);
  await first.context().close();
  const admin = await signedIn(browser, "admin");
  await admin.goto(`${url}/console/instances/${id}`);
  await act(admin, "Hand to somebody else", async () => {
    assert.equal(await admin.locator("#people option[value=reviewer2]").textContent(), "Rita Reviewer");
    await admin.getByLabel(/Person/).fill("reviewer2");
    const reason = admin.getByLabel(/Reason/);
    if (await reason.count()) await reason.fill("The others are away");
    await sound(admin, "hand-over");
  });
  await admin.getByText("The task is handed over.").waitFor();
  assert.equal(await owner(), "reviewer2");
  await admin.context().close();
});

test("of two browsers that confirm at the same time one wins, and the other sees who", async () => {
  const browsers = [await launch(), await launch()];
  try {
    for (let round = 0; round < 3; round += 1) {
      const name = entity("same-time");
      const { id, task } = await started(name, `Plan ${name}`);
      const people = { "Rob Reviewer": await signedIn(browsers[0], "reviewer"), "Rita Reviewer": await signedIn(browsers[1], "reviewer2") };
      const pages = Object.values(people);
      for (const page of pages) {
        await page.goto(`${url}/console/instances/${id}?action=decide&task=${task}&outcome=APPROVE`);
        await page.getByRole("button", { name: "Confirm: APPROVE" }).waitFor();
      }
      // No update of the page comes between the two clicks.
      await Promise.all(pages.map((page) => page.getByRole("button", { name: "Confirm: APPROVE" }).evaluate((button) => button.click())));
      await Promise.all(pages.map((page) => page.getByText("Your decision is recorded.").or(page.getByRole("alert")).first().waitFor()));
      const { decision } = (await api("GET", `/instances/${id}/history`)).body.data[0].tasks[0];
      const winner = decision.actor === "reviewer" ? "Rob Reviewer" : "Rita Reviewer";
      for (const [person, page] of Object.entries(people)) {
        const won = await page.getByText("Your decision is recorded.").count();
        assert.equal(won, person === winner ? 1 : 0, `${person}, while the host recorded ${decision.actor}`);
        if (!won) await page.getByRole("alert").getByText(`${winner} was first: APPROVE`).waitFor();
        await page.context().close();
      }
    }
  } finally {
    await Promise.all(browsers.map((one) => one.close()));
  }
});

test("finding, reading and deciding work without scripts", async () => {
  const name = entity("plain");
  await started(name, `Plan ${name}`);
  const page = await signedIn(browser, "reviewer", { javaScriptEnabled: false });
  await page.goto(`${url}/console?view=available&q=${name}`);
  await page.getByRole("link", { name: `Plan ${name}` }).click();
  await page.getByRole("link", { name: "APPROVE" }).click();
  await page.getByRole("button", { name: "Confirm: APPROVE" }).click();
  await page.getByText("Your decision is recorded.").waitFor();
  await page.context().close();
});

test("texts of people and flows are shown as text: none runs as a script", async () => {
  const name = entity("xss");
  const attack = '"><img src=x onerror="window.hit=1"><script>window.hit=1</script>{{7*7}}';
  const { id } = await started(name, attack);
  const page = await signedIn(browser, "reviewer");
  for (const address of [`/console?view=available&q=${name}`, `/console/instances/${id}`, `/console/instances/${id}?tab=data`, `/console?q=${encodeURIComponent(attack)}`]) {
    await page.goto(url + address);
    assert.equal(await page.evaluate(() => window.hit), undefined, address);
    assert.equal(await page.locator("main img[src=x]").count(), 0, address);
  }
  await page.context().close();
});

test("each tab is a link, and the diagram is drawn", async () => {
  const { id } = await started(entity("tabs"), "Plan");
  const page = await signedIn(browser, "author");
  await page.goto(`${url}/console/instances/${id}`);
  await page.getByRole("link", { name: "Diagram" }).click();
  const drawn = await page.locator(".diagram svg").boundingBox();
  assert.ok(drawn.width > 100 && drawn.height > 100, JSON.stringify(drawn));
  await sound(page, "diagram");
  await page.getByRole("link", { name: "Data" }).click();
  await page.locator("pre", { hasText: "Plan" }).waitFor();
  await sound(page, "data");
  await page.getByRole("link", { name: "Events" }).click();
  await page.getByText("dev.wrkflw.flow.started").click();
  await page.locator("pre", { hasText: '"initiator": "author"' }).waitFor();
  await sound(page, "events");
  await page.getByRole("link", { name: "Related" }).click();
  await page.getByText("It restarts no instance").waitFor();
  await page.getByRole("link", { name: "Audit" }).click();
  await page.getByText("this needs the permission audit:read").waitFor();
  const admin = await signedIn(browser, "admin");
  await admin.goto(`${url}/console/instances/${id}?tab=audit`);
  await admin.getByText("FLOW_STARTED", { exact: true }).waitFor();
  await sound(admin, "audit");
  await admin.context().close();
  await page.context().close();
});

test("a page weighs little: script and all, compressed", async () => {
  const { id } = await started(entity("weight"), "Plan");
  const page = await signedIn(browser, "reviewer");
  const cookie = (await page.context().cookies()).map((one) => `${one.name}=${one.value}`).join("; ");
  for (const address of ["/console", `/console/instances/${id}`]) {
    await page.goto(url + address);
    const parts = await page.evaluate(() => performance.getEntriesByType("resource").map((one) => [one.name, one.initiatorType]));
    let [script, all] = [0, 0];
    for (const [part, kind] of [[url + address, "page"], ...parts]) {
      // Node decompresses the body. So the test reads the compressed length from a stream.
      const bytes = await weight(part, cookie);
      all += bytes;
      if (kind === "script") script += bytes;
    }
    assert.ok(script > 1000 && script <= 30_000, `${address}: ${script} bytes of script`);
    assert.ok(all <= 60_000, `${address}: ${all} bytes`);
  }
  await page.context().close();
});

async function weight(address, cookie) {
  const { get } = await import("node:http");
  return new Promise((resolve, reject) => {
    get(address, { headers: { cookie, "accept-encoding": "gzip" } }, (response) => {
      let bytes = 0;
      response.on("data", (chunk) => (bytes += chunk.length));
      response.on("end", () => resolve(bytes));
    }).on("error", reject);
  });
}
