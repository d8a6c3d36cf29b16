// A clock that only a test moves.
import type { Clock } from "../../src/observe/clock.ts";

export type ManualClock = Clock & {
  /** Moves both clocks and runs the timers that fall due, in their order. */
  advance(ms: number): void;
  /** Sets the wall clock alone, as an administrator would. */
  jump(ms: number): void;
  /** Timers not yet due. */
  pending(): number;
};

export function manualClock(wallStart: number = Date.UTC(2026, 0, 2, 3, 4, 5)): ManualClock {
  let steady = 1000;
  let offset = wallStart - steady;
  let timers: { due: number; run: () => void }[] = [];
  return {
    wall: () => steady + offset,
    steady: () => steady,
    after(ms, run) {
      const timer = { due: steady + ms, run };
      timers.push(timer);
      return () => {
        timers = timers.filter((other) => other !== timer);
      };
    },
    advance(ms) {
      const end = steady + ms;
      for (;;) {
        const next = timers.filter((timer) => timer.due <= end).sort((a, b) => a.due - b.due)[0];
        if (next === undefined) break;
        timers = timers.filter((other) => other !== next);
        steady = Math.max(steady, next.due);
        next.run();
      }
      steady = end;
    },
    jump(ms) {
      offset += ms;
    },
    pending: () => timers.length,
  };
}
