// Refusals by the host are in the language of the reader, with advice.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { api, entity, launch, signedIn, sql, started, tokenOf, url } from "./support.js";

let browser;
before(async () => (browser = await launch()));
after(() => browser.close());

test("a page says in the language of the reader why it is refused", async () => {
  const page = await signedIn(browser, "author", { locale: "de" });
  const answer = await page.goto(`${url}/console/audit`);
  assert.equal(answer.status(), 403);
  await page.getByRole("heading", { name: "Das dürfen Sie nicht" }).waitFor();
  assert.match(await page.locator("main").innerText(), /Dafür braucht es die Berechtigung audit:read\./);
  await page.goto(`${url}/console/instances/01900000-0000-7000-8000-000000000000`);
  assert.match(await page.locator("main").innerText(), /Das gibt es nicht, oder nicht für Sie: .*01900000/);
  await page.context().close();
});

test("a form shows in the language of the reader what to correct, and the API's detail", async () => {
  const name = entity("zweimal");
  const first = await started(name, `Plan ${name}`);
  const page = await signedIn(browser, "author", { locale: "de" });
  await page.goto(`${url}/console/start?definition=document-approval`);
  await page.getByLabel(/Art des Gegenstands/).fill("document");
  await page.getByLabel(/Kennung des Gegenstands|Id des Gegenstands/).fill(name);
  await page.getByLabel(/title/).fill("Plan");
  await page.getByRole("button", { name: "Zeigen, was geschehen wird" }).click();
  const alert = page.getByRole("alert");
  await alert.waitFor();
  const said = await alert.innerText();
  assert.match(said, /Zu diesem Gegenstand läuft schon eine andere Instanz/);
  assert.ok(said.includes(first.id), said);
  await page.context().close();
});

test("an action on a suspended task shows who suspended it and why", async () => {
  const { id, task } = await started(entity("pause"), "Ein Plan in der Pause");
  const page = await signedIn(browser, "reviewer", { locale: "de" });
  await page.goto(`${url}/console/instances/${id}?action=claim&task=${task}`);
  await page.locator("#preview").waitFor();
  assert.equal((await api("POST", `/instances/${id}/suspend`, { reason: "Es fehlen Unterlagen" }, tokenOf("admin"))).status, 200);
  await page.locator("#act button[value=confirm]").click();
  const alert = page.getByRole("alert");
  await alert.waitFor();
  assert.match(await alert.innerText(), /angehalten[\s\S]*Es fehlen Unterlagen/);
  await page.context().close();
});

test("numbers are written as in the language of the reader", async () => {
  const { id } = await started(entity("many"), "Plan");
  const columns = "tenant_id, instance_id, seq, partition, pos, error, attempts, parked_at";
  sql(`insert into dead_letter (${columns}) select tenant_id, instance_id, seq + more, partition, pos + more, 'too many to send', 1, now()
    from outbox_event, generate_series(0, 1234) more where instance_id = '${id}' and seq = (select min(seq) from outbox_event where instance_id = '${id}')`);
  for (const [locale, text] of [["en", "1,234 events wait behind it"], ["de", "1.234 Ereignisse warten dahinter"], ["th", "1,234 เหตุการณ์รออยู่ข้างหลัง"]]) {
    const page = await signedIn(browser, "admin", { locale });
    await page.goto(`${url}/console/operations/dead-letters`);
    await page.locator("li", { hasText: id }).getByText(text).waitFor();
    await page.context().close();
  }
  sql(`delete from dead_letter where instance_id = '${id}'`);
});

test("the error of a bulk decision is in the language of the reader", async () => {
  const name = entity("together");
  await started(`${name}-1`, `${name} Plan`);
  const page = await signedIn(browser, "reviewer", { locale: "de" });
  await page.goto(`${url}/console?view=available&q=${name}`);
  await page.getByLabel("Alle, die passen").check();
  await page.getByRole("button", { name: "Ausgewählte entscheiden" }).click();
  await page.getByRole("radio", { name: /^REJECT/ }).check();
  await page.getByRole("button", { name: "Zeigen, was geschehen wird" }).click();
  assert.match(await page.locator(".refused-group").innerText(), /Kommentar: Das ist erforderlich\./);
  await page.context().close();
});
