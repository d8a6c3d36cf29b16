// Bad input as a value: which object, which field, what is wrong. Never stops the rest.
import { printableLine } from "./printable.ts";

export type Problem = {
  /** What kind of trouble it is; a small closed list, so that it can label a metric. */
  readonly kind: ProblemKind;
  /** `Service shop/web`, `EndpointSlice shop/web-x7k2p`, `config`, a file name. */
  readonly object: string;
  /** Path inside the object: `spec.externalIPs[2]`; empty for the object as a whole. */
  readonly field: string;
  /** What is so, in one sentence without the object's name. Cluster-supplied text is already escaped. */
  readonly message: string;
};

export type ProblemKind =
  | "invalid-address"
  | "invalid-name"
  | "invalid-port"
  | "invalid-protocol"
  | "invalid-range"
  | "missing-field"
  | "wrong-type"
  | "unreadable"
  | "conflict"
  | "intercepts"
  | "ignored"
  | "unserved"
  | "unsupported"
  | "refused";

/** `Service shop/web spec.externalIPs[2]: is no address` */
export function printProblem(problem: Problem): string {
  let text = printed.get(problem);
  if (text === undefined) {
    const { object, field, message } = problem;
    text = printableLine(`${object}${field === "" ? "" : ` ${field}`}: ${message}`);
    printed.set(problem, text);
  }
  return text;
}

/** All Problems are compared whenever one of them changes, and there may be many. */
const printed = new WeakMap<Problem, string>();

/** Quotes cluster-supplied text so that it cannot break a log line or a terminal. */
export function quoted(text: string): string {
  const shown = text.length > 200 ? `${text.slice(0, 200)}…` : text;
  return printableLine(JSON.stringify(shown));
}
