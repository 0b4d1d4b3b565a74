// An identity provider, `oidc-provider` on this machine, and a host whose people sign in there.
import { spawn } from "node:child_process";
import { generateKeyPairSync } from "node:crypto";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import path from "node:path";
import Provider from "oidc-provider";
import { keyOfDev, setting } from "./support.js";

const SECRET = "a secret of the client & of the provider";

/** A port that is free at this moment. */
export async function freePort() {
  const server = createServer();
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** The claims of particular people. Others have the default tenant and role. */
const PEOPLE = {
  stranger: { tenant: "nowhere", roles: ["user"] },
  admin: { tenant: "default", roles: ["admin"] },
  roleless: { tenant: "default", roles: 7 },
};

/** The provider for a host at `host`. It has another host name, so browsers take it for another site. */
export async function startProvider(host) {
  const port = await freePort();
  const issuer = `http://localhost:${port}`;
  const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  const key = { ...privateKey.export({ format: "jwk" }), kid: "k1", use: "sig", alg: "RS256" };
  const provider = new Provider(issuer, {
    clients: [
      {
        client_id: "console",
        client_secret: SECRET,
        redirect_uris: [`${host}/console/sign-in/return`],
        post_logout_redirect_uris: [`${host}/console/sign-in`],
        backchannel_logout_uri: `${host}/console/sign-out/provider`,
        backchannel_logout_session_required: true,
      },
    ],
    claims: { openid: ["sub", "tenant", "roles"], profile: ["name"] },
    conformIdTokenClaims: false,
    cookies: { keys: ["a key of the tests"] },
    features: { backchannelLogout: { enabled: true } },
    // Otherwise it would refuse to call addresses of this machine.
    fetch: (url, options) => fetch(url, { ...options, dispatcher: undefined }),
    findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id, ...(PEOPLE[id] ?? { tenant: "default", roles: ["user"] }) }) }),
    jwks: { keys: [key] },
    pkce: { required: () => true },
    ttl: { Interaction: 600, Session: 3600, Grant: 3600, IdToken: 3600 },
  });
  const failures = [];
  provider.on("backchannel.error", (_, error) => failures.push(String(error)));
  provider.on("server_error", (_, error) => failures.push(String(error)));
  const asked = [];
  const answer = provider.callback();
  const server = createServer((request, response) => {
    asked.push(request.url);
    answer(request, response);
  });
  await new Promise((resolve) => server.listen(port, "localhost", resolve));
  const stop = async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  };
  return { issuer, key: privateKey, failures, asked, stop };
}

/** A host on the database of the host at `url`, with these further settings. */
export async function startHost(url, options) {
  const home = setting("WRKFLW_TEST_HOME");
  const env = {
    PATH: process.env.PATH,
    WRKFLW_DATABASE_URL: setting("WRKFLW_TEST_DATABASE"),
    WRKFLW_SEAL_KEYS: keyOfDev(readFileSync(path.join(home, "seal.secret"), "utf8").trim()),
    WRKFLW_LISTEN: new URL(url).host,
    WRKFLW_PUBLIC_URL: url,
    WRKFLW_ROLES: "api",
    WRKFLW_LOG: "info",
    ...options,
  };
  const host = spawn(setting("WRKFLW_TEST_PROGRAM"), ["serve"], { env, stdio: ["ignore", "pipe", "pipe"] });
  let log = "";
  const ended = new Promise((resolve) => host.once("exit", resolve));
  const ready = new Promise((resolve, reject) => {
    ended.then(() => reject(new Error(`the host ended: ${log}`)));
    const look = async () => {
      const answer = await fetch(`${url}/readyz`).catch(() => null);
      if (answer?.ok) resolve();
      else setTimeout(look, 100);
    };
    look();
  });
  for (const stream of [host.stdout, host.stderr]) stream.on("data", (text) => (log += text));
  await ready;
  const stop = async () => {
    host.kill("SIGTERM");
    await ended;
  };
  return { url, log: () => log, stop };
}

/** The settings of a host whose people sign in at this provider. */
export function signingIn(issuer) {
  return {
    WRKFLW_JWT_ISSUER: issuer,
    WRKFLW_JWKS_URL: `${issuer}/jwks`,
    WRKFLW_JWT_AUDIENCE: "wrkflw-api",
    WRKFLW_OIDC_CLIENT_ID: "console",
    WRKFLW_OIDC_CLIENT_SECRET: SECRET,
  };
}
