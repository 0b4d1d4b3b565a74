/**
 * A client of the wrkflw API: `connect` gives the typed operations of `openapi-fetch`, with a token, idempotency keys and
 * retries. `pages` iterates over a list, `events` follows the event stream.
 */

import createClient, { type Client, type Middleware } from "openapi-fetch";
import type { components, paths } from "./schema.js";
import { bearer, type Options, type Token } from "./options.js";
import { ProblemError, problemOf } from "./problem.js";
import { retrying } from "./retry.js";

export { events, type EventOptions, type Streamed } from "./events.js";
export type { Options, Token } from "./options.js";
export { ProblemError } from "./problem.js";
export type { Retries } from "./retry.js";
export type { components, operations, paths } from "./schema.js";

/** A type of the API, such as `Schema<"TaskSummary">`. */
export type Schema<Name extends keyof components["schemas"]> = components["schemas"][Name];

/** The typed client. `client.GET("/v1/tasks")` and its like resolve to `{ data, response }`, or throw a `ProblemError`. */
export type Wrkflw = Client<paths>;

/** A client of one host, as one person. */
export function connect(options: Options): Wrkflw {
  const send = options.fetch ?? ((request: Request) => fetch(request));
  const client = createClient<paths>({
    baseUrl: options.baseUrl,
    fetch: retrying(send, options.retries),
  });
  client.use(authorization(options.token), problems);
  return client;
}

function authorization(token: Token): Middleware {
  return {
    async onRequest({ request }) {
      request.headers.set("authorization", await bearer(token));
      return request;
    },
  };
}

const problems: Middleware = {
  async onResponse({ response }) {
    if (response.ok || response.status === 304) return;
    throw new ProblemError(await problemOf(response.clone()), response);
  },
};

interface Page<Item> {
  data: Item[];
  page: { next?: string | null };
}

/**
 * Every item of a list, page by page:
 * `for await (const task of pages((after) => client.GET("/v1/tasks", { params: { query: { after } } })))`.
 */
export async function* pages<Item>(
  read: (after: string | undefined) => Promise<{ data?: Page<Item> | undefined }>,
): AsyncGenerator<Item, void, undefined> {
  let after: string | undefined;
  do {
    const { data } = await read(after);
    if (!data) return;
    yield* data.data;
    const next = data.page.next ?? undefined;
    // The list of events has a next page at its end, too: the same again.
    if (next === after) return;
    after = next;
  } while (after !== undefined);
}
