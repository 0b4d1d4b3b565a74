/** The event stream: server-sent events that are resumed after a broken connection. */

import { bearer, type Options } from "./options.js";
import { ProblemError, problemOf } from "./problem.js";
import { backoff, pause } from "./retry.js";
import type { components } from "./schema.js";

type CloudEvent = components["schemas"]["CloudEventShape"];

export interface EventOptions {
  /** The id of the last event that is known, or `earliest` for all events. Default: from now on. */
  after?: string;
  /** Ends the stream. */
  signal?: AbortSignal;
}

/** One event with the id to continue after. */
export interface Streamed {
  id: string;
  event: CloudEvent;
}

/** The longest pause between two connections, in milliseconds. */
const PAUSE_MS_MAX = 10_000;
const PAUSE = { pauseMs: 200 };
/** The host sends an event or its position at least every 15 seconds. A connection that is silent for longer is dead. */
const SILENCE_MS_MAX = 60_000;

/**
 * Every event in the order of the commits from now on, without end; since the first event with `after: "earliest"`. A broken
 * stream is resumed after the last event, so none is lost or repeated. Store `id` together with what you did, and begin after it the next time.
 */
export async function* events(
  options: Options,
  { after, signal = new AbortController().signal }: EventOptions = {},
): AsyncGenerator<Streamed, void, undefined> {
  const send = options.fetch ?? ((request: Request) => fetch(request));
  const position: Position = { after };
  const url = new URL(`${options.baseUrl.replace(/\/$/, "")}/v1/events/stream`);
  for (let attempt = 0; !signal.aborted; attempt += 1) {
    try {
      for await (const streamed of connection({ ...options, fetch: send }, url, position, signal)) {
        attempt = 0;
        yield streamed;
      }
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof TokenError) throw error.cause;
      if (!passes(error, options)) throw error;
    }
    if (!signal.aborted) {
      await pause(signal, Math.min(backoff(PAUSE, attempt), PAUSE_MS_MAX)).catch(() => undefined);
    }
  }
}

/** The function of the options has thrown this instead of giving a token. */
class TokenError extends Error {}

/** Whether a new connection may succeed. A stream ends when its token expires: a function as `token` gives a new one. */
function passes(error: unknown, options: Options): boolean {
  if (!(error instanceof ProblemError)) return true;
  const { status, code } = error.problem;
  return status >= 500 || status === 429 || (code === "token_expired" && typeof options.token === "function");
}

/** Where a stream stands. The server tells it before the first event. */
interface Position {
  after: string | undefined;
}

async function* connection(
  options: Required<Pick<Options, "token" | "fetch">>,
  url: URL,
  position: Position,
  signal: AbortSignal,
): AsyncGenerator<Streamed, void, undefined> {
  const authorization = await bearer(options.token).catch((cause: unknown) => {
    throw new TokenError("no token", { cause });
  });
  const headers = new Headers({ accept: "text/event-stream", authorization });
  if (position.after !== undefined) headers.set("last-event-id", position.after);
  const dead = new AbortController();
  const ends = () => dead.abort(signal.reason);
  signal.addEventListener("abort", ends, { once: true });
  const watch = () => setTimeout(() => dead.abort(new Error("the event stream is silent")), SILENCE_MS_MAX);
  let timer = watch();
  const alive = () => {
    clearTimeout(timer);
    timer = watch();
  };
  try {
    const response = await options.fetch(new Request(url, { headers, signal: dead.signal }));
    if (!response.ok) throw new ProblemError(await problemOf(response), response);
    for await (const { id, data } of messages(response.body, alive)) {
      if (id !== undefined) position.after = id;
      if (id !== undefined && data !== "") yield { id, event: JSON.parse(data) as CloudEvent };
    }
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", ends);
  }
}

interface Message {
  id: string | undefined;
  data: string;
}

/** The messages of a stream. A message ends with an empty line; one that was cut off is not given. */
async function* messages(
  body: ReadableStream<Uint8Array> | null,
  alive: () => void,
): AsyncGenerator<Message, void, undefined> {
  if (!body) return;
  const decoder = new TextDecoder();
  const reader = body.getReader();
  let rest = "";
  let message: Message = { id: undefined, data: "" };
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      alive();
      const lines = (rest + decoder.decode(value, { stream: true })).split(/\r?\n/);
      rest = lines.pop() ?? "";
      for (const line of lines) {
        if (line === "") {
          yield message;
          message = { id: undefined, data: "" };
        } else if (line.startsWith("id:")) {
          message.id = line.slice(3).trimStart();
        } else if (line.startsWith("data:")) {
          const text = line.slice(5).replace(/^ /, "");
          message.data = message.data === "" ? text : `${message.data}\n${text}`;
        }
      }
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}
