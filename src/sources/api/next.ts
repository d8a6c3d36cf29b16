// What the next request for a resource should be, given how the last one failed.
import type { ApiFailure } from "./failure.ts";

export type Next =
  /** Everything, as new as it gets. */
  | { readonly kind: "afresh" }
  /** Everything, not older than what we know. */
  | { readonly kind: "relist"; readonly version: string }
  /** The changes after what we know. */
  | { readonly kind: "resume"; readonly version: string };

export const afresh: Next = { kind: "afresh" };

/** A lost connection keeps its place: if all clients listed again after an outage, the server would not get up. */
export function nextAfter(next: Next, failure: ApiFailure): Next {
  switch (failure.kind) {
    case "ahead":
    case "rewound":
      return afresh;
    case "expired":
      return next.kind === "resume" ? { kind: "relist", version: next.version } : afresh;
    // A server that went back in its history is silent about a version it has not reached, but refuses to list it.
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
