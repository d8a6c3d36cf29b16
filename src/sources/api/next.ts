// What the next request for a resource should be, given how the last one failed.
import type { ApiFailure } from "./failure.ts";

export type Next =
  /** List the newest state. */
  | { readonly kind: "list" }
  /** List a state that is not older than this version. */
  | { readonly kind: "relist"; readonly version: string }
  /** Watch from this version. */
  | { readonly kind: "resume"; readonly version: string };

export const listNewest: Next = { kind: "list" };

/** A lost connection resumes: if all clients listed again after an outage, the server would be overloaded. */
export function nextAfter(next: Next, failure: ApiFailure): Next {
  switch (failure.kind) {
    case "ahead":
    case "rewound":
      return listNewest;
    case "expired":
      return next.kind === "resume" ? { kind: "relist", version: next.version } : listNewest;
    // A server whose versions went backwards sends nothing for a version it has not reached, but refuses to list it.
    case "silent":
    case "garbled":
      return next.kind === "resume" ? { kind: "relist", version: next.version } : next;
    case "throttled":
    case "refused":
    case "fruitless":
    case "lost":
      return next;
  }
}
