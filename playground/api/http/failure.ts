// A failed request, and its Status object.

export type FailureDetails = {
  readonly name?: string;
  readonly group?: string;
  readonly kind?: string;
  readonly causes?: readonly {
    readonly reason?: string;
    readonly message?: string;
    readonly field?: string;
  }[];
  readonly retryAfterSeconds?: number;
};

export class Failure extends Error {
  readonly code: number;
  readonly reason: string;
  readonly details: FailureDetails;

  constructor(code: number, reason: string, message: string, details: FailureDetails = {}) {
    super(message);
    this.code = code;
    this.reason = reason;
    this.details = details;
  }
}

export function statusOf(failure: Failure) {
  return {
    kind: "Status",
    apiVersion: "v1",
    metadata: {},
    status: "Failure",
    message: failure.message,
    reason: failure.reason,
    ...(Object.keys(failure.details).length === 0 ? {} : { details: failure.details }),
    code: failure.code,
  };
}

export const badRequest = (message: string) => new Failure(400, "BadRequest", message);

export const invalid = (kind: string, name: string, message: string, field: string) =>
  new Failure(422, "Invalid", `${kind} ${JSON.stringify(name)} is invalid: ${field}: ${message}`, {
    kind,
    name,
    causes: [{ reason: "FieldValueInvalid", message, field }],
  });

export const notFound = (plural: string, name: string) =>
  new Failure(404, "NotFound", `${plural} ${JSON.stringify(name)} not found`, { name, kind: plural });

/** An unknown path; `plural` is the resource in it, if any. */
export const noSuchPath = (plural = "") =>
  new Failure(
    404,
    "NotFound",
    plural === ""
      ? "the server could not find the requested resource"
      : `the server could not find the requested resource: the playground API has no ${plural}; kubectl api-resources lists the supported resources`,
  );

export const conflict = (plural: string, name: string, message: string) =>
  new Failure(
    409,
    "Conflict",
    `Operation cannot be fulfilled on ${plural} ${JSON.stringify(name)}: ${message}`,
    {
      name,
      kind: plural,
    },
  );

export const alreadyExists = (plural: string, name: string) =>
  new Failure(409, "AlreadyExists", `${plural} ${JSON.stringify(name)} already exists`, {
    name,
    kind: plural,
  });

export const expired = (wanted: string, oldest: number) =>
  new Failure(410, "Expired", `too old resource version: ${wanted} (${oldest})`);

export const tooLarge = (wanted: string, current: number) =>
  new Failure(504, "Timeout", `Too large resource version: ${wanted}, current: ${current}`, {
    causes: [{ reason: "ResourceVersionTooLarge", message: "Too large resource version" }],
    retryAfterSeconds: 1,
  });
