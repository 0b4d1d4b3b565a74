// The page of the API: the input and output of an operation with examples, a form to try it, and the same request as a program.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { after, before, test } from "node:test";
import { api, entity, launch, profile, sound, started, tokenOf, url } from "./support.js";

let browser;
before(async () => (browser = await launch()));
after(() => browser.close());

async function opened(anchor) {
  const context = await profile(browser);
  const page = await context.newPage();
  await page.goto(`${url}/docs#${anchor}`);
  const card = page.locator(`#${anchor}`);
  await card.getByRole("button", { name: "Send" }).waitFor();
  return [page, card];
}

test("an operation shows its schema, and a request and an answer that were recorded", async () => {
  const [page, card] = await opened("post-v1-tasks-id-decide");
  await card.locator(".fields code", { hasText: "outcome" }).first().waitFor();
  assert.match(await card.locator("pre").first().textContent(), /"outcome": "APPROVE"/);
  await card.locator("summary", { hasText: /^200/ }).click();
  const answer = card.locator("details.response pre").first();
  assert.equal(JSON.parse(await answer.textContent()).result, "changed");
  // A problem is identified by its code. Codes have no backticks.
  const refusal = card.locator(".response", { hasText: "task_taken" }).first();
  assert.ok(!(await refusal.textContent()).includes("`"));
  await sound(page, "docs-operation");
  await page.context().close();
});

test("the page has every operation, and finds them by a word", async () => {
  const page = await (await profile(browser)).newPage();
  await page.goto(`${url}/docs`);
  await page.locator("details.card").first().waitFor();
  const { paths } = await (await fetch(`${url}/openapi.json`)).json();
  const operations = Object.values(paths).flatMap((item) => Object.keys(item));
  assert.equal(await page.locator("details.card").count(), operations.length);
  await sound(page, "docs");
  await page.getByLabel("Find").fill("bulk");
  const shown = page.locator("details.card:visible .path");
  assert.deepEqual(await shown.allTextContents(), ["/v1/tasks/bulk"]);
  await page.context().close();
});

test("an operation is tried with a token, and the generated requests run in a shell and in Python", async () => {
  const { task, id } = await started(entity("docs"), "Plan");
  const [page, card] = await opened("post-v1-tasks-id-decide");
  const send = card.getByRole("button", { name: "Send" });
  await card.getByLabel("id (path)").fill(task);
  await send.click();
  await card.getByRole("status").getByText(/^401 /).waitFor();
  await page.getByLabel("Bearer token").fill(tokenOf("reviewer"));
  await card.getByLabel("dryRun").selectOption("true");
  await send.click();
  await card.getByRole("status").getByText(/^200 /).waitFor();
  assert.equal((await api("GET", `/instances/${id}`)).body.states[0].name, "Submitted", "a dry run that is chosen is one");
  await sound(page, "docs-tried");
  const code = card.locator("pre.sample");
  const shell = await code.textContent();
  const env = { PATH: process.env.PATH, TOKEN: tokenOf("reviewer") };
  const dry = execFileSync("sh", ["-c", shell.replace("curl ", "curl --silent ")], { encoding: "utf8", env });
  assert.equal(JSON.parse(dry).dryRun, true, dry);
  assert.equal((await api("GET", `/instances/${id}`)).body.states[0].name, "Submitted");

  const language = card.getByLabel("The same in");
  await language.selectOption("javascript");
  const script = `const token = process.env.TOKEN;\n${await code.textContent()}`;
  const answer = execFileSync(process.execPath, ["--input-type=module", "-e", script], { encoding: "utf8", env });
  assert.equal(JSON.parse(answer).dryRun, true);

  await language.selectOption("python");
  await card.getByLabel("Body").fill(`{"outcome": "APPROVE", "comment": "It's \\"fine\\"", "input": {"all": [true, null, 1.5]}}`);
  const python = await code.textContent();
  for (const part of ["requests.post(", '"Authorization": f"Bearer {token}"', '"outcome": "APPROVE"', "True,\n", "None,\n"]) {
    assert.ok(python.includes(part), `${part} in ${python}`);
  }
  execFileSync("python3", ["-c", "import ast, sys; ast.parse(sys.stdin.read())"], { input: python });
  // The next operation shows the chosen language.
  await page.goto(`${url}/docs#get-v1-me`);
  await page.locator("#get-v1-me pre.sample", { hasText: "requests.get(" }).waitFor();
  await page.context().close();
});
