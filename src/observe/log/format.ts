// One log entry as a line: klog's text with its header, or klog's JSON.
import { goQuote, safeJson } from "./quote.ts";

/** Values of an entry by key. Strings may come from the cluster: they are escaped here. */
export type Fields = Readonly<Record<string, unknown>>;

export type Entry = {
  readonly severity: "info" | "error";
  /** Verbosity of an info entry. */
  readonly level: number;
  /** Milliseconds since 1970. */
  readonly at: number;
  /** Source file, e.g. `observe/health.ts`. */
  readonly file: string;
  /** Dotted name of the logger; empty for none. */
  readonly logger: string;
  readonly message: string;
  readonly error: Error | null;
  /** Of the logger, then of the entry; a later value of the same key wins. */
  readonly fields: readonly Fields[];
};

export type LineFormat = (entry: Entry, pid: number) => string;

export const formats = { text: textLine, json: jsonLine } as const satisfies Record<string, LineFormat>;

/** `I1115 20:14:22.123000       7 health.ts:1] "Message" key="value"` */
function textLine(entry: Entry, pid: number): string {
  const named: Fields = entry.logger === "" ? {} : { logger: entry.logger };
  const failed: Fields = entry.error === null ? {} : { err: entry.error };
  let line = `${header(entry, pid)}${goQuote(entry.message)}`;
  for (const [key, value] of merged([failed, named, ...entry.fields])) line += ` ${key}=${textValue(value)}`;
  return `${line}\n`;
}

// Bundled code has no line numbers worth printing; klog writes 1 where it does not know the line.
function header(entry: Entry, pid: number): string {
  const at = new Date(entry.at);
  const letter = entry.severity === "info" ? "I" : "E";
  const date = `${digits(at.getMonth() + 1, 2)}${digits(at.getDate(), 2)}`;
  const time = `${digits(at.getHours(), 2)}:${digits(at.getMinutes(), 2)}:${digits(at.getSeconds(), 2)}`;
  const micros = digits(at.getMilliseconds(), 3).padEnd(6, "0");
  const file = entry.file.slice(entry.file.lastIndexOf("/") + 1);
  return `${letter}${date} ${time}.${micros} ${String(pid).padStart(7)} ${file}:1] `;
}

function textValue(value: unknown): string {
  if (typeof value === "string") return goQuote(value);
  if (value instanceof Error) return goQuote(value.message);
  if (typeof value === "bigint") return value.toString();
  return safeJson(value);
}

/** `{"ts":1763237662123,"caller":"observe/health.ts:1","msg":"Message","v":0,"key":"value"}` */
function jsonLine(entry: Entry): string {
  const info = entry.severity === "info";
  const record: Record<string, unknown> = {
    ts: entry.at,
    ...(entry.logger === "" ? {} : { logger: entry.logger }),
    caller: `${entry.file}:1`,
    msg: entry.message,
    ...(info ? { v: entry.level } : {}),
    ...Object.fromEntries(merged(entry.fields)),
    ...(entry.error === null ? {} : { err: entry.error.message }),
  };
  return `${safeJson(record)}\n`;
}

/** As klog: an equal repeat keeps the first place, a different value takes its own. */
function merged(all: readonly Fields[]): Map<string, unknown> {
  const result = new Map<string, unknown>();
  for (const fields of all) {
    for (const [key, value] of Object.entries(fields)) {
      if (result.has(key) && result.get(key) !== value) result.delete(key);
      result.set(key, value);
    }
  }
  return result;
}

function digits(value: number, count: number): string {
  return String(value).padStart(count, "0");
}
