// Converts YAML values of the file to the values of fields; an error contains what to write instead.
import { type Duration, parseDuration } from "../units/duration.ts";
import { uint32 } from "../units/numbers.ts";
import { type Parsed, parsed, refused } from "../units/parsed.ts";
import { parseQuantity, type Quantity } from "../units/quantity.ts";

export type FlushFrequency = { readonly duration: Duration; readonly writtenAs: "text" | "integer" };

export type VModuleItem = { readonly filePattern: string; readonly verbosity: number };

export function decodeString(raw: unknown): Parsed<string> {
  if (typeof raw === "string") return parsed(raw);
  const scalar = typeof raw === "number" || typeof raw === "bigint" || typeof raw === "boolean";
  return refused(`must be text, not ${shown(raw)}${scalar ? `: put it in quotes, "${raw}"` : ""}`);
}

export function decodeBool(raw: unknown): Parsed<boolean> {
  return typeof raw === "boolean" ? parsed(raw) : refused(`must be true or false, not ${shown(raw)}`);
}

export function decodeInteger(raw: unknown, range: { min: number; max: number }): Parsed<number> {
  const value = typeof raw === "bigint" ? Number(raw) : raw;
  if (typeof value !== "number" || !Number.isInteger(value)) {
    return refused(`must be a whole number, not ${shown(raw)}`);
  }
  if (value < range.min || value > range.max) {
    return refused(`must be a number from ${range.min} to ${range.max}, not ${shown(raw)}`);
  }
  return parsed(value === 0 ? 0 : value);
}

export function decodeFloat(raw: unknown): Parsed<number> {
  if (typeof raw !== "number" && typeof raw !== "bigint") {
    return refused(`must be a number, not ${shown(raw)}`);
  }
  const value = Math.fround(Number(raw));
  return Number.isFinite(value) ? parsed(value) : refused(`must fit a float32, not ${shown(raw)}`);
}

export function decodeDuration(raw: unknown): Parsed<Duration> {
  if (typeof raw === "string") return parseDuration(raw);
  const scalar = typeof raw === "number" || typeof raw === "bigint";
  const advice = scalar ? `: add a unit, like ${raw}s` : ", like 30s or 1h30m";
  return refused(`must be a duration with a unit, not ${shown(raw)}${advice}`);
}

export function decodeFlushFrequency(raw: unknown): Parsed<FlushFrequency> {
  const whole = typeof raw === "number" && Number.isInteger(raw) ? BigInt(raw) : raw;
  if (typeof whole === "bigint") {
    const fits = BigInt.asIntN(64, whole) === whole;
    return fits
      ? parsed({ duration: whole, writtenAs: "integer" })
      : refused(`must fit 64 bits, not ${shown(raw)}`);
  }
  const duration = decodeDuration(raw);
  return duration.ok ? parsed({ duration: duration.value, writtenAs: "text" }) : duration;
}

export function decodeQuantity(raw: unknown): Parsed<Quantity> {
  if (typeof raw === "number" || typeof raw === "bigint") return parseQuantity(String(raw));
  return typeof raw === "string"
    ? parseQuantity(raw)
    : refused(`must be a quantity like 64Ki, not ${shown(raw)}`);
}

export function decodeStrings(raw: unknown): Parsed<readonly string[]> {
  if (!Array.isArray(raw)) return refused(`must be a list, not ${shown(raw)}`);
  const items: string[] = [];
  for (const [i, item] of raw.entries()) {
    const text = item === null ? parsed("") : decodeString(item);
    if (!text.ok) return refused(`item ${i} ${text.reason}`);
    items.push(text.value);
  }
  return parsed(items);
}

export function decodeSwitches(raw: unknown): Parsed<Readonly<Record<string, boolean>>> {
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

export function decodeVModule(
  raw: unknown,
  notice: (message: string) => void,
): Parsed<readonly VModuleItem[]> {
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
