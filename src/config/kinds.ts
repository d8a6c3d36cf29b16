// The kinds of value a configuration field can hold: how each is read from a file, written back and described.
import { type Duration, formatDuration, parseDuration } from "./units/duration.ts";
import { int32, shortestFloat32, uint32 } from "./units/numbers.ts";
import { type Parsed, parsed, refused } from "./units/parsed.ts";
import { parseQuantity, type Quantity } from "./units/quantity.ts";

export type FlushFrequency = { readonly duration: Duration; readonly writtenAs: "text" | "integer" };

export type VModuleItem = { readonly filePattern: string; readonly verbosity: number };

export type KindValues = {
  string: string;
  bool: boolean;
  int32: number;
  uint32: number;
  float32: number;
  duration: Duration;
  flushFrequency: FlushFrequency;
  quantity: Quantity;
  /** null: not given, which is written differently from the empty list. */
  strings: readonly string[] | null;
  switches: Readonly<Record<string, boolean>>;
  vmodule: readonly VModuleItem[];
};

export type Kind = keyof KindValues;

/** What YAML and JSON can hold. */
export type Plain =
  | string
  | number
  | bigint
  | boolean
  | null
  | readonly Plain[]
  | { readonly [key: string]: Plain };

type KindOf<T> = {
  /** The value of a field that is absent and has no default of its own. */
  readonly zero: T;
  readonly isZero: (value: T) => boolean;
  /** `raw` is never null or undefined; `notice` takes what strictness would refuse but leniency lets pass. */
  readonly decode: (raw: unknown, notice: (message: string) => void) => Parsed<T>;
  readonly plain: (value: T) => Plain;
  /** JSON Schema. */
  readonly schema: Readonly<Record<string, unknown>>;
  readonly label: string;
};

const durationPattern = "^[-+]?(0|([0-9]+\\.?[0-9]*|\\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+$";

export const kinds: { readonly [K in Kind]: KindOf<KindValues[K]> } = {
  string: {
    zero: "",
    isZero: (value) => value === "",
    decode: decodeString,
    plain: (value) => value,
    schema: { type: "string" },
    label: "string",
  },
  bool: {
    zero: false,
    isZero: (value) => !value,
    decode: (raw) =>
      typeof raw === "boolean" ? parsed(raw) : refused(`must be true or false, not ${shown(raw)}`),
    plain: (value) => value,
    schema: { type: "boolean" },
    label: "bool",
  },
  int32: {
    zero: 0,
    isZero: (value) => value === 0,
    decode: (raw) => decodeInteger(raw, int32),
    plain: (value) => value,
    schema: { type: "integer", minimum: int32.min, maximum: int32.max },
    label: "int32",
  },
  uint32: {
    zero: 0,
    isZero: (value) => value === 0,
    decode: (raw) => decodeInteger(raw, uint32),
    plain: (value) => value,
    schema: { type: "integer", minimum: uint32.min, maximum: uint32.max },
    label: "uint32",
  },
  float32: {
    zero: 0,
    isZero: (value) => value === 0,
    decode: decodeFloat,
    plain: shortestFloat32,
    schema: { type: "number" },
    label: "float32",
  },
  duration: {
    zero: 0n,
    isZero: (value) => value === 0n,
    decode: decodeDuration,
    plain: formatDuration,
    schema: { type: "string", pattern: durationPattern },
    label: "duration",
  },
  flushFrequency: {
    zero: { duration: 0n, writtenAs: "integer" },
    isZero: ({ duration }) => duration === 0n,
    decode: decodeFlushFrequency,
    plain: ({ duration, writtenAs }) => (writtenAs === "text" ? formatDuration(duration) : duration),
    schema: { anyOf: [{ type: "string", pattern: durationPattern }, { type: "integer" }] },
    label: "duration or nanoseconds",
  },
  quantity: {
    zero: "0",
    isZero: (value) => value === "0",
    decode: decodeQuantity,
    plain: (value) => value,
    schema: { type: ["string", "number"] },
    label: "quantity",
  },
  strings: {
    zero: null,
    isZero: (value) => value === null,
    decode: decodeStrings,
    plain: (value) => value,
    schema: { type: ["array", "null"], items: { type: "string" } },
    label: "list of strings",
  },
  switches: {
    zero: {},
    isZero: (value) => Object.keys(value).length === 0,
    decode: decodeSwitches,
    plain: (value) => value,
    schema: { type: "object", additionalProperties: { type: "boolean" } },
    label: "map of string to bool",
  },
  vmodule: {
    zero: [],
    isZero: (value) => value.length === 0,
    decode: decodeVModule,
    plain: (value) => value.map(({ filePattern, verbosity }) => ({ filePattern, verbosity })),
    schema: {
      type: "array",
      items: {
        type: "object",
        properties: { filePattern: { type: "string" }, verbosity: { type: "integer", minimum: 0 } },
        additionalProperties: false,
      },
    },
    label: "list of filePattern and verbosity",
  },
};

function decodeString(raw: unknown): Parsed<string> {
  if (typeof raw === "string") return parsed(raw);
  const scalar = typeof raw === "number" || typeof raw === "bigint" || typeof raw === "boolean";
  return refused(`must be text, not ${shown(raw)}${scalar ? `: put it in quotes, "${raw}"` : ""}`);
}

function decodeInteger(raw: unknown, range: { min: number; max: number }): Parsed<number> {
  const value = typeof raw === "bigint" ? Number(raw) : raw;
  if (typeof value !== "number" || !Number.isInteger(value)) {
    return refused(`must be a whole number, not ${shown(raw)}`);
  }
  if (value < range.min || value > range.max) {
    return refused(`must be a number from ${range.min} to ${range.max}, not ${shown(raw)}`);
  }
  return parsed(value === 0 ? 0 : value);
}

function decodeFloat(raw: unknown): Parsed<number> {
  if (typeof raw !== "number" && typeof raw !== "bigint") {
    return refused(`must be a number, not ${shown(raw)}`);
  }
  const value = Math.fround(Number(raw));
  return Number.isFinite(value) ? parsed(value) : refused(`must fit a float32, not ${shown(raw)}`);
}

function decodeDuration(raw: unknown): Parsed<Duration> {
  if (typeof raw === "string") return parseDuration(raw);
  const scalar = typeof raw === "number" || typeof raw === "bigint";
  const advice = scalar ? `: add a unit, like ${raw}s` : ", like 30s or 1h30m";
  return refused(`must be a duration with a unit, not ${shown(raw)}${advice}`);
}

function decodeFlushFrequency(raw: unknown): Parsed<FlushFrequency> {
  if (typeof raw === "bigint") return parsed({ duration: BigInt.asIntN(64, raw), writtenAs: "integer" });
  const duration = decodeDuration(raw);
  return duration.ok ? parsed({ duration: duration.value, writtenAs: "text" }) : duration;
}

function decodeQuantity(raw: unknown): Parsed<Quantity> {
  if (typeof raw === "number" || typeof raw === "bigint") return parseQuantity(String(raw));
  return typeof raw === "string"
    ? parseQuantity(raw)
    : refused(`must be a quantity like 64Ki, not ${shown(raw)}`);
}

function decodeStrings(raw: unknown): Parsed<readonly string[]> {
  if (!Array.isArray(raw)) return refused(`must be a list, not ${shown(raw)}`);
  const items: string[] = [];
  for (const [i, item] of raw.entries()) {
    const text = item === null ? parsed("") : decodeString(item);
    if (!text.ok) return refused(`item ${i} ${text.reason}`);
    items.push(text.value);
  }
  return parsed(items);
}

function decodeSwitches(raw: unknown): Parsed<Readonly<Record<string, boolean>>> {
  if (!(raw instanceof Map)) return refused(`must be a mapping of names to true or false, not ${shown(raw)}`);
  const entries: [string, boolean][] = [];
  for (const [key, value] of raw) {
    if (value !== null && typeof value !== "boolean") {
      return refused(`${String(key)} must be true or false, not ${shown(value)}`);
    }
    entries.push([String(key), value ?? false]);
  }
  return parsed(Object.fromEntries(entries));
}

function decodeVModule(raw: unknown, notice: (message: string) => void): Parsed<readonly VModuleItem[]> {
  if (!Array.isArray(raw)) return refused(`must be a list, not ${shown(raw)}`);
  const items: VModuleItem[] = [];
  for (const [i, item] of raw.entries()) {
    const entry: unknown = item ?? new Map();
    if (!(entry instanceof Map)) return refused(`item ${i} must have filePattern and verbosity`);
    for (const key of entry.keys()) {
      if (key !== "filePattern" && key !== "verbosity")
        notice(`item ${i} has the unknown field ${JSON.stringify(String(key))}`);
    }
    const filePattern = decodeString(entry.get("filePattern") ?? "");
    const verbosity = decodeInteger(entry.get("verbosity") ?? 0, uint32);
    if (!filePattern.ok) return refused(`item ${i}: filePattern ${filePattern.reason}`);
    if (!verbosity.ok) return refused(`item ${i}: verbosity ${verbosity.reason}`);
    items.push({ filePattern: filePattern.value, verbosity: verbosity.value });
  }
  return parsed(items);
}

function shown(raw: unknown): string {
  if (typeof raw === "string") return JSON.stringify(raw.length > 80 ? `${raw.slice(0, 80)}…` : raw);
  if (raw instanceof Map) return "a mapping";
  if (Array.isArray(raw)) return "a list";
  return String(raw).slice(0, 80);
}
