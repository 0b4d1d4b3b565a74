// A form that a flow describes by a schema: a field of each kind, the requirements of each outcome, and the input of the flow.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { api, committee, entity, launch, signedIn, sound, url, vote } from "./support.js";

let browser;
before(async () => (browser = await launch()));
after(() => browser.close());

const PROPERTIES = {
  subject: { title: "Subject", description: "In one line", type: "string" },
  remarks: { title: "Remarks", type: "string", maxLength: 2000 },
  sum: { title: "Sum", type: "number", minimum: 10 },
  count: { title: "Count", type: "integer" },
  paid: { title: "Is it paid?", type: "boolean" },
  kind: { title: "Kind", type: "string", enum: ["plan", "report"] },
  day: { title: "Day", type: "string", format: "date" },
  who: { title: "Deputy", type: "string", format: "person" },
  mail: { title: "Mail", type: "string", format: "email" },
  link: { title: "Link", type: "string", format: "uri" },
  tags: { title: "Tags", type: "array", items: { type: "string" }, maxItems: 2 },
};

/** Each field by its label: the entered text, and the value that the flow gets. */
const FILLED = {
  Subject: ["Plan <b>A</b>", "Plan <b>A</b>"],
  Remarks: ["One line\nand another", "One line\nand another"],
  Sum: ["12.50", 12.5],
  Count: ["3", 3],
  Day: ["2030-02-28", "2030-02-28"],
  Deputy: ["reviewer2", "reviewer2"],
  Mail: ["rob@example.org", "rob@example.org"],
  Link: ["https://example.org/a?b=c", "https://example.org/a?b=c"],
  Tags: [`["new", "<i>"]`, ["new", "<i>"]],
};

const INPUT = { type: "object", properties: PROPERTIES, required: ["subject", "kind"] };

async function opened(outcome, options, input = INPUT) {
  const key = entity("form");
  const transitions = { YES: { input }, NO: { comment: "required" }, MORE: { comment: "none" } };
  await committee(key, { transitions });
  const { id, task } = await vote(key, `Vote ${key}`);
  const page = await signedIn(browser, "reviewer", options);
  await page.goto(`${url}/console/instances/${id}?action=decide&task=${task}&outcome=${outcome}`);
  const history = () => api("GET", `/instances/${id}/history`);
  const decision = async () => (await history()).body.data[0].tasks[0].decision;
  return { page, decision, history };
}

const field = (page, label) => page.locator("#act").getByLabel(label, { exact: false }).first();

test("a task has a field of each kind of its schema, and the flow gets what was entered", async () => {
  const { page, decision } = await opened("YES");
  const kinds = {};
  for (const name of Object.keys(PROPERTIES)) {
    const found = page.locator(`[name="input.${name}"]`);
    kinds[name] = await found.evaluate((one) => (one.tagName === "INPUT" ? (one.getAttribute("list") ?? one.getAttribute("inputmode") ?? one.type) : one.tagName));
  }
  assert.deepEqual(kinds, {
    subject: "text", remarks: "TEXTAREA", sum: "decimal", count: "decimal", paid: "checkbox", kind: "SELECT",
    day: "date", who: "people", mail: "email", link: "url", tags: "TEXTAREA",
  });
  await page.getByText("In one line").waitFor();
  for (const [label, [text]] of Object.entries(FILLED)) await field(page, label).fill(text);
  await field(page, "Is it paid?").check();
  await field(page, "Kind").selectOption("report");
  await page.getByRole("button", { name: "Show what will happen" }).click();
  await page.locator("#preview").waitFor();
  for (const [label, [text]] of Object.entries(FILLED)) assert.equal(await field(page, label).inputValue(), text, "what was entered stays");
  await sound(page, "form-kinds");
  await page.getByRole("button", { name: "Confirm: YES" }).click();
  await page.getByText("Your decision is recorded.").waitFor();
  const wanted = Object.fromEntries(Object.entries(FILLED).map(([label, [, value]]) => [Object.keys(PROPERTIES).find((name) => PROPERTIES[name].title === label), value]));
  assert.deepEqual((await decision()).input, { ...wanted, paid: true, kind: "report" });
  await page.context().close();
});

test("a number reaches the flow with the digits that were typed", async () => {
  const { page, history } = await opened("YES");
  await field(page, "Subject").fill("Plan");
  await field(page, "Kind").selectOption("plan");
  await field(page, "Sum").fill("50000.000000000000000001");
  await field(page, "Count").fill("12345678901234567890123");
  await page.getByRole("button", { name: "Show what will happen" }).click();
  await page.locator("#preview").waitFor();
  await page.getByRole("button", { name: "Confirm: YES" }).click();
  await page.getByText("Your decision is recorded.").waitFor();
  const { text } = await history();
  for (const wanted of [`"sum":50000.000000000000000001`, `"count":12345678901234567890123`]) assert.ok(text.includes(wanted), text);
  await page.context().close();
});

test("each outcome requires its own fields, and an error is shown at its field", async () => {
  const { page, decision } = await opened("YES", { javaScriptEnabled: false });
  const required = () => page.locator("#act [required]").evaluateAll((all) => all.map((one) => one.name).sort());
  assert.deepEqual(await required(), ["input.kind", "input.subject"]);
  await page.locator("#act").getByText("Subject (required)").waitFor();
  // The browser itself blocks the form.
  await page.getByRole("button", { name: "Show what will happen" }).click();
  assert.equal(await page.locator("#act [aria-invalid]").count(), 0, "nothing was sent");
  await field(page, "Subject").fill("Plan");
  await field(page, "Kind").selectOption("plan");
  await field(page, "Sum").fill("2");
  await field(page, "Count").fill("many");
  await page.getByRole("button", { name: "Show what will happen" }).click();
  for (const name of ["sum", "count"]) {
    const wrong = page.locator(`[name="input.${name}"]`);
    assert.equal(await wrong.getAttribute("aria-invalid"), "true", name);
    assert.notEqual(await page.locator(`[id="${await wrong.getAttribute("aria-describedby")}"]`).innerText(), "");
  }
  assert.equal(await page.locator("#act [aria-invalid]").count(), 2, "the others are right");
  assert.equal(await decision(), null);
  await page.context().close();
  for (const [outcome, fields] of [["NO", ["comment"]], ["MORE", []]]) {
    const other = await opened(outcome);
    assert.deepEqual(await other.page.locator("#act [required]").evaluateAll((all) => all.map((one) => one.name)), fields, outcome);
    assert.equal(await other.page.locator("#act textarea[name=comment]").count(), fields.length, outcome);
    await other.page.context().close();
  }
});

test("an error of a field is in the language of the reader, with the expectation of its schema", async () => {
  const errors = {};
  for (const [locale, wanted] of Object.entries({
    en: { sum: "This must be at least 10.", count: "This must be: a whole number (such as 1500)", mail: "This is not in the format email.", tags: "Items: at most 2." },
    de: { sum: "Das muss mindestens 10 sein.", count: "Das muss sein: eine ganze Zahl (wie 1500)", mail: "Das hat nicht das Format email.", tags: "Einträge: höchstens 2." },
    th: { sum: "ต้องไม่น้อยกว่า 10", count: "ต้องเป็น: จำนวนเต็ม (เช่น 1500)", mail: "ไม่อยู่ในรูปแบบ email", tags: "จำนวนรายการ: ไม่เกิน 2" },
  })) {
    const { page } = await opened("YES", { locale });
    // The browser would block some of them with messages of its own.
    const form = page.locator("#act form").first();
    await form.evaluate((one) => (one.noValidate = true));
    await field(page, "Subject").fill("Plan");
    await field(page, "Kind").selectOption("plan");
    await field(page, "Sum").fill("2");
    await field(page, "Count").fill("many");
    await field(page, "Mail").fill("nobody");
    await field(page, "Tags").fill(`["one", "two", "three"]`);
    await form.locator("button").first().click();
    await page.locator("#act [aria-invalid]").first().waitFor();
    errors[locale] = {};
    for (const name of Object.keys(wanted)) {
      const by = await page.locator(`[name="input.${name}"]`).getAttribute("aria-describedby");
      errors[locale][name] = await page.locator(`[id="${by}"]`).innerText();
    }
    assert.deepEqual(errors[locale], wanted, locale);
    if (locale === "th") await sound(page, "form-errors-th");
    await page.context().close();
  }
  const { page } = await opened("NO", { locale: "de" });
  await page.locator("#act form").first().evaluate((one) => (one.noValidate = true));
  await page.locator("#act form").first().locator("button").first().click();
  await page.locator("#act").getByText("Das ist erforderlich.").waitFor();
  await page.context().close();
});

test("a field accepts a number in the form of its message, and refuses one that is ambiguous in the language", async () => {
  const { page, decision } = await opened("YES", { locale: "de" }, { type: "object", properties: { total: { title: "Total", type: "number", minimum: 1000 } } });
  const total = page.locator(`[name="input.total"]`);
  const refused = async (text, why) => {
    await total.fill(text);
    await page.locator("#act button[value=preview], #act button[value=confirm]").first().click();
    return page.locator(`[id="input.total-error"]`, { hasText: why }).innerText();
  };
  assert.equal(await refused("1.500", "Zahl"), "Das muss sein: eine Zahl (wie 1500.5; statt 1.085: 1.0850)");
  assert.equal(await total.inputValue(), "1.500", "what was entered stays");
  const [least] = (await refused("1.0850", "mindestens")).match(/\d[\d.,]*/);
  await total.fill(least);
  await page.locator("#act button[value=preview]").click();
  await page.locator("#act button[value=confirm]").click();
  await page.waitForURL(/done=task-decide/);
  assert.deepEqual((await decision()).input, { total: 1000 });
  await page.context().close();
});
