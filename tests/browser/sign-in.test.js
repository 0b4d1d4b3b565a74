// Sign-in and sign-out: one click in development, cookies, forms of other sites, frames.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { after, before, test } from "node:test";
import { freePort, startHost } from "./provider.js";
import { launch, profile, signedIn, sound, url } from "./support.js";

let browser;
before(async () => (browser = await launch()));
after(() => browser.close());

test("the first page redirects to the sign-in, and from there to the requested page", async () => {
  const context = await profile(browser);
  const page = await context.newPage();
  await page.goto(url);
  assert.equal(new URL(page.url()).pathname, "/console/sign-in");
  await sound(page, "sign-in");
  await page.goto(`${url}/console?view=all`);
  await page.getByRole("button", { name: /Rob Reviewer/ }).click();
  assert.equal(page.url(), `${url}/console?view=all`);
  await page.getByRole("link", { name: "Rob Reviewer" }).waitFor();
  assert.deepEqual(context.complaints, []);
  await context.close();
});

test("the cookie is for this host alone, and no script sees it", async () => {
  const page = await signedIn(browser, "reviewer");
  const cookies = await page.context().cookies();
  const session = cookies.find((one) => one.name === "__Host-wrkflw-session");
  assert.deepEqual(
    { httpOnly: session.httpOnly, secure: session.secure, sameSite: session.sameSite, path: session.path, expires: session.expires },
    { httpOnly: true, secure: true, sameSite: "Lax", path: "/", expires: -1 },
  );
  assert.equal(await page.evaluate(() => document.cookie), "");
  await page.context().close();
});

test("after a sign-out, the old cookie is not accepted", async () => {
  const page = await signedIn(browser, "reviewer");
  const cookies = await page.context().cookies();
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.goto(`${url}/console`);
  assert.equal(new URL(page.url()).pathname, "/console/sign-in");
  await page.context().addCookies(cookies);
  await page.goto(`${url}/console`);
  assert.equal(new URL(page.url()).pathname, "/console/sign-in");
  await page.context().close();
});

test("a token that is not valid is refused with the reason", async () => {
  const context = await profile(browser);
  const page = await context.newPage();
  await page.goto(`${url}/console/sign-in`);
  await page.getByText("Sign in with an access token").click();
  await page.getByLabel("Access token").fill("nonsense");
  await page.getByRole("button", { name: "Sign in", exact: true }).click();
  await page.getByRole("alert").getByText("The token was not accepted").waitFor();
  await context.close();
});

test("forms of other sites, and forms without the token of the session, change nothing", async () => {
  const page = await signedIn(browser, "reviewer");
  const cookies = (await page.context().cookies()).map((one) => `${one.name}=${one.value}`).join("; ");
  const post = (headers, body) =>
    fetch(`${url}/console/sign-out`, { method: "POST", redirect: "manual", body: new URLSearchParams(body), headers: { cookie: cookies, ...headers } });
  assert.equal((await post({ origin: "http://evil.example" }, {})).status, 403);
  assert.equal((await post({ origin: url, "sec-fetch-site": "cross-site" }, {})).status, 403);
  assert.equal((await post({}, {})).status, 403);
  assert.equal((await post({ origin: url }, { token: "guessed" })).status, 403);
  await page.reload();
  assert.equal(new URL(page.url()).pathname, "/console", "still signed in");

  // A page of another site lets the browser send the form.
  const evil = createServer((_, response) => {
    response.setHeader("content-type", "text/html");
    response.end(`<form method=post action="${url}/console/sign-out"><button>go</button></form>`);
  });
  await new Promise((resolve) => evil.listen(0, "127.0.0.1", resolve));
  const other = await page.context().newPage();
  await other.goto(`http://localhost:${evil.address().port}/`);
  await other.getByRole("button").click();
  await other.waitForURL(`${url}/console/**`);
  await page.reload();
  assert.equal(new URL(page.url()).pathname, "/console", "still signed in");
  evil.close();
  await page.context().close();
});

test("no other site can frame a page, and every answer says so", async () => {
  for (const path of ["/console/sign-in", "/console/nowhere"]) {
    const answer = await fetch(url + path);
    assert.match(answer.headers.get("content-security-policy"), /default-src 'none'.*frame-ancestors 'none'/);
    assert.equal(answer.headers.get("x-frame-options"), "DENY");
    assert.equal(answer.headers.get("x-content-type-options"), "nosniff");
    assert.equal(answer.headers.get("cache-control"), "no-store");
  }
});

test("a browser shows no page of the console inside a page of another site", async (t) => {
  const page = await signedIn(browser, "reviewer", { origins: [url, "http://localhost"] });
  const server = createServer((request, response) => {
    response.setHeader("content-type", "text/html");
    response.end(request.url === "/own" ? "<h1>own page</h1>" : ["/own", `${url}/console`, `${url}/console/me`, `${url}/console/sign-in`].map((one) => `<iframe src="${one}"></iframe>`).join(""));
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => server.close().closeAllConnections());
  await page.goto(`http://localhost:${server.address().port}/`);
  const frames = page.frames().slice(1);
  assert.equal(frames.length, 4);
  await frames[0].getByText("own page").waitFor();
  for (const frame of frames.slice(1)) assert.equal(await frame.locator("form, [href*='/console']").count(), 0, "nothing of the console");
  for (const frame of frames.slice(1)) assert.match(frame.url(), /^chrome-error:/);
  const refusals = page.context().complaints.filter((one) => /frame/i.test(one));
  assert.ok(refusals.length >= 3, refusals.join(", "));
  await page.context().close();
});

test("a production host has no demo people, neither on its page nor by their form", async () => {
  const host = await startHost(`http://127.0.0.1:${await freePort()}`, { WRKFLW_JWT_SECRET: "0123456789abcdef0123456789abcdef" });
  try {
    const page = await (await profile(browser, { origins: [host.url, url] })).newPage();
    await page.goto(`${url}/console/sign-in`);
    assert.ok((await page.locator("button[name=person]").count()) >= 6, "in development they are there");
    await page.goto(`${host.url}/console/sign-in`);
    await page.getByLabel("Access token").waitFor({ state: "attached" });
    assert.equal(await page.locator("[name=person]").count(), 0);
    assert.equal(await page.getByText("Rob Reviewer").count(), 0);
    await sound(page, "sign-in-served");
    const answer = await page.request.post(`${host.url}/console/sign-in`, { headers: { origin: host.url }, form: { person: "admin", to: "/console" }, maxRedirects: 0 });
    assert.ok(!(answer.headers()["set-cookie"] ?? "").includes("wrkflw-session="), "the form of a demo person signs nobody in");
    await page.goto(`${host.url}/console`);
    assert.equal(new URL(page.url()).pathname, "/console/sign-in");
    await page.context().close();
  } finally {
    await host.stop();
  }
});

test("the language is that of the browser until a person chooses another", async () => {
  const context = await profile(browser, { locale: "de-DE" });
  const page = await context.newPage();
  await page.goto(`${url}/console/sign-in`);
  await page.getByRole("heading", { name: "Anmelden" }).waitFor();
  await page.getByRole("button", { name: "ไทย" }).click();
  assert.equal(await page.locator("html").getAttribute("lang"), "th");
  await context.close();
});
