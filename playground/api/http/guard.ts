// Authenticates requests: checks the Host header, refuses requests from web pages, and checks the bearer token.
import { createHash, timingSafeEqual } from "node:crypto";
import type { IncomingMessage } from "node:http";
import { badRequest, Failure } from "./failure.ts";

export type Guard = {
  /** The names and addresses that clients reach the server by, without a port. */
  readonly hosts: ReadonlySet<string>;
  /** Whether the client is authenticated, if it must be. */
  readonly isKnown: (message: IncomingMessage) => boolean;
};

/** Throws Failure: 400, 401 or 403. */
export function mustBeAllowed(message: IncomingMessage, { hosts, isKnown }: Guard): void {
  const { host, origin } = message.headers;
  if (host === undefined) throw badRequest("the request has no Host header");
  // Protects from DNS rebinding: a web page's own name that resolves to this address.
  if (!hosts.has(hostname(host)))
    throw new Failure(403, "Forbidden", `the host ${JSON.stringify(host)} is not served here`);
  // Only browsers send an Origin header; kubectl and the proxies do not.
  if (origin !== undefined)
    throw new Failure(403, "Forbidden", "requests from web pages (with an Origin header) are refused");
  if (!isKnown(message)) throw new Failure(401, "Unauthorized", "Unauthorized");
}

/** Compares hashes in constant time. */
export function hasToken({ headers }: IncomingMessage, token: string): boolean {
  const digest = (text: string) => createHash("sha256").update(text).digest();
  return timingSafeEqual(digest(headers.authorization ?? ""), digest(`Bearer ${token}`));
}

/** `127.0.0.1:7443`, `localhost`, `[::1]:7443`. */
function hostname(host: string): string {
  return host
    .replace(/:\d*$/, "")
    .replace(/^\[(.*)\]$/, "$1")
    .toLowerCase();
}
