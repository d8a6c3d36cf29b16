// Fault injection for tests: which requests fail, how, and how often.
import type { Resource } from "./objects/resources.ts";

export type Verb = "get" | "list" | "watch" | "create" | "update" | "patch" | "delete" | "deletecollection";

export type Fault =
  /** Answers with a Status: 410, 429, 500, 503, … */
  | { readonly kind: "status"; readonly code: number; readonly retryAfter?: number; readonly reason?: string }
  /** Accepts the request and never answers. */
  | { readonly kind: "hang" }
  /** Closes the connection without an answer. */
  | { readonly kind: "drop" }
  /** Answers 200 with a body that is not from Kubernetes. */
  | { readonly kind: "body"; readonly contentType: string; readonly body: string | Buffer }
  /** Opens the stream with raw bytes before anything else, e.g. a broken line. */
  | { readonly kind: "prelude"; readonly body: string | Buffer }
  /** Ignores `sendInitialEvents`, as an old server does. */
  | { readonly kind: "ignore-initial-events" }
  | ByteFault;

/** A fault in the bytes of a response. */
export type ByteFault =
  /** Resets the connection after this many bytes. */
  | { readonly kind: "reset"; readonly afterBytes: number }
  /** Ends the response cleanly after this many bytes. */
  | { readonly kind: "truncate"; readonly afterBytes: number }
  /** Sends headers but no body; the connection stays open. */
  | { readonly kind: "silent" }
  /** Sends this many bytes at a time. */
  | { readonly kind: "drip"; readonly bytes: number; readonly everyMs: number };

export type RequestMatch = {
  readonly verb?: Verb;
  /** Plural name. */
  readonly resource?: string;
};

export function isByteFault(fault: Fault | null): fault is ByteFault {
  return fault !== null && ["reset", "truncate", "silent", "drip"].includes(fault.kind);
}

export class Faults {
  #armed: { readonly match: RequestMatch; readonly fault: Fault; times: number }[] = [];
  /** Whether streaming lists are refused with 422, as by a server whose gate is off. */
  refuseStreamingLists = false;
  /** Called for every request that a fault was applied to. */
  onFault: (fault: Fault) => void = () => {};

  /** How many requests will still fail. */
  get armed(): number {
    return this.#armed.reduce((sum, { times }) => sum + times, 0);
  }

  /** Applies the fault to the next `times` matching requests, in the order of arming. */
  arm(match: RequestMatch, fault: Fault, times = 1): void {
    this.#armed.push({ match, fault, times });
  }

  clear(): void {
    this.#armed = [];
    this.refuseStreamingLists = false;
  }

  /** The fault for this request; it counts as used. */
  take(verb: Verb, resource: Resource): Fault | null {
    const armed = this.#armed.find(({ match }) => matches(match, verb, resource));
    if (!armed) return null;
    if (--armed.times === 0) this.#armed = this.#armed.filter((other) => other !== armed);
    this.onFault(armed.fault);
    return armed.fault;
  }
}

export function matches(match: RequestMatch, verb: Verb, resource: Resource): boolean {
  return (match.verb ?? verb) === verb && (match.resource ?? resource.plural) === resource.plural;
}
