// The kinds of value a configuration field can hold: how each is read from a file, written back and described.
import { type Duration, formatDuration } from "../units/duration.ts";
import { int32, shortestFloat32, uint32 } from "../units/numbers.ts";
import type { Parsed } from "../units/parsed.ts";
import type { Quantity } from "../units/quantity.ts";
import {
  decodeBool,
  decodeDuration,
  decodeFloat,
  decodeFlushFrequency,
  decodeInteger,
  decodeQuantity,
  decodeString,
  decodeStrings,
  decodeSwitches,
  decodeVModule,
  type FlushFrequency,
  type VModuleItem,
} from "./values.ts";

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
  /** `raw` is never null or undefined; `notice` receives what strict decoding refuses and lenient decoding accepts. */
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
    decode: decodeBool,
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
