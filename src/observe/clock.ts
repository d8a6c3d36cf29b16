// The machine's own clock, moments on both of its faces, and times as Go prints them.
import type { Clock } from "../model/clock.ts";

export { type Moment, momentOf } from "../model/clock.ts";
export type { Clock };

export const systemClock: Clock = {
  wall: () => Date.now(),
  steady: () => performance.now(),
  after(ms, run) {
    const timer = setTimeout(run, ms);
    return () => clearTimeout(timer);
  },
};

/** RFC 3339 in UTC as Go prints a time: no fraction when it is zero, no trailing zeros. */
export function timeText(wallMs: number): string {
  return new Date(wallMs).toISOString().replace(/\.?0*Z$/, "Z");
}
