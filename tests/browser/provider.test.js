// Sign-in and sign-out at an identity provider, and attacks on them.
import assert from "node:assert/strict";
import { sign } from "node:crypto";
import { createServer } from "node:http";
import { after, before, test } from "node:test";
import { freePort, signingIn, startHost, startProvider } from "./provider.js";
import { accessible, launch, misfits, pictures } from "./support.js";

let browser, host, provider;
before(async () => {
  browser = await launch();
  const url = `http://127.0.0.1:${await freePort()}`;
  provider = await startProvider(url);
  host = await startHost(url, signingIn(provider.issuer));
});
after(async () => {
  await browser.close();
  await host.stop();
  await provider.stop();
});

async function fresh() {
  const context = await browser.newContext({ locale: "en" });
  return context.newPage();
}

const pathOf = (page) => new URL(page.url()).pathname;

/** Begins a sign-in at the host, and goes to the sign-in form of the provider. */
async function toProvider(page, to = "/console") {
  await page.goto(host.url + to);
  await page.getByRole("link", { name: "Sign in with the identity provider" }).click();
  await page.waitForURL(`${provider.issuer}/interaction/**`);
}

/** Fills in the sign-in form of the provider as this person. */
async function identify(page, person) {
  await page.locator("input[name=login]").fill(person);
  await page.locator("input[name=password]").fill("any");
  await page.locator("button[type=submit]").click();
  await page.getByText("Authorize").first().waitFor();
}

async function consent(page) {
  await page.locator("button[type=submit]").click();
  await page.waitForURL(`${host.url}/**`);
}

async function signIn(page, person, to) {
  await toProvider(page, to);
  await identify(page, person);
  await consent(page);
}

const session = async (page) => (await page.context().cookies(host.url)).find((one) => one.name === "__Host-wrkflw-session");

test("a person signs in at the provider, and is on the requested page", async () => {
  const page = await fresh();
  await page.goto(`${host.url}/console/me`);
  await accessible(page, "sign-in with a provider");
  await pictures(page, "sign-in-provider");
  await signIn(page, "reviewer", "/console/me");
  assert.equal(page.url(), `${host.url}/console/me`);
  await page.getByRole("heading", { name: "Rob Reviewer" }).waitFor();
  const begun = (await page.context().cookies(host.url)).filter((one) => one.name === "__Host-wrkflw-sign-in");
  assert.deepEqual(begun, [], "the cookie that bound the sign-in to the browser is deleted");
  await page.context().close();
});

test("a person signs out here and at the provider, which then asks again, and no address of the host contains a token", async () => {
  const page = await fresh();
  const addresses = [];
  page.on("request", (request) => addresses.push(request.url()));
  await signIn(page, "author");
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.waitForURL(`${provider.issuer}/session/end?id_token_hint=**`);
  assert.equal(await session(page), undefined);
  await page.getByRole("button", { name: "Yes, sign me out" }).click();
  await page.waitForURL(`${host.url}/console/sign-in`);
  await toProvider(page);
  assert.equal(await page.locator("input[name=login]").count(), 1, "the provider shows its sign-in form");
  for (const address of addresses.filter((one) => one.startsWith(host.url))) assert.doesNotMatch(address, /eyJ/);
  assert.doesNotMatch(host.log(), /eyJ|code=/);
  await page.context().close();
});

test("the pages of the sign-in with a provider are accessible in every language", async () => {
  for (const locale of ["en", "de", "th"]) {
    const context = await browser.newContext({ locale });
    const page = await context.newPage();
    const seen = async (name) => {
      assert.equal(await page.locator("html").getAttribute("lang"), locale, name);
      await accessible(page, `${name} in ${locale}`);
      assert.deepEqual(await misfits(page, `${name} in ${locale}`), []);
      await pictures(page, `${name}-${locale}`);
    };
    await page.goto(`${host.url}/console/sign-in`);
    await seen("sign-in-provider");
    await page.goto(`${host.url}/console/sign-in/return?state=unknown&code=1`);
    await page.getByRole("alert").waitFor();
    await seen("sign-in-refused");
    await page.locator("a[href*='/sign-in/provider']").click();
    await page.waitForURL(`${provider.issuer}/interaction/**`);
    await identify(page, "author");
    await consent(page);
    // The script of the page redirects to the provider at once. So the test blocks the page's scripts. It does not switch off
    // scripts in the browser, because axe needs them.
    await context.route("**/*.js", (route) => route.abort());
    await page.locator("form[action='/console/sign-out'] button").click();
    await page.locator("a[data-onward]").waitFor();
    await seen("signed-out");
    await context.close();
  }
});

test("without scripts a person signs out at the provider by a link", async () => {
  const context = await browser.newContext({ locale: "en", javaScriptEnabled: false });
  const page = await context.newPage();
  await signIn(page, "author");
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.getByRole("heading", { name: "You are signed out" }).waitFor();
  await page.getByRole("link", { name: "Sign out at the identity provider, too" }).click();
  await page.waitForURL(`${provider.issuer}/session/end?**`);
  await context.close();
});

test("a person who signs out at the provider is signed out here at once", async () => {
  const [page, other] = [await fresh(), await fresh()];
  await signIn(page, "reviewer2");
  await signIn(other, "reviewer2");
  const there = await page.context().newPage();
  await there.goto(`${provider.issuer}/session/end`);
  await there.getByRole("button", { name: "Yes, sign me out" }).click();
  await there.getByText("Sign-out Success").waitFor();
  assert.deepEqual(provider.failures, []);
  await page.goto(`${host.url}/console`);
  assert.equal(pathOf(page), "/console/sign-in");
  await other.goto(`${host.url}/console`);
  assert.equal(pathOf(other), "/console", "another session at the provider is kept");
  await page.context().close();
  await other.context().close();
});

test("a code counts once, and only in the browser that asked for it", async () => {
  const [attacker, victim] = [await fresh(), await fresh()];
  // The attacker keeps the callback address with their own code, for the victim to open: login CSRF.
  await toProvider(attacker);
  await identify(attacker, "outsider");
  await attacker.context().clearCookies({ name: "__Host-wrkflw-sign-in" });
  await consent(attacker);
  const planted = attacker.url();
  assert.match(planted, /\/console\/sign-in\/return\?.*code=/);
  await attacker.getByRole("alert").getByText("began in another browser").waitFor();
  assert.equal(await session(attacker), undefined);
  await victim.goto(planted);
  await victim.getByRole("alert").getByText("began in another browser").waitFor();
  assert.equal(await session(victim), undefined);

  // The same while the victim's own sign-in is under way, which can still be completed.
  await toProvider(victim);
  const second = await victim.context().newPage();
  await second.goto(planted);
  await second.getByRole("alert").getByText("began in another browser").waitFor();
  const kept = (await victim.context().cookies(host.url)).find((one) => one.name === "__Host-wrkflw-sign-in");
  const addresses = [];
  victim.on("request", (request) => addresses.push(request.url()));
  await identify(victim, "reviewer");
  await consent(victim);
  assert.equal(pathOf(victim), "/console");

  // Their code counts once, also together with the cookie that the browser deleted then.
  const used = addresses.find((one) => one.includes("/console/sign-in/return?"));
  const repeated = await fetch(used, { headers: { cookie: `${kept.name}=${kept.value}` }, redirect: "manual" });
  assert.equal(repeated.status, 401);
  assert.match(await repeated.text(), /refused the sign-in: invalid_grant/);
  assert.doesNotMatch(repeated.headers.get("set-cookie"), /__Host-wrkflw-session=/);

  // A stolen code is useless in the attacker's own sign-in, which has another verifier.
  const again = await fresh();
  await toProvider(again);
  const begun = (await again.context().cookies(host.url)).find((one) => one.name === "__Host-wrkflw-sign-in");
  const state = provider.asked.filter((one) => one.startsWith("/auth?")).at(-1);
  const own = new URL(state, provider.issuer).searchParams.get("state");
  const stolen = new URL(planted).searchParams.get("code");
  const injected = await fetch(`${host.url}/console/sign-in/return?code=${stolen}&state=${own}`, {
    headers: { cookie: `${begun.name}=${begun.value}` },
    redirect: "manual",
  });
  assert.equal(injected.status, 401);
  assert.match(await injected.text(), /refused the sign-in: invalid_grant/);
  assert.match(injected.headers.get("set-cookie"), /__Host-wrkflw-sign-in=;.*Max-Age=0/);
  for (const one of [attacker, victim, again]) await one.context().close();
});

test("a used callback address, and one with another state or issuer, signs nobody in", async () => {
  const page = await fresh();
  const addresses = [];
  page.on("request", (request) => addresses.push(request.url()));
  await signIn(page, "reviewer");
  const used = addresses.find((one) => one.includes("/console/sign-in/return?"));
  // A page without a session reloads itself, possibly after the test has opened the address. So the test uses another page.
  await page.close();
  await page.context().clearCookies({ name: "__Host-wrkflw-session" });
  const next = await page.context().newPage();
  await next.goto(used);
  await next.getByRole("alert").getByText("began in another browser").waitFor();
  assert.equal(await session(next), undefined);

  const other = await fresh();
  await toProvider(other);
  const begun = (await other.context().cookies(host.url)).find((one) => one.name === "__Host-wrkflw-sign-in");
  const state = new URL(provider.asked.filter((one) => one.startsWith("/auth?")).at(-1), provider.issuer).searchParams.get("state");
  const back = (query) =>
    fetch(`${host.url}/console/sign-in/return?${new URLSearchParams(query)}`, { headers: { cookie: `${begun.name}=${begun.value}` }, redirect: "manual" });
  for (const query of [{ code: "a" }, { code: "a", state: `${state}x` }, { code: "a", state: "" }, { code: "a", state, iss: "https://evil.example" }]) {
    const answer = await back(query);
    assert.match(await answer.text(), /began in another browser/, JSON.stringify(query));
    assert.equal(answer.headers.get("set-cookie"), null, "the sign-in goes on");
  }
  // The page shows only codes of errors, no texts from the address.
  const refused = await back({ state, error: "access_denied", error_description: "call 555 1234" });
  const text = await refused.text();
  assert.match(text, /refused the sign-in: access_denied/);
  assert.doesNotMatch(text, /555/);
  const foreign = await back({ state, error: "<b>call us</b>" });
  assert.match(await foreign.text(), /unknown_error/);
  await page.context().close();
  await other.context().close();
});

test("a sign-in begins a new session, and redirects only into the console", async () => {
  const page = await fresh();
  await signIn(page, "reviewer");
  const first = await session(page);
  await page.goto(`${host.url}/console/sign-in?next=${encodeURIComponent("https://evil.example/")}`);
  await page.getByRole("link", { name: "Sign in with the identity provider" }).click();
  await page.waitForURL(`${host.url}/console`);
  const second = await session(page);
  assert.notEqual(second.value, first.value);
  const old = await fetch(`${host.url}/console`, { headers: { cookie: `${first.name}=${first.value}` }, redirect: "manual" });
  assert.equal(old.status, 303, "the earlier session has ended");
  const beginning = await fetch(`${host.url}/console/sign-in/provider?next=//evil.example`, { redirect: "manual" });
  const [, next] = beginning.headers.get("set-cookie").match(/__Host-wrkflw-sign-in=[^.]+\.([^;]+)/);
  assert.equal(Buffer.from(next, "base64url").toString(), "/console");
  assert.match(beginning.headers.get("set-cookie"), /Secure; HttpOnly; SameSite=Lax; Max-Age=600/);
  await page.context().close();
});

test("a page of another site begins no sign-in", async () => {
  const page = await fresh();
  const evil = createServer((_, response) => {
    response.setHeader("content-type", "text/html");
    response.end(`<a href="${host.url}/console/sign-in/provider">go</a>`);
  });
  await new Promise((resolve) => evil.listen(0, "localhost", resolve));
  await page.goto(`http://localhost:${evil.address().port}/`);
  await page.getByRole("link").click();
  await page.getByRole("link", { name: "Sign in with the identity provider" }).waitFor();
  const cookies = await page.context().cookies(host.url);
  assert.deepEqual(cookies.map((one) => one.name), []);
  evil.close();
  await page.context().close();
});

test("a person without a tenant or a usable role sees what to correct", async () => {
  for (const [person, said] of [["stranger", "there is no tenant nowhere"], ["roleless", "put the claim roles into the ID token"]]) {
    const page = await fresh();
    await signIn(page, person);
    await page.getByRole("alert").getByText(said).waitFor();
    assert.equal(await session(page), undefined);
    await page.context().close();
  }
});

test("only the provider ends sessions, and each of its tokens once", async () => {
  const page = await fresh();
  await signIn(page, "reviewer");
  const now = Math.floor(Date.now() / 1000);
  const content = {
    iss: provider.issuer,
    aud: "console",
    sub: "reviewer",
    iat: now,
    exp: now + 120,
    jti: `j-${now}`,
    events: { "http://schemas.openid.net/event/backchannel-logout": {} },
  };
  const part = (value) => Buffer.from(JSON.stringify(value)).toString("base64url");
  const token = (content, head = { alg: "RS256", kid: "k1", typ: "logout+jwt" }) => {
    const text = `${part(head)}.${part(content)}`;
    return `${text}.${sign("RSA-SHA256", Buffer.from(text), provider.key).toString("base64url")}`;
  };
  const post = async (logout_token) => {
    const body = new URLSearchParams(logout_token === undefined ? {} : { logout_token });
    return (await fetch(`${host.url}/console/sign-out/provider`, { method: "POST", body })).status;
  };
  const good = token(content);
  for (const bad of [
    undefined,
    "nonsense",
    `${good.slice(0, -8)}AAAAAAAA`,
    `${part({ alg: "none" })}.${part(content)}.`,
    token({ ...content, aud: "wrkflw-api" }),
    token({ ...content, iss: "https://evil.example" }),
    token({ ...content, events: undefined }),
    token({ ...content, nonce: "n" }),
    token({ ...content, sub: undefined }),
    token({ ...content, iat: now - 3600, exp: undefined }),
    "a".repeat(20_000),
  ]) {
    assert.equal(await post(bad), 400, bad?.slice(0, 40));
  }
  await page.reload();
  assert.equal(pathOf(page), "/console", "still signed in");
  // The page of an ended session redirects to the sign-in, so the test uses another page.
  await page.close();
  assert.equal(await post(good), 200);
  const next = await page.context().newPage();
  await next.goto(`${host.url}/console`);
  assert.equal(pathOf(next), "/console/sign-in");
  // The provider still has a session of the person, and shows no form.
  await next.getByRole("link", { name: "Sign in with the identity provider" }).click();
  await next.waitForURL(`${host.url}/console`);
  assert.equal(await post(good), 400, "it was used before");
  await next.reload();
  assert.equal(pathOf(next), "/console");
  await page.context().close();
});

test("while the provider is down, the page says so, and bearer tokens sign in as before", async () => {
  const down = `http://localhost:${await freePort()}`;
  const other = await startHost(`http://127.0.0.1:${await freePort()}`, signingIn(down));
  const page = await fresh();
  await page.goto(`${other.url}/console/sign-in`);
  await page.getByRole("link", { name: "Sign in with the identity provider" }).click();
  await page.getByRole("alert").getByText("cannot be reached now").waitFor();
  await page.getByText("Sign in with an access token").click();
  await page.getByLabel("Access token").waitFor();
  await page.context().close();
  await other.stop();
});
