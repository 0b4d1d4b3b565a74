// Two hosts of one database, with a browser at each: an action at one host soon appears on the pages of the other.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { test } from "node:test";
import { entity, keyOfDev, launch, setting, signedIn, started, tokenOf, until, url } from "./support.js";

/** The time limit for another person's page to show a change, in milliseconds. */
const SOON = 1000;

/** A second host with the database and the secrets of the first. */
async function secondHost() {
  const home = setting("WRKFLW_TEST_HOME");
  const secret = (name) => readFileSync(path.join(home, `${name}.secret`), "utf8").trim();
  const folder = mkdtempSync(path.join(tmpdir(), "wrkflw-second-"));
  const settings = {
    database_url: setting("WRKFLW_TEST_DATABASE"),
    jwt_secret_file: path.join(home, "jwt.secret"),
    seal_keys: [keyOfDev(secret("seal"))],
    roles: ["api"],
    listen: "127.0.0.1:0",
  };
  const lines = Object.entries(settings).map(([name, value]) => `${name} = ${JSON.stringify(value)}`);
  writeFileSync(path.join(folder, "wrkflw.toml"), lines.join("\n"));
  // Without the variables of the tests, which the program would take for settings.
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("WRKFLW_")));
  const child = spawn(setting("WRKFLW_TEST_PROGRAM"), ["serve", "--output", "json"], { cwd: folder, env, stdio: ["ignore", "pipe", "inherit"] });
  const ended = new Promise((resolve) => child.on("exit", resolve));
  let said = "";
  for await (const chunk of child.stdout) {
    said += chunk;
    if (said.includes("}")) break;
  }
  return {
    url: `http://${JSON.parse(said).listen}`,
    async stop() {
      child.kill();
      await ended;
      rmSync(folder, { recursive: true });
    },
  };
}

/** Waits until a host has compiled the flow of a task, by trying to reject it. */
async function loaded(host, task) {
  const options = {
    method: "POST",
    headers: { authorization: `Bearer ${tokenOf("reviewer")}`, "content-type": "application/json" },
    body: JSON.stringify({ outcome: "REJECT", comment: "Too dear" }),
  };
  const tried = () => fetch(`${host}/v1/tasks/${task}/decide?dryRun=true`, options);
  const answer = await until("the host has compiled the flow", tried, (one) => one.status !== 503);
  assert.equal(answer.status, 200, await answer.text());
}

test("an action at one host is on a page of another host and browser within a second", async (t) => {
  const second = await secondHost();
  t.after(() => second.stop());
  const browsers = [await launch(), await launch()];
  t.after(() => Promise.all(browsers.map((browser) => browser.close())));
  const { id, task } = await started(entity("hosts"), "Two hosts");
  await loaded(second.url, task);
  const author = await signedIn(browsers[0], "author");
  const stream = author.waitForResponse((answer) => answer.url().includes("/console/live"));
  await author.goto(`${url}/console/instances/${id}`);
  assert.equal((await stream).status(), 200);

  const reviewer = await (await browsers[1].newContext({ locale: "en" })).newPage();
  await reviewer.goto(`${second.url}/console/sign-in`);
  await reviewer.getByLabel("Access token").fill(tokenOf("reviewer"));
  await reviewer.getByRole("button", { name: "Sign in", exact: true }).click();
  await reviewer.waitForURL((address) => !address.pathname.includes("sign-in"));
  await reviewer.goto(`${second.url}/console/instances/${id}?action=decide&task=${task}&outcome=REJECT`);
  await reviewer.getByLabel("Comment").fill("Too dear");
  await reviewer.getByRole("button", { name: "Show what will happen" }).click();
  const confirm = reviewer.getByRole("button", { name: /^Confirm/ });
  await confirm.waitFor();
  // Measured from the click, so the second includes the decision itself.
  await Promise.all([
    author.locator("#banner .badge", { hasText: "Rework" }).waitFor({ timeout: SOON }),
    confirm.click(),
  ]);
  await reviewer.getByText("Your decision is recorded.").waitFor();
  assert.deepEqual(author.context().complaints, []);
});
