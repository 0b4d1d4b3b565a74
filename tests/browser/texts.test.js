// Texts from people, flows and files are shown as text on every page. None becomes an element, and none is executed.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { api, entity, file, launch, published, signedIn, sql, tokenOf, url } from "./support.js";

let browser;
before(async () => (browser = await launch()));
after(() => browser.close());

/** Each of these would create an element of the class `evil` or run a script, if a page did not escape it. */
const CORPUS = [
  "<b class=evil>x</b>",
  `"><img class=evil src=x onerror="window.hit=1">`,
  "' class=evil onmouseover='window.hit=1",
  "</script><script class=evil>window.hit=1</script>",
  "<svg class=evil onload=window.hit=1>",
  "</textarea></title></style></option><b class=evil>",
  "--><b class=evil><!--",
  "javascript:window.hit=1",
  "data:text/html,<script>window.hit=1</script>",
  "&lt;b class=evil&gt;&#60;b class=evil&#62;",
  "{{7*7}}${7*7}{% raw %}<%= 7*7 %>",
  "\u202e<b class=evil>\u2028window.hit=1\u2029",
  "%3Cb%20class=evil%3E",
];

/** The whole corpus as one text. */
const ALL = CORPUS.join(" ");

/** Texts of the sample flow, each with a replacement of the same length in bytes. The author of a component chooses its texts. */
const FLOW_TEXTS = {
  "Document approval": "<p class=evil>flow",
  "First review": "<p id=evil>x",
  "Two reviews; a rejected document goes back to its author.": `<img class=evil src=x onerror="window.hit=1"> and the rest`,
};

function component() {
  const bytes = file("WRKFLW_TEST_COMPONENT");
  for (const [text, attack] of Object.entries(FLOW_TEXTS)) {
    const evil = Buffer.from(attack.slice(0, text.length).padEnd(text.length));
    let at = bytes.indexOf(text);
    assert.ok(at >= 0, `the sample flow has no text ${text}`);
    for (; at >= 0; at = bytes.indexOf(text, at + 1)) evil.copy(bytes, at);
  }
  return bytes;
}

/** Publishes the flow with these texts and this config. Activates it although the config names groups that do not exist. */
async function activated(key, config) {
  const version = await published(key, component(), config, { name: ALL, note: ALL });
  const active = await api("POST", `/definitions/${key}/versions/${version}/activate`, { force: true });
  assert.equal(active.status, 200, JSON.stringify(active.body));
  return version;
}

/** Checks that no text created anything in this page. */
async function tame(page, what) {
  const found = await page.evaluate(() => ({
    hit: window.hit,
    elements: [...document.querySelectorAll(".evil, #evil, [onmouseover], [onerror], [onload], img[src=x]")].map((one) => one.outerHTML),
    links: [...document.querySelectorAll("[href], [src], [action]")].map((one) => one.getAttribute("href") ?? one.getAttribute("src") ?? one.getAttribute("action")).filter((one) => new URL(one, location.href).origin !== location.origin),
    sums: document.body.innerText.includes("49$") || document.body.innerText.includes("4949"),
  }));
  assert.deepEqual(found, { hit: undefined, elements: [], links: [], sums: false }, what);
}

test("texts of people, flows and files are shown as texts on every page", async () => {
  const key = entity("texts");
  const person = key;
  await api("PUT", `/people/${person}`, { name: ALL.slice(0, 200) });
  await api("PUT", `/groups/${key}`, { name: CORPUS[1] });
  for (const member of ["reviewer", person]) assert.equal((await api("PUT", `/groups/${key}/members/${member}`)).status, 200);
  // The approvers are a group that does not exist, whose name is an attack.
  const version = await activated(key, { reviewers: key, approvers: CORPUS[0] });
  const ids = [];
  for (const [number, attack] of CORPUS.entries()) {
    const body = { definitionKey: key, entityType: "document", entityId: `${attack} ${key}-${number}`, data: { title: attack, link: attack, [attack]: { [attack]: attack } } };
    let started = await api("POST", "/instances", body, tokenOf("author"));
    // The schema of some definitions has no other members.
    if (started.status !== 201) started = await api("POST", "/instances", { ...body, data: { title: attack, link: attack } }, tokenOf("author"));
    assert.equal(started.status, 201, JSON.stringify(started.body));
    const { instance } = started.body;
    ids.push({ id: instance.id, task: instance.states[0].tasks[0].id });
  }
  const [first, second] = ids;
  const done = async (route, body, who) => {
    const answer = await api("POST", route, body, tokenOf(who));
    assert.ok(answer.status < 300, `${route}: ${JSON.stringify(answer.body)}`);
  };
  await done(`/instances/${first.id}/comment`, { comment: ALL, mentions: ["author", person] }, "reviewer");
  await done(`/tasks/${first.task}/claim`, {}, "reviewer");
  await done(`/tasks/${first.task}/delegate`, { to: person, reason: ALL }, "reviewer");
  await done(`/tasks/${second.task}/decide`, { outcome: "REJECT", comment: ALL }, "reviewer");
  await done(`/instances/${ids[2].id}/suspend`, { reason: ALL }, "admin");
  await done(`/instances/${ids[3].id}/cancel`, { reason: ALL }, "admin");

  // Another version beside the active one, with a different config; refused events, and a failing job.
  const other = await published(key, component(), { reviewers: CORPUS[1], approvers: key }, { note: ALL });
  const quoted = ALL.replaceAll("'", "''");
  sql(`with moved as (delete from outbox_event where instance_id = '${ids[5].id}' returning *)
    insert into dead_letter (tenant_id, instance_id, seq, partition, pos, error, attempts, parked_at)
    select tenant_id, instance_id, seq, partition, pos, '${quoted}', 3, now() from moved`);
  sql(`insert into job (tenant_id, id, kind, instance_id, due_at, payload, attempts, last_error)
    select tenant_id, gen_random_uuid(), 'deadline', id, now() + interval '1 day', '{}', 4, '${quoted}' from instance where id = '${ids[5].id}'`);
  // The notifier writes notifications a moment after the events.
  const told = new Set();
  for (const until = Date.now() + 20_000; told.size < ids.length && Date.now() < until; ) {
    const { data } = (await api("GET", "/notifications?limit=100", undefined, tokenOf("reviewer"))).body;
    for (const one of data) if (ids.some(({ id }) => id === one.instanceId)) told.add(one.instanceId);
  }
  assert.equal(told.size, ids.length, "each title is in a notification");

  const asked = encodeURIComponent(ALL);
  const of = ({ id }) => ["", "?tab=diagram", "?tab=data", "?tab=events", "?tab=related", "?tab=audit", "/who"].map((rest) => `/console/instances/${id}${rest}`);
  const addresses = [
    "/console?view=all&limit=100",
    `/console?view=all&q=${asked}`,
    `/console?view=${asked}&sort=${asked}&entityType=${asked}&after=${asked}`,
    `/console/search?q=${asked}`,
    `/console/search?q=${key}`,
    `/console/start?definition=${key}`,
    `/console/start?definition=${asked}`,
    "/console/start",
    `/console/instances/${ids[4].id}?action=decide&task=${ids[4].task}&outcome=REJECT`,
    `/console/instances/${ids[4].id}?action=${asked}&task=${asked}&outcome=${asked}`,
    "/console/notifications",
    "/console/me",
    "/console/definitions",
    `/console/definitions/${key}`,
    `/console/definitions/${key}/${version}`,
    `/console/definitions/${key}/${other}?against=${version}`,
    `/console/definitions/${key}/${other}?against=${asked}`,
    `/console/definitions/${key}/${other}?do=activate`,
    `/console/definitions/${key}/${version}/migrate`,
    "/console/operations",
    "/console/operations/dead-letters",
    `/console/operations/dead-letters/${ids[5].id}`,
    "/console/operations/jobs",
    "/console/operations/refusals",
    "/console/operations/instances/stale",
    "/console/operations/instances/overdue",
    `/console/people/${person}`,
    `/console/groups/${key}`,
    `/console/people?q=${asked}`,
    `/console/instances/${second.id}/custody`,
    "/console/operations/instances/unassignable",
    `/console/audit?actor=${asked}&type=${asked}`,
    "/console/audit",
    `/console/${asked}`,
    ...of(first),
    ...of(second),
    ...of(ids[2]),
    ...of(ids[3]),
  ];
  for (const reader of ["admin", "reviewer", "author"]) {
    const page = await signedIn(browser, reader);
    for (const address of addresses) {
      await page.goto(url + address);
      await tame(page, `${address} for ${reader}`);
    }
    // The browser reports nothing: the content security policy had nothing to block.
    assert.deepEqual(page.context().complaints, [], reader);
    if (reader === "admin") {
      // The texts are on these pages, so each page could have shown them wrongly.
      for (const address of [`/console/definitions/${key}/${other}?against=${version}`, "/console/operations/dead-letters", "/console/operations/jobs", `/console/people/${person}`, `/console/instances/${second.id}/custody`]) {
        await page.goto(url + address);
        assert.match(await page.locator("body").innerText(), /<b class=evil>/, address);
      }
    }
    await page.context().close();
  }
  sql(`delete from job where instance_id = '${ids[5].id}'`);
});

test("the texts of the corpus are attacks: they work on a page that does not escape them", async () => {
  const page = await (await browser.newContext()).newPage();
  await page.setContent(ALL);
  await assert.rejects(tame(page, "a page that escapes nothing"));
  await page.context().close();
});
