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
export function printProblem({ object, field, message }: Problem): string {
  return printableLine(`${object}${field === "" ? "" : ` ${field}`}: ${message}`);
}

/** Quotes cluster-supplied text so that it cannot break a log line or a terminal. */
export function quoted(text: string): string {
  const shown = text.length > 200 ? `${text.slice(0, 200)}…` : text;
  return printableLine(JSON.stringify(shown));
}
