// Go durations: `1m30s` to nanoseconds and back, exact over the whole range of 64 bits.
import { type Parsed, parsed, refused } from "./parsed.ts";

/** Nanoseconds. A bigint, because a year of nanoseconds does not fit a double. */
export type Duration = bigint;

const units: Readonly<Record<string, bigint>> = {
  ns: 1n,
  us: 1_000n,
  "\u00b5s": 1_000n,
  "\u03bcs": 1_000n,
  ms: 1_000_000n,
  s: 1_000_000_000n,
  m: 60_000_000_000n,
  h: 3_600_000_000_000n,
};

const limit = 2n ** 63n;

export function seconds(count: number): Duration {
  return BigInt(count) * 1_000_000_000n;
}

export function milliseconds(duration: Duration): number {
  return Number(duration / 1_000n) / 1_000;
}

/** Reads `300ms`, `1m30s`, `2h`, `-1.5h`; the bare number `0` needs no unit. */
export function parseDuration(text: string): Parsed<Duration> {
  const sign = /^[-+]/.exec(text)?.[0] ?? "";
  let rest = text.slice(sign.length);
  if (rest === "0") return parsed(0n);
  let total = 0n;
  do {
    const part = /^([0-9]*)(?:\.([0-9]*))?([^0-9.]*)/.exec(rest)!;
    const [whole, digits, fraction, unit] = [part[0], part[1]!, part[2] ?? "", part[3]!];
    if (digits === "" && fraction === "") return refused(`${quote(text)} is not a duration: ${howTo}`);
    if (unit === "") return refused(`${quote(text)} lacks a unit: ${howTo}`);
    const factor = Object.hasOwn(units, unit) ? units[unit]! : null;
    if (factor === null) return refused(`${quote(text)} has the unknown unit ${quote(unit)}: ${howTo}`);
    // Digits beyond a billionth of the unit cannot change the number of nanoseconds of an hour by one.
    const shown = fraction.slice(0, 18);
    total += BigInt(digits || "0") * factor + (BigInt(shown || "0") * factor) / 10n ** BigInt(shown.length);
    if (total > limit) return refused(tooLong(text));
    rest = rest.slice(whole.length);
  } while (rest !== "");
  if (sign === "-") return parsed(-total);
  return total === limit ? refused(tooLong(text)) : parsed(total);
}

/** As Go prints it: `15m0s`, `1.5s`, `250ms`, `0s`. */
export function formatDuration(duration: Duration): string {
  if (duration < 0n) return `-${formatDuration(-duration)}`;
  if (duration === 0n) return "0s";
  if (duration < 1_000n) return `${duration}ns`;
  if (duration < 1_000_000n) return `${decimal(duration, 1_000n)}\u00b5s`;
  if (duration < 1_000_000_000n) return `${decimal(duration, 1_000_000n)}ms`;
  const hours = duration / units.h!;
  const minutes = (duration % units.h!) / units.m!;
  const rest = `${decimal(duration % units.m!, 1_000_000_000n)}s`;
  if (hours > 0n) return `${hours}h${minutes}m${rest}`;
  return minutes > 0n ? `${minutes}m${rest}` : rest;
}

const howTo = "write a number with a unit, like 300ms, 30s, 15m or 1h30m";

function tooLong(text: string): string {
  return `${quote(text)} is longer than the longest duration, 2562047h47m16s`;
}

function decimal(value: bigint, unit: bigint): string {
  const fraction = (value % unit).toString().padStart(unit.toString().length - 1, "0");
  const shown = fraction.replace(/0+$/, "");
  return shown === "" ? `${value / unit}` : `${value / unit}.${shown}`;
}

function quote(text: string): string {
  return JSON.stringify(text.length > 100 ? `${text.slice(0, 100)}…` : text);
}
