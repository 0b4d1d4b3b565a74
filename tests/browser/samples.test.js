// The sample product of `wrkflw dev`: the four types of its documents, each with the work in its own page.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, before, test } from "node:test";
import { accessible, launch, lengthened, misfits, pictures, profile, setting } from "./support.js";

const TYPES = {
  rfa: ["RFA-0042", "Facade of building C"],
  transmittal: ["TRM-0107", "Drawings of the substructure"],
  circulation: ["CIR-0013", "Revised site rules"],
  correspondence: ["COR-0218", "Reply to the surveyor"],
};

let browser;
let host;

/** A host with the samples, as a newcomer starts it. */
async function startDev() {
  const folder = mkdtempSync(path.join(tmpdir(), "wrkflw-samples-"));
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("WRKFLW_")));
  const line = ["--output", "json", "dev", "--ephemeral", "--port", "0", "--log", "warn"];
  const child = spawn(setting("WRKFLW_TEST_PROGRAM"), line, { cwd: folder, env, stdio: ["ignore", "pipe", "inherit"] });
  const ended = new Promise((resolve) => child.on("exit", resolve));
  let said = "";
  for await (const chunk of child.stdout) {
    said += chunk;
    if (said.trimEnd().endsWith("}")) break;
  }
  return {
    url: JSON.parse(said).url,
    async stop() {
      child.kill("SIGINT");
      await ended;
      rmSync(folder, { recursive: true });
    },
  };
}

before(async () => {
  browser = await launch();
  host = await startDev();
});
after(async () => {
  await host?.stop();
  await browser?.close();
});

async function open(address, options) {
  const context = await profile(browser, { origins: [host.url], ...options });
  const page = await context.newPage();
  await page.goto(`${host.url}${address}`);
  return page;
}

test("no text of the product's pages and of the element overflows in a language with long words", async () => {
  const found = [];
  for (const [address, text] of [["/samples", "RFA-0042"], ["/samples/rfa?person=reviewer", "rfa RFA-0042"]]) {
    const page = await open(address);
    await page.getByText(text).filter({ visible: true }).first().waitFor();
    await page.evaluate(lengthened);
    await page.getByText(/[A-Za-z]ö/).first().waitFor();
    found.push(...(await misfits(page, address)));
    await pictures(page, `samples-pseudo${address === "/samples" ? "" : "-element"}`);
    await page.context().close();
  }
  assert.deepEqual(found, []);
});

for (const [type, [number, title]] of Object.entries(TYPES)) {
  test(`the page of a ${type} shows its work first, and it is decided there`, async () => {
    const page = await open(`/samples/${type}?person=reviewer`);
    const element = page.locator("wrkflw-instance");
    await element.getByRole("heading", { name: title }).waitFor();
    await element.getByText(`${type} ${number}`).waitFor();
    await element.locator(".badge.state", { hasText: "First review" }).waitFor();
    const step = element.locator("li[aria-current=step]");
    assert.equal(await step.count(), 1);
    assert.equal(await step.evaluate((one) => getComputedStyle(one, "::before").backgroundColor), "rgb(99, 102, 241)");
    await accessible(page, type);
    await pictures(page, `sample-${type}`);
    await element.getByRole("link", { name: "APPROVE" }).click();
    await element.getByRole("button", { name: "Confirm: APPROVE" }).click();
    await element.getByText("Your decision is recorded.").waitFor();
    await page.getByRole("link", { name: "Amy Approver" }).click();
    await element.getByRole("link", { name: "APPROVE" }).click();
    await element.getByRole("button", { name: "Confirm: APPROVE" }).click();
    await element.locator(".badge.good", { hasText: "APPROVED" }).waitFor();
    // A completed document offers no action.
    assert.equal(await element.getByRole("link", { name: /APPROVE|REJECT/ }).count(), 0);
    assert.deepEqual(page.context().complaints, []);
    await page.context().close();
  });
}

test("the sample product lists its documents, in every language", async () => {
  for (const locale of ["en", "de", "th"]) {
    const page = await open("/samples", { locale });
    await page.getByRole("link", { name: /RFA-0042/ }).waitFor();
    await accessible(page, `samples-${locale}`);
    await pictures(page, `samples-${locale}`);
    assert.equal(await page.locator("html").getAttribute("lang"), locale);
    await page.getByRole("link", { name: /RFA-0042/ }).click();
    await page.locator(`wrkflw-instance .embed[lang=${locale}]`).waitFor();
    await pictures(page, `sample-${locale}`);
    assert.deepEqual(page.context().complaints, []);
    await page.context().close();
  }
});
