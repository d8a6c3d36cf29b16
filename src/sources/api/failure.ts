// Why a request or a stream to the API failed, classified by how to recover.

export type FailureKind =
  /** The requested version is no longer available: list again. */
  | "expired"
  /** The server has not reached the requested version: list again from scratch. */
  | "ahead"
  /** The server's versions went backwards: list again from scratch. */
  | "rewound"
  /** The stream contained unreadable data, so a change may be lost: list again. */
  | "garbled"
  /** The server asked the client to wait. */
  | "throttled"
  /** Any other Status with a failure. */
  | "refused"
  /** The stream was open and delivered no bytes for too long: list again. */
  | "silent"
  /** The stream was open and delivered only an error. */
  | "fruitless"
  /** No connection, or a broken one. */
  | "lost";

export class ApiFailure extends Error {
  readonly kind: FailureKind;
  /** HTTP or Status code; 0 when there was no response. */
  readonly code: number;
  /** How long the server asks to wait. */
  readonly waitMs: number;

  constructor(
    kind: FailureKind,
    message: string,
    { code = 0, waitMs = 0, cause = undefined as unknown } = {},
  ) {
    super(message, { cause });
    this.kind = kind;
    this.code = code;
    this.waitMs = waitMs;
  }
}

/** Protobuf that cannot be decoded: the next request for the same resource is for JSON. */
export class MalformedProtobuf extends ApiFailure {}

const longestWaitMs = 600_000;

/** Reads a Status object, or any other body in its place, together with the HTTP response. */
export function failureOf(code: number, body: unknown, retryAfter = "", wallMs = 0): ApiFailure {
  const status = isMap(body) && body.kind === "Status" ? body : {};
  const details = isMap(status.details) ? status.details : {};
  const effective = typeof status.code === "number" && status.code > 0 ? status.code : code;
  const reason = typeof status.reason === "string" ? status.reason : "";
  const message =
    typeof status.message === "string" && status.message !== "" ? status.message : `HTTP ${code}`;
  const waitMs = Math.min(longestWaitMs, waitOf(retryAfter, details.retryAfterSeconds, wallMs));
  return new ApiFailure(kindOf(effective, reason, message, details, waitMs), message, {
    code: effective,
    waitMs,
  });
}

function kindOf(
  code: number,
  reason: string,
  message: string,
  details: Readonly<Record<string, unknown>>,
  waitMs: number,
): FailureKind {
  // Up to 1.17 the reason was Gone.
  if (code === 410 || reason === "Expired" || reason === "Gone") return "expired";
  const causes = Array.isArray(details.causes) ? details.causes : [];
  const tooLarge = causes.some((cause) => isMap(cause) && cause.reason === "ResourceVersionTooLarge");
  if (tooLarge || message.startsWith("Too large resource version")) return "ahead";
  return code === 429 || (code >= 500 && waitMs > 0) ? "throttled" : "refused";
}

function waitOf(header: string, seconds: unknown, wallMs: number): number {
  if (/^[0-9]+$/.test(header)) return Number(header) * 1000;
  const date = header === "" ? Number.NaN : Date.parse(header);
  if (Number.isFinite(date)) return Math.max(0, date - wallMs);
  return typeof seconds === "number" && seconds > 0 ? seconds * 1000 : 0;
}

export function isMap(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
