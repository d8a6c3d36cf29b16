// Reads a moment of the past as people write it, and prints one; both in local time.
import { milliseconds, parseDuration } from "../config/units/duration.ts";
import { UsageError } from "../inspect/usage-error.ts";

export const momentExamples = "10:41, 10:41:30, 15m (ago), 2026-11-18T10:41:00Z";

/** Milliseconds since 1970. `label` is the flag. A time of day is the last one: today's, or yesterday's if that is to come. */
export function parseMoment(text: string, now: number, label: string): number {
  const moment = timeOfDay(text, now) ?? dateAndTime(text) ?? ago(text, now);
  if (moment === null)
    throw new UsageError(
      `${label}: ${JSON.stringify(text)} is not a time; use for example ${momentExamples}`,
    );
  if (moment > now) throw new UsageError(`${label}: ${text} is in the future; it is ${printMoment(now)} now`);
  return moment;
}

/** `2026-11-18 10:41:07.312` */
export function printMoment(ms: number): string {
  const date = new Date(ms);
  const day = [date.getFullYear(), two(date.getMonth() + 1), two(date.getDate())].join("-");
  const time = [two(date.getHours()), two(date.getMinutes()), two(date.getSeconds())].join(":");
  return `${day} ${time}.${String(date.getMilliseconds()).padStart(3, "0")}`;
}

function timeOfDay(text: string, now: number): number | null {
  const [, hours, minutes, seconds = "0", fraction = "0"] =
    /^(\d{1,2}):(\d{2})(?::(\d{2})(?:\.(\d{1,3}))?)?$/.exec(text) ?? [];
  if (hours === undefined || Number(hours) > 23 || Number(minutes) > 59 || Number(seconds) > 59) return null;
  const date = new Date(now);
  date.setHours(Number(hours), Number(minutes), Number(seconds), Number(fraction.padEnd(3, "0")));
  if (date.getTime() > now) date.setDate(date.getDate() - 1);
  return date.getTime();
}

/** RFC 3339; without a zone it is local. A space instead of the T, as `turnout history` prints it. */
function dateAndTime(text: string): number | null {
  const form = /^\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:Z|[+-]\d\d:\d\d)?)?$/;
  if (!form.test(text)) return null;
  const time = Date.parse(text.length === 10 ? `${text}T00:00` : text.replace(" ", "T"));
  return Number.isNaN(time) ? null : time;
}

function ago(text: string, now: number): number | null {
  const duration = parseDuration(text.replace(/\s*ago$/, ""));
  return duration.ok && /[a-z]/.test(text) ? now - milliseconds(duration.value) : null;
}

function two(value: number): string {
  return String(value).padStart(2, "0");
}
