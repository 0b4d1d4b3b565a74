/** Repeats a request after a transient failure, always with the same idempotency key. */

/** How often a request is repeated, and how long the pauses are. */
export interface Retries {
  /** Attempts after the first one. Default: 4. */
  attempts: number;
  /** The first pause in milliseconds. It doubles, and a part of it is random. Default: 200. */
  pauseMs: number;
  /** The longest pause in milliseconds, also if the host asks for a longer one. Default: 10 000. */
  pauseMsMax: number;
}

const DEFAULTS: Retries = { attempts: 4, pauseMs: 200, pauseMsMax: 10_000 };
/** Statuses after which the same request may succeed: the host did nothing, or finds by the key what it did. */
const PASSING = new Set([429, 502, 503, 504]);
/** Operations that take a key. All others refuse it. */
const KEYED = /\/v1\/(instances(\/[^/]+\/.+)?|tasks\/.+|signals\/.+|migrations|cancellations|people\/.+\/absences)$/;
/** Operations that take no key, and that have another effect when they are repeated. They are repeated only after 429, when nothing was done. */
const KEYLESS = /\/v1\/(subscriptions(\/[^/]+\/test)?|embed-tokens|events\/replay)$/;
const PASSING_KEYLESS = new Set([429]);

type Send = (request: Request) => Promise<Response>;

/**
 * `send` with retries. A command gets an `Idempotency-Key`. A request without a key is repeated only if that has no further effect, or if
 * the host did nothing.
 */
export function retrying(send: Send, given: Partial<Retries> = {}): Send {
  const retries = { ...DEFAULTS, ...given };
  return async (request) => {
    const lacksKey = request.method === "POST" && !request.headers.has("idempotency-key");
    const isKeyless = lacksKey && (await takesNoKey(request));
    const isKeyed = lacksKey && !isKeyless && KEYED.test(new URL(request.url).pathname);
    if (isKeyed) request.headers.set("idempotency-key", newKey());
    const passing = isKeyless ? PASSING_KEYLESS : PASSING;
    for (let attempt = 0; ; attempt += 1) {
      const isLast = attempt >= retries.attempts;
      let asked = 0;
      try {
        const response = await send(request.clone());
        if (isLast || !passing.has(response.status)) return response;
        // A date is not used.
        const seconds = Number(response.headers.get("retry-after") ?? 0);
        asked = Number.isFinite(seconds) ? 1000 * seconds : 0;
        await response.body?.cancel();
      } catch (error) {
        if (isLast || isKeyless || request.signal.aborted) throw error;
      }
      await pause(request.signal, Math.min(Math.max(asked, backoff(retries, attempt)), retries.pauseMsMax));
    }
  };
}

/** A new key. It must be unique, not secret. Pages on plain HTTP have no `randomUUID`, and Node 18 has no global `crypto`. */
function newKey(): string {
  const source: Partial<Crypto> | undefined = globalThis.crypto;
  if (source?.randomUUID) return source.randomUUID();
  const bytes = Uint8Array.from({ length: 16 }, () => Math.floor(Math.random() * 256));
  source?.getRandomValues?.(bytes);
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Whether the host takes no key for the request. A command on the tasks of a filter takes none: repeated, it may find other tasks. */
async function takesNoKey(request: Request): Promise<boolean> {
  const { pathname } = new URL(request.url);
  if (!pathname.endsWith("/v1/tasks/bulk")) return KEYLESS.test(pathname);
  const body: unknown = await request.clone().json().catch(() => undefined);
  return typeof body === "object" && body !== null && "filter" in body;
}

/** The pause after this attempt, in milliseconds: `pauseMs`, doubled for each earlier attempt, times a random factor from 0.5 to 1. */
export function backoff(retries: Pick<Retries, "pauseMs">, attempt: number): number {
  return retries.pauseMs * 2 ** attempt * (0.5 + Math.random() / 2);
}

/** Waits. Rejects as soon as the signal aborts. */
export function pause(signal: AbortSignal, milliseconds: number): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(signal.reason);
    const ends = () => {
      clearTimeout(timer);
      reject(signal.reason);
    };
    const timer = setTimeout(() => {
      signal.removeEventListener("abort", ends);
      resolve();
    }, milliseconds);
    signal.addEventListener("abort", ends, { once: true });
  });
}
