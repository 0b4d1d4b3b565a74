/** The settings of a client. */

import type { Retries } from "./retry.js";

/** How to reach a host. */
export interface Options {
  /** The address of the host, such as `http://127.0.0.1:8080`. */
  baseUrl: string;
  /** A bearer token, or a function that gives a valid one for each request. */
  token: Token;
  /** How often a request is repeated, and how long the pauses are. */
  retries?: Partial<Retries>;
  /** Used instead of the global `fetch`. */
  fetch?: (request: Request) => Promise<Response>;
}

export type Token = string | (() => string | Promise<string>);

/** The value of the `Authorization` header. */
export async function bearer(token: Token): Promise<string> {
  return `Bearer ${typeof token === "string" ? token : await token()}`;
}
