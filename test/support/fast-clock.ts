// A clock on which time runs many times as fast as outside, for tests that mix waiting with real sockets.
import type { Clock } from "../../src/sources/world.ts";

export type FastClock = Clock & {
  /** From now on time runs this many times as fast. */
  run(factor: number): void;
};

export function fastClock(factor: number): FastClock {
  let speed = factor;
  let passed = 0;
  let since = performance.now();
  const steady = () => passed + (performance.now() - since) * speed;
  return {
    wall: () => Date.UTC(2026, 0, 2) + steady(),
    steady,
    after(ms, run) {
      const timer = setTimeout(run, ms / speed);
      return () => clearTimeout(timer);
    },
    run(faster) {
      passed = steady();
      since = performance.now();
      speed = faster;
    },
  };
}
