// The switchboard of misbehaviour: which requests are answered wrongly, how, and how often.
import type { Resource } from "./objects/resources.ts";

export type Verb = "get" | "list" | "watch" | "create" | "update" | "patch" | "delete" | "deletecollection";

export type Fault =
  /** Answers with a Status: 410, 429, 500, 503, … */
  | { readonly kind: "status"; readonly code: number; readonly retryAfter?: number; readonly reason?: string }
  /** Takes the request and never answers. */
  | { readonly kind: "hang" }
  /** Closes the connection without an answer. */
  | { readonly kind: "drop" }
  /** Answers 200 with a body that is not from Kubernetes. */
  | { readonly kind: "body"; readonly contentType: string; readonly text: string }
  /** Opens the stream with raw text before anything else, e.g. a broken line. */
  | { readonly kind: "prelude"; readonly text: string }
  /** Acts as a server that has never heard of `sendInitialEvents`. */
  | { readonly kind: "ignore-initial-events" }
  | ByteFault;

/** What happens to the bytes of an answer on their way out. */
export type ByteFault =
  /** The connection is reset after so many bytes. */
  | { readonly kind: "reset"; readonly afterBytes: number }
  /** The answer ends in good form after so many bytes. */
  | { readonly kind: "truncate"; readonly afterBytes: number }
  /** Headers come, bytes do not; the connection stays open. */
  | { readonly kind: "silent" }
  /** So many bytes at a time. */
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
  /** Called for every request that meets a fault. */
  onFault: (fault: Fault) => void = () => {};

  /** How many requests are still to meet one. */
  get armed(): number {
    return this.#armed.reduce((sum, { times }) => sum + times, 0);
  }

  /** The next `times` matching requests meet this fault; the one armed first comes first. */
  arm(match: RequestMatch, fault: Fault, times = 1): void {
    this.#armed.push({ match, fault, times });
  }

  clear(): void {
    this.#armed = [];
    this.refuseStreamingLists = false;
  }

  /** The fault of this request, used up by one. */
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
