// Thrown when the machine refuses: what failed, the machine's message, and the refused parts of the request.

/**
 * refused: the kernel or a tool rejected the request. unavailable: no request is possible (missing
 * feature, missing right). interrupted: the state changed while it was read or before it was written; retry.
 * lost: the outcome or part of an answer is unknown.
 */
export type HostErrorKind = "refused" | "unavailable" | "interrupted" | "lost";

/** One part of a request that was refused. */
export type Refusal = {
  /** Which operation of the request. */
  readonly operation: number;
  /** Which element of that operation, when it has elements and the kernel pointed at one. */
  readonly element?: number;
  /** `EEXIST`, `ENOENT`, … */
  readonly errno: string;
  /** The kernel's message; empty when there is none. */
  readonly text: string;
};

export type HostErrorDetails = {
  readonly cause?: unknown;
  readonly errno?: string;
  readonly text?: string;
  readonly offset?: number;
  readonly refusals?: readonly Refusal[];
  readonly ofRules?: boolean;
};

export class HostError extends Error {
  readonly kind: HostErrorKind;
  /** `EPERM` or `ENOENT`, for example; empty when there is none. */
  readonly errno: string;
  /** The extended acknowledgement, or what a tool wrote; empty when there is none. */
  readonly text: string;
  /** Where in the request the kernel points, in bytes from its beginning; null when it does not. */
  readonly offset: number | null;
  readonly refusals: readonly Refusal[];
  /** It was `iptables-restore` that failed, and not something else on the way. */
  readonly ofRules: boolean;

  constructor(kind: HostErrorKind, message: string, details: HostErrorDetails = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.name = "HostError";
    this.kind = kind;
    this.errno = details.errno ?? "";
    this.text = details.text ?? "";
    this.offset = details.offset ?? null;
    this.refusals = details.refusals ?? [];
    this.ofRules = details.ofRules ?? false;
  }
}
