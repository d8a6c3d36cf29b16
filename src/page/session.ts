// Who may read the page: checks Host and Origin of every request, and exchanges the token for a cookie.
import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import type { IncomingMessage } from "node:http";

/** Names of loopback: with any other one a page of another site could be the client (DNS rebinding). Ports differ behind `kubectl port-forward`. */
const ownHosts = /^(127\.0\.0\.1|localhost|\[::1\])(:\d{1,5})?$/;

const mostSessions = 32;

export type Refusal = { readonly status: 401 | 403; readonly reason: string };

export class Sessions {
  readonly token = randomBytes(24).toString("base64url");
  /** Cookies ignore ports: two pages of one machine need different names. */
  readonly #cookie = `turnout-${randomBytes(6).toString("hex")}`;
  /** In order of creation. */
  readonly #open = new Set<string>();

  /** null: the request comes from a page of this server, or from no page at all. */
  refuseForeign({ headers, method }: IncomingMessage): Refusal | null {
    const { host = "", origin } = headers;
    if (!ownHosts.test(host))
      return { status: 403, reason: "the host must be 127.0.0.1, [::1] or localhost" };
    const isChange = method !== "GET" && method !== "HEAD";
    if (origin === undefined ? isChange : origin !== `http://${host}`)
      return { status: 403, reason: "the request comes from another origin" };
    const site = headers["sec-fetch-site"];
    if (site !== undefined && site !== "same-origin" && site !== "none")
      return { status: 403, reason: "the request comes from another site" };
    return null;
  }

  /** null: the request has the cookie of a session, or the token itself. */
  refuseUnknown({ headers }: IncomingMessage): Refusal | null {
    const [, bearer] = /^Bearer (\S+)$/.exec(headers.authorization ?? "") ?? [];
    if (bearer !== undefined && this.#isToken(bearer)) return null;
    const cookies = (headers.cookie ?? "").split(/; */).map((each) => each.split("="));
    const isOpen = cookies.some(([name, value]) => name === this.#cookie && this.#open.has(value ?? ""));
    return isOpen ? null : { status: 401, reason: "no session; open the address that turnout page prints" };
  }

  /** The cookie of a new session; null: the token is wrong. */
  open(token: string): string | null {
    if (!this.#isToken(token)) return null;
    const id = randomBytes(24).toString("base64url");
    this.#open.add(id);
    for (const oldest of this.#open) {
      if (this.#open.size <= mostSessions) break;
      this.#open.delete(oldest);
    }
    return `${this.#cookie}=${id}; Path=/; HttpOnly; SameSite=Strict`;
  }

  #isToken(text: string): boolean {
    const hash = (value: string) => createHash("sha256").update(value).digest();
    return timingSafeEqual(hash(text), hash(this.token));
  }
}
