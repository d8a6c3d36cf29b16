// Validation errors in the format of the Kubernetes API: path, kind of error, the value, what it must be.
import type { Path } from "../file/fields.ts";
import { type Duration, formatDuration } from "../units/duration.ts";

type Shown = string | number | boolean | bigint | readonly string[] | Readonly<Record<string, boolean>>;

export type FieldError = {
  /** As kube-proxy names the field: `KubeProxyConfiguration.SyncPeriod`. */
  readonly path: string;
  readonly kind: "Invalid value" | "Duplicate value" | "Unsupported value" | "Forbidden" | "Required value";
  /** JSON of the offending value; null where the kind of error does not show it. */
  readonly value: string | null;
  readonly detail: string;
  /** The field of the file, to find its line and its flag. */
  readonly setting: Path;
};

/** Durations are shown as text. */
export function invalid(path: string, setting: Path, value: Shown, detail: string): FieldError {
  return { path, kind: "Invalid value", value: shown(value), detail, setting };
}

export function duplicate(path: string, setting: Path, value: Shown): FieldError {
  return { path, kind: "Duplicate value", value: shown(value), detail: "", setting };
}

export function unsupported(
  path: string,
  setting: Path,
  value: Shown,
  allowed: readonly string[],
): FieldError {
  const detail = `supported values: ${allowed.map((word) => JSON.stringify(word)).join(", ")}`;
  return { path, kind: "Unsupported value", value: shown(value), detail, setting };
}

export function forbidden(path: string, setting: Path, detail: string): FieldError {
  return { path, kind: "Forbidden", value: null, detail, setting };
}

export function required(path: string, setting: Path, detail: string): FieldError {
  return { path, kind: "Required value", value: null, detail, setting };
}

export function formatError({ path, kind, value, detail }: FieldError): string {
  return [path, kind, value, detail].filter((part) => part !== null && part !== "").join(": ");
}

/** One error plain, several in brackets, equal ones once. */
export function formatErrors(errors: readonly FieldError[]): string {
  return aggregated(errors.map(formatError));
}

export function aggregated(messages: readonly string[]): string {
  const distinct = [...new Set(messages)];
  return distinct.length === 1 ? distinct[0]! : `[${distinct.join(", ")}]`;
}

function shown(value: Shown): string {
  return JSON.stringify(typeof value === "bigint" ? formatDuration(value as Duration) : value);
}
