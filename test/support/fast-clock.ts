// A clock on which time runs many times as fast as outside, for tests that mix waiting with real sockets.
import type { Clock } from "../../src/sources/world.ts";

export function fastClock(factor: number): Clock {
  const start = performance.now();
  const steady = () => (performance.now() - start) * factor;
  return {
    wall: () => Date.UTC(2026, 0, 2) + steady(),
    steady,
    after(ms, run) {
      const timer = setTimeout(run, ms / factor);
      return () => clearTimeout(timer);
    },
  };
}
