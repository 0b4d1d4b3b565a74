// The client against a running host: WRKFLW_TEST_URL, and a token for each of WRKFLW_TEST_AUTHOR and WRKFLW_TEST_REVIEWER.
import assert from "node:assert/strict";
import { randomUUID, webcrypto } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { retrying } from "../src/retry.js";
import { connect, events, pages, ProblemError, type Options, type Streamed } from "../src/index.js";

function setting(name: string): string {
  const value = process.env[name];
  assert.ok(value, `${name} is not set`);
  return value;
}
const baseUrl = setting("WRKFLW_TEST_URL");
const author: Options = { baseUrl, token: setting("WRKFLW_TEST_AUTHOR") };
const reviewer: Options = { baseUrl, token: () => setting("WRKFLW_TEST_REVIEWER") };

async function start(entityId: string, options = author) {
  const { data } = await connect(options).POST("/v1/instances", {
    body: { definitionKey: "document-approval", entityType: "document", entityId, data: { title: "A plan" } },
  });
  assert.ok(data);
  return data.instance;
}

test("a refusal is thrown with its code", async () => {
  const { states } = await start("ts-refusal");
  const claim = connect(author).POST("/v1/tasks/{id}/claim", {
    params: { path: { id: states[0]!.tasks[0]!.id } },
  });
  await assert.rejects(claim, (error) => error instanceof ProblemError && error.problem.code === "forbidden");
});

test("a command whose reply is lost is carried out once", async () => {
  let sent = 0;
  const keys = new Set<string | null>();
  const losing: Options = {
    ...author,
    retries: { pauseMs: 1 },
    async fetch(request) {
      keys.add(request.headers.get("idempotency-key"));
      const response = await fetch(request);
      sent += 1;
      if (sent === 1) throw new TypeError("the connection broke");
      return response;
    },
  };
  const { id } = await start("ts-retry", losing);
  assert.equal(sent, 2);
  assert.equal(keys.size, 1);
  const listed = await connect(author).GET("/v1/instances", { params: { query: { entityId: "ts-retry" } } });
  assert.deepEqual(listed.data?.data.map((instance) => instance.id), [id]);
});

test("a command has a key of its own also without crypto.randomUUID", async () => {
  const keys = new Set<string | null>();
  const seeing: Options = {
    ...author,
    async fetch(request) {
      keys.add(request.headers.get("idempotency-key"));
      return new Response("{}", { headers: { "content-type": "application/json" } });
    },
  };
  const given = Object.getOwnPropertyDescriptor(globalThis, "crypto");
  const onPlainHttp = { getRandomValues: (bytes: Uint8Array) => webcrypto.getRandomValues(bytes) };
  try {
    for (const value of [undefined, undefined, onPlainHttp, onPlainHttp]) {
      Object.defineProperty(globalThis, "crypto", { value, configurable: true });
      await connect(seeing).POST("/v1/instances/{id}/cancel", { params: { path: { id: "1" } }, body: { reason: "late" } });
    }
  } finally {
    if (given) Object.defineProperty(globalThis, "crypto", given);
    else Reflect.deleteProperty(globalThis, "crypto");
  }
  assert.equal(keys.size, 4);
  for (const key of keys) assert.match(key ?? "", /^[0-9a-f]{32}$/);
});

test("a request that takes no key is not sent again when its reply is lost", async () => {
  let sent = 0;
  const losing: Options = {
    ...author,
    retries: { pauseMs: 1 },
    async fetch(request) {
      sent += 1;
      assert.equal(request.headers.get("idempotency-key"), null);
      await fetch(request);
      throw new TypeError("the connection broke");
    },
  };
  const body = { action: "claim" as const, filter: { view: "available" as const } };
  await assert.rejects(connect(losing).POST("/v1/tasks/bulk", { body, params: { query: { dryRun: true } } }), TypeError);
  await assert.rejects(connect(losing).POST("/v1/embed-tokens", { body: { instanceId: randomUUID() } as never }), TypeError);
  assert.equal(sent, 2);
  const { data } = await connect(author).POST("/v1/tasks/bulk", { body, params: { query: { dryRun: true } } });
  assert.ok(data);
});

test("the operations that take a key get one, and no others", async () => {
  type Operation = { parameters?: { name: string }[] };
  const document = (await (await fetch(`${baseUrl}/openapi.json`)).json()) as { paths: Record<string, { post?: Operation }> };
  for (const [path, { post }] of Object.entries(document.paths)) {
    if (!post) continue;
    const keys: (string | null)[] = [];
    const send = retrying(async (request) => {
      keys.push(request.headers.get("idempotency-key"));
      return new Response();
    });
    await send(new Request(`${baseUrl}${path.replaceAll(/[{}]/g, "")}`, { method: "POST", body: "{}" }));
    const takes = post.parameters?.some((one) => one.name === "Idempotency-Key") ?? false;
    assert.equal(keys[0] !== null, takes, path);
  }
});

test("the list of events ends at its newest one", async () => {
  const { id } = await start("ts-newest");
  // The host shows an event when no earlier transaction is open. The stream waits for that.
  for await (const { event } of events(author, { after: "earliest" })) if (event.subject === id) break;
  const found: { id: string; subject: string }[] = [];
  const read = (after = "earliest") => connect(author).GET("/v1/events", { params: { query: { after, limit: 10 } } });
  for await (const event of pages(read)) found.push(event);
  assert.equal(found.at(-1)?.subject, id);
  assert.equal(new Set(found.map((event) => event.id)).size, found.length);
});

test("an expired token ends the stream, unless a function gives another one", async () => {
  const expired: Options = {
    ...author,
    async fetch() {
      const problem = { type: "about:blank", title: "Expired", status: 401, code: "token_expired", detail: "expired" };
      return new Response(JSON.stringify(problem), { status: 401, headers: { "content-type": "application/problem+json" } });
    },
  };
  await assert.rejects(events(expired).next(), (error) => error instanceof ProblemError && error.problem.code === "token_expired");
});

test("a busy host is asked again, and at last its problem is thrown", async () => {
  let asked = 0;
  const busy: Options = {
    ...author,
    retries: { attempts: 2, pauseMs: 1, pauseMsMax: 5 },
    async fetch() {
      asked += 1;
      return new Response("try later", { status: 503, headers: { "retry-after": "1" } });
    },
  };
  await assert.rejects(start("ts-busy", busy), (error) => error instanceof ProblemError && error.problem.status === 503);
  assert.equal(asked, 3);
});

test("pages gives every item once", async () => {
  const ids = new Set<string>();
  for (let number = 0; number < 5; number += 1) ids.add((await start(`ts-page-${number}`)).id);
  const found: string[] = [];
  const list = (after: string | undefined) =>
    connect(author).GET("/v1/instances", { params: { query: { limit: 2, ...(after === undefined ? {} : { after }) } } });
  for await (const instance of pages(list)) found.push(instance.id);
  assert.equal(new Set(found).size, found.length);
  assert.ok([...ids].every((id) => found.includes(id)));
});

test("a list is asked for several parts and fields", async () => {
  const id = (await start("ts-parts")).states[0]?.tasks[0]?.id;
  const query = { view: "available", entityType: "document", entityId: "ts-parts", include: ["outcomes", "actions"], fields: ["id", "outcomes", "actions"] } as const;
  const { data } = await connect(reviewer).GET("/v1/tasks", { params: { query: { ...query, include: [...query.include], fields: [...query.fields] } } });
  const task = data?.data[0];
  assert.ok(task && task.id === id && task.outcomes.length > 0 && task.actions);
});

/** A proxy that ends the first two event streams after so many bytes. A person may have few at a time. */
async function cutting(bytesMax: number): Promise<{ url: string; connections: () => number; close: () => void }> {
  let connections = 0;
  const pass = async (request: IncomingMessage, response: ServerResponse) => {
    connections += 1;
    const gone = new AbortController();
    response.on("close", () => gone.abort());
    const headers = new Headers({ authorization: request.headers.authorization ?? "" });
    const last = request.headers["last-event-id"];
    if (typeof last === "string") headers.set("last-event-id", last);
    const answer = await fetch(new URL(request.url ?? "/", baseUrl), { headers, signal: gone.signal });
    response.writeHead(answer.status, { "content-type": answer.headers.get("content-type") ?? "" });
    let left = connections > 2 ? Number.MAX_SAFE_INTEGER : bytesMax;
    for await (const chunk of answer.body as ReadableStream<Uint8Array> & AsyncIterable<Uint8Array>) {
      // What is not flushed would be lost with the connection.
      await new Promise((resolve) => response.write(chunk.subarray(0, left), resolve));
      left -= chunk.length;
      if (left <= 0) break;
    }
    response.destroy();
  };
  // A client that has gone ends the request to the host, which rejects.
  const server = createServer((request, response) => void pass(request, response).catch(() => response.destroy()));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}`, connections: () => connections, close: () => void server.close().closeAllConnections() };
}

test("a broken event stream is resumed without a gap or a repetition", { timeout: 60_000 }, async () => {
  const { id } = await start("ts-events");
  const task = await connect(reviewer).GET("/v1/tasks", { params: { query: { view: "available" } } });
  const own = task.data?.data.find((one) => one.instanceId === id);
  assert.ok(own);
  await connect(reviewer).POST("/v1/tasks/{id}/decide", {
    params: { path: { id: own.id } },
    body: { outcome: "APPROVE" },
  });
  const all = await connect(reviewer).GET("/v1/events", { params: { query: { limit: 100 } } });
  const expected = all.data?.data.map((event) => event.id) ?? [];
  const proxy = await cutting(3_000);
  const stop = new AbortController();
  const got: Streamed[] = [];
  for await (const streamed of events({ ...reviewer, baseUrl: proxy.url }, { after: "earliest", signal: stop.signal })) {
    got.push(streamed);
    if (got.length === expected.length) break;
  }
  stop.abort();
  proxy.close();
  assert.deepEqual(got.map(({ event }) => event.id), expected);
  assert.ok(proxy.connections() > 1);
});
