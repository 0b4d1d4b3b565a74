/** Problems: every response that is not a success (RFC 9457). */

import type { components } from "./schema.js";

type Problem = components["schemas"]["Problem"];

/** A response that is not a success. `problem.code` is stable; `problem.detail` is for people. */
export class ProblemError extends Error {
  override readonly name = "ProblemError";

  constructor(
    readonly problem: Problem,
    readonly response: Response,
  ) {
    super(`${problem.status} ${problem.code}: ${problem.detail}`);
  }
}

/** The problem of a response, also if a proxy sent something else. */
export async function problemOf(response: Response): Promise<Problem> {
  const text = await response.text();
  try {
    const body: unknown = JSON.parse(text);
    if (typeof body === "object" && body !== null && "code" in body) return body as Problem;
  } catch {
    // Not JSON: described below.
  }
  return {
    type: "about:blank",
    title: response.statusText,
    status: response.status,
    detail: text.slice(0, 500) || response.statusText,
    code: "unknown",
    instance: new URL(response.url || "http://unknown/").pathname,
    requestId: response.headers.get("x-request-id") ?? "",
    errors: [],
  };
}
