// The host stores a person's preferences, and every page follows them in every browser.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { api, entity, launch, signedIn, sound, started, tokenOf, url } from "./support.js";

let browser;
before(async () => (browser = await launch()));
after(async () => {
  await api("PUT", "/me/preferences", { mutedNotifications: [] }, tokenOf("reviewer2"));
  await browser.close();
});

const html = (page, attribute) => page.locator("html").getAttribute(attribute);

test("language, zone and theme are chosen once, for every browser and page", async () => {
  const begun = await started(entity("zone"), "A plan for another zone");
  const page = await signedIn(browser, "reviewer2", { timezoneId: "America/New_York" });
  await page.goto(`${url}/console/me`);
  assert.equal(await html(page, "data-zone"), null);
  await page.locator("#language").selectOption("de");
  await page.getByLabel("Time zone").selectOption("Asia/Bangkok");
  await page.getByLabel("Colours").selectOption("dark");
  await page.locator("form", { has: page.getByLabel("Time zone") }).getByRole("button", { name: "Save" }).click();
  await page.getByRole("heading", { name: "Wie Sie die Seiten wünschen" }).waitFor();
  await page.context().close();

  const other = await signedIn(browser, "reviewer2", { timezoneId: "America/New_York" });
  for (const path of ["/console", `/console/instances/${begun.id}`, "/console/me", "/console/search?q=zone"]) {
    await other.goto(url + path);
    assert.equal(await html(other, "lang"), "de", path);
    assert.equal(await html(other, "data-zone"), "Asia/Bangkok", path);
    assert.equal(await other.evaluate(() => getComputedStyle(document.documentElement).colorScheme), "dark", path);
  }
  await other.goto(`${url}/console/instances/${begun.id}`);
  const time = other.locator("time[datetime]").first();
  const at = new Date(await time.getAttribute("datetime"));
  const format = { dateStyle: "medium", timeStyle: "short", timeZone: "Asia/Bangkok" };
  assert.equal(await time.getAttribute("title"), new Intl.DateTimeFormat("de", format).format(at));

  // The footer changes the preference of the person, and the form changes it back.
  await other.getByRole("button", { name: "ไทย" }).click();
  assert.equal(await html(other, "lang"), "th");
  const kept = await api("GET", "/me/preferences", undefined, tokenOf("reviewer2"));
  assert.deepEqual([kept.body.language, kept.body.timeZone, kept.body.theme], ["th", "Asia/Bangkok", "dark"]);
  await other.goto(`${url}/console/me`);
  for (const field of ["language", "zone", "theme"]) await other.locator(`#${field}`).selectOption("");
  await other.locator("form[action='/console/me/preferences'] button").click();
  await other.getByRole("heading", { name: "How you want pages" }).waitFor();
  assert.deepEqual([await html(other, "data-zone"), await html(other, "data-theme")], [null, null]);
  await other.context().close();
});

test("a reader who changes the language of a sent form, or of the sign-in, stays on that page", async () => {
  const { id, task } = await started(entity("language"), "A plan in two languages");
  const page = await signedIn(browser, "reviewer2");
  await page.goto(`${url}/console/instances/${id}?action=decide&task=${task}&outcome=REJECT`);
  // The second request is sent from the response to the first one.
  for (const [text, then] of [["", "[aria-invalid]"], ["The sum is wrong", "#preview"]]) {
    const comment = page.locator("#act textarea[name=comment]");
    await comment.evaluate((one) => one.removeAttribute("required"));
    await comment.fill(text);
    await page.locator("#act button[value=preview]").click();
    await page.locator("#act").locator(then).waitFor();
  }
  await page.getByRole("button", { name: "Deutsch" }).click();
  await page.locator("html[lang=de]").waitFor();
  assert.match(page.url(), /action=decide/);
  assert.equal(await page.locator("#act textarea[name=comment]").inputValue(), "The sum is wrong");
  await api("PUT", "/me/preferences", { mutedNotifications: [] }, tokenOf("reviewer2"));
  await page.context().clearCookies();
  await page.goto(`${url}/console/instances/${id}`);
  await page.getByRole("button", { name: "Deutsch" }).click();
  await page.locator("html[lang=de]").waitFor();
  await page.locator("button[name=person][value=reviewer2]").click();
  await page.waitForURL(`${url}/console/instances/${id}`);
  await page.context().close();
});

test("without scripts, times are in the chosen zone", async () => {
  const begun = await started(entity("zone"), "A plan without scripts");
  await api("PUT", "/me/preferences", { mutedNotifications: [], timeZone: "Asia/Bangkok" }, tokenOf("reviewer2"));
  const page = await signedIn(browser, "reviewer2", { javaScriptEnabled: false });
  await page.goto(`${url}/console/instances/${begun.id}`);
  assert.match(await page.locator("time[datetime]").first().getAttribute("title"), /^\d{4}-\d\d-\d\d \d\d:\d\d \+07$/);
  await page.context().close();
});

test("the calendar shows absences and substitutions", async () => {
  const now = Date.now();
  const day = 24 * 60 * 60 * 1000;
  const body = { substitute: "reviewer", from: new Date(now - day).toISOString(), until: new Date(now + 40 * day).toISOString() };
  const created = await api("POST", "/people/author/absences", body);
  assert.equal(created.status, 201, JSON.stringify(created.body));
  const page = await signedIn(browser, "author");
  await page.goto(`${url}/console/me`);
  const today = page.locator("td.today");
  await today.getByText("Away: reviewer stands in").waitFor();
  await sound(page, "me-absent");
  await page.getByRole("link", { name: "Next month" }).click();
  assert.match(page.url(), /month=\d{4}-\d\d#absences$/);
  await page.locator("td").filter({ hasText: "Away: reviewer stands in" }).first().waitFor();
  await page.context().close();
  const substitute = await signedIn(browser, "reviewer");
  await substitute.goto(`${url}/console/me`);
  await substitute.locator("td.today").getByText("For author").waitFor();
  await substitute.context().close();
  const id = created.body.absence?.id ?? created.body.id;
  assert.ok([200, 204].includes((await api("DELETE", `/people/author/absences/${id}`)).status));
});

/** The date in this number of days in Bangkok, which is seven hours ahead of UTC all year. */
const inDays = (days) => new Date(Date.now() + days * 86_400_000 + 7 * 3_600_000).toISOString().slice(0, 10);
/** The beginning of a day there, in the format of the host. */
const startOf = (day) => new Date(`${day}T00:00:00+07:00`).toISOString().replace(".000", "");

/** Selects a day of the calendar in any month. */
async function toDay(page, day) {
  const link = page.locator(".month a.day", { has: page.locator(`time[datetime="${day}"]`) });
  for (let months = 0; months < 3 && !(await link.count()); months += 1) await page.getByRole("link", { name: "Next month" }).click();
  return link;
}

test("an absence is entered in the calendar: a day, a second one for a range, and a preview", async () => {
  const [first, last] = [inDays(10), inDays(12)];
  await api("PUT", "/me/preferences", { mutedNotifications: [], timeZone: "Asia/Bangkok" }, tokenOf("reviewer2"));
  const page = await signedIn(browser, "reviewer2", { javaScriptEnabled: false });
  await page.goto(`${url}/console/me`);
  assert.equal(await page.locator(`.month a.day time[datetime="${inDays(-1)}"]`).count(), 0, "the past is over");
  // By keyboard: each day is a link with a description.
  const day = await toDay(page, first);
  assert.match(await day.innerText(), /Enter an absence/);
  await day.focus();
  await page.keyboard.press("Enter");
  assert.deepEqual([await page.getByLabel("First day").inputValue(), await page.getByLabel("Last day").inputValue()], [first, first]);
  await (await toDay(page, last)).click();
  assert.deepEqual([await page.getByLabel("First day").inputValue(), await page.getByLabel("Last day").inputValue()], [first, last]);
  assert.ok((await page.locator("td.chosen").count()) >= 1);
  await page.getByLabel("Substitute").fill("nobody-of-this-id");
  await page.getByRole("button", { name: "Show what will happen" }).click();
  await page.locator(".error, [role=alert]").first().waitFor();
  assert.equal(await page.getByLabel("Last day").inputValue(), last, "what was written stays");
  await page.getByLabel("Substitute").fill("reviewer");
  await page.getByRole("button", { name: "Show what will happen" }).click();
  await page.locator("#preview").getByText("Your substitute may act").waitFor();
  const absences = async () => (await api("GET", "/people/reviewer2/absences")).body.data;
  assert.deepEqual(await absences(), [], "nothing has happened yet");
  await page.getByRole("button", { name: "Confirm: Enter an absence" }).click();
  await page.getByText("The absence is entered.").waitFor();
  const [absence] = await absences();
  assert.deepEqual([absence.from, absence.until, absence.substitute], [startOf(first), startOf(inDays(13)), "reviewer"]);
  await page.context().close();
  const scripted = await signedIn(browser, "reviewer2");
  await scripted.goto(`${url}/console/me?from=${first}&until=${last}`);
  await sound(scripted, "me-absence");
  await scripted.getByRole("heading", { name: "Tokens" }).waitFor();
  await scripted.getByText("the host keeps no list of them").waitFor();
  await scripted.locator("a[href='#sessions']").click();
  assert.match(scripted.url(), /#sessions$/);
  await scripted.getByRole("button", { name: "End the absence" }).click();
  await scripted.getByText("The absence has ended.").waitFor();
  assert.deepEqual(await absences(), []);
  assert.equal(await scripted.getByRole("button", { name: "End the absence" }).count(), 0);
  assert.deepEqual(scripted.context().complaints, []);
  await scripted.context().close();
});

test("a page of another site, and a form without the token, changes no preference", async () => {
  const page = await signedIn(browser, "reviewer2");
  const cookie = (await page.context().cookies()).map((one) => `${one.name}=${one.value}`).join("; ");
  const post = async (headers, fields) => {
    const body = new URLSearchParams({ theme: "dark", ...fields });
    return (await fetch(`${url}/console/me/preferences`, { method: "POST", redirect: "manual", body, headers: { cookie, ...headers } })).status;
  };
  assert.equal(await post({ origin: "https://evil.example" }, {}), 403);
  assert.equal(await post({ origin: url }, { token: "guessed" }), 403);
  const kept = await api("GET", "/me/preferences", undefined, tokenOf("reviewer2"));
  assert.notEqual(kept.body.theme, "dark");
  await page.context().close();
});

test("a person chooses their notifications, also without scripts", async () => {
  const token = tokenOf("reviewer2");
  const muted = async () => (await api("GET", "/me/preferences", undefined, token)).body.mutedNotifications;
  await api("PUT", "/me/preferences", { mutedNotifications: [], theme: "dark" }, token);
  for (const javaScriptEnabled of [true, false]) {
    const page = await signedIn(browser, "reviewer2", { javaScriptEnabled });
    await page.goto(`${url}/console/notifications`);
    await page.getByRole("link", { name: "What you are notified of" }).click();
    const form = page.locator("form[action='/console/me/notified']");
    assert.equal(await form.getByRole("checkbox", { checked: true }).count(), 5);
    await form.getByLabel("Due soon").uncheck();
    await form.getByLabel("You were mentioned").uncheck();
    await form.getByRole("button", { name: "Save" }).click();
    await page.getByText("Your choice is saved.").waitFor();
    assert.deepEqual((await muted()).sort(), ["MENTION", "TIMEOUT_WARNING"]);
    assert.deepEqual([await form.getByLabel("Due soon").isChecked(), await form.getByLabel("Escalated").isChecked()], [false, true]);
    if (javaScriptEnabled) await sound(page, "me-notified");
    // The other choices do not change.
    assert.equal((await api("GET", "/me/preferences", undefined, token)).body.theme, "dark");
    for (const name of ["Due soon", "You were mentioned"]) await form.getByLabel(name).check();
    await form.getByRole("button", { name: "Save" }).click();
    await page.getByText("Your choice is saved.").waitFor();
    assert.deepEqual(await muted(), []);
    await page.context().close();
  }
  await api("PUT", "/me/preferences", { mutedNotifications: [] }, token);
});
