// Numbers and booleans as Go's flag readers accept them: `0x10`, `010` (octal), `1_000`, `T`, `1e3`.
import { type Parsed, parsed, refused } from "./parsed.ts";

export const int32 = { min: -(2 ** 31), max: 2 ** 31 - 1 };
export const uint31 = { min: 0, max: 2 ** 31 - 1 };
export const uint32 = { min: 0, max: 2 ** 32 - 1 };

/** Reads an integer with an optional base prefix, as `strconv.ParseInt(text, 0, 32)` does. */
export function parseInt32(text: string): Parsed<number> {
  const match = /^([-+]?)(0[xX]_?[0-9a-fA-F_]+|0[bB]_?[01_]+|0[oO]?_?[0-7_]+|0|[1-9][0-9_]*)$/.exec(text);
  if (match === null || /__|_$/.test(text)) return refused(`${JSON.stringify(text)} is not a whole number`);
  const digits = match[2]!.replaceAll("_", "");
  const octal = /^0[0-7]+$/.test(digits);
  const size = Number(octal ? `0o${digits.slice(1)}` : digits);
  return inRange(text, match[1] === "-" ? -size : size, int32);
}

/** Reads a decimal integer of at most 31 bits, without a sign. */
export function parseUint31(text: string): Parsed<number> {
  if (!/^[0-9]+$/.test(text)) return refused(`${JSON.stringify(text)} is not a whole number without a sign`);
  return inRange(text, Number(text), uint31);
}

export function parseFloat32(text: string): Parsed<number> {
  const plain = /^[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?$/.test(text);
  const special = /^([-+]?)(inf|infinity|nan)$/i.exec(text);
  if (!plain && special === null) return refused(`${JSON.stringify(text)} is not a number`);
  if (special !== null) {
    const size = /nan/i.test(text) ? Number.NaN : Number.POSITIVE_INFINITY;
    return parsed(special[1] === "-" ? -size : size);
  }
  const value = Math.fround(Number(text));
  return Number.isFinite(value)
    ? parsed(value)
    : refused(`${JSON.stringify(text)} is beyond the range of a float32`);
}

const booleans = new Map<string, boolean>([
  ...["1", "t", "T", "TRUE", "true", "True"].map((text) => [text, true] as const),
  ...["0", "f", "F", "FALSE", "false", "False"].map((text) => [text, false] as const),
]);

export function parseBool(text: string): Parsed<boolean> {
  const value = booleans.get(text);
  return value === undefined
    ? refused(`${JSON.stringify(text)} is not a boolean: write true or false`)
    : parsed(value);
}

/** The number with the fewest decimal digits that reads back as the same float32: 0.1, not 0.10000000149. */
export function shortestFloat32(value: number): number {
  for (let digits = 1; digits <= 9; digits++) {
    const short = Number(value.toPrecision(digits));
    if (Math.fround(short) === Math.fround(value)) return short;
  }
  return value;
}

/** As Go prints a number with `%g`: `5`, `0.1`, `1e-07`, `1e+06`, `+Inf`. */
export function formatNumber(value: number): string {
  if (!Number.isFinite(value)) return Number.isNaN(value) ? "NaN" : value > 0 ? "+Inf" : "-Inf";
  const size = Math.abs(value);
  if (size === 0 || (size >= 1e-4 && size < 1e6)) return String(value);
  return value.toExponential().replace(/e([-+])(\d)$/, "e$10$2");
}

function inRange(text: string, value: number, range: { min: number; max: number }): Parsed<number> {
  if (value < range.min || value > range.max) {
    return refused(
      `${JSON.stringify(text)} is out of range: write a number from ${range.min} to ${range.max}`,
    );
  }
  return parsed(value === 0 ? 0 : value);
}
