import { setImmediate as nextTurn } from "node:timers/promises";
import { expect, it } from "vitest";
import { manualClock } from "../../test/support/manual-clock.ts";
import { collectAfterLoads } from "./heap.ts";

it("garbage is collected half a second after the last of several large Syncs, and then memory is returned", () => {
  const clock = manualClock();
  let [collected, trimmed] = [0, 0];
  const tidy = collectAfterLoads(clock, { collect: () => collected++, trim: () => trimmed++ });
  tidy({ changedPorts: 10_000 });
  clock.advance(400);
  tidy({ changedPorts: 10_000 });
  clock.advance(400);
  expect([collected, trimmed]).toEqual([0, 0]);
  clock.advance(100);
  expect([collected, trimmed]).toEqual([1, 1]);
  clock.advance(60_000);
  expect([collected, trimmed]).toEqual([1, 1]);
  expect(clock.pending()).toBe(0);
});

it("small Syncs cause no collection, but the first one does", () => {
  const clock = manualClock();
  let collected = 0;
  const tidy = collectAfterLoads(clock, { collect: () => collected++, trim() {} });
  tidy({ changedPorts: 1 });
  clock.advance(400);
  tidy({ changedPorts: 1 });
  clock.advance(100);
  expect(collected).toBe(1);
  tidy({ changedPorts: 1 });
  clock.advance(60_000);
  expect(collected).toBe(1);
});

it("V8 collects objects that are not in use, though Node.js was started without --expose-gc", async () => {
  const clock = manualClock();
  const tidy = collectAfterLoads(clock);
  const unused = new WeakRef({ name: "unused" });
  // In the turn that makes it, a WeakRef keeps its object.
  await nextTurn();
  expect(unused.deref()).toBeDefined();
  await nextTurn();
  tidy({ changedPorts: 10_000 });
  clock.advance(60_000);
  expect(globalThis.gc).toBeUndefined();
  expect(unused.deref()).toBeUndefined();
});

it("memory of buffers that are not in use is returned", async () => {
  const clock = manualClock();
  const synced = collectAfterLoads(clock);
  // One that is in use among a hundred: malloc cannot give back the end of its heap.
  let kept: (Buffer | null)[] = Array.from({ length: 50_000 }, () => Buffer.allocUnsafeSlow(1000).fill(1));
  kept = kept.map((buffer, i) => (i % 100 === 0 ? buffer : null));
  await nextTurn();
  const before = process.memoryUsage.rss();
  synced({ changedPorts: 10_000 });
  clock.advance(60_000);
  await expect.poll(() => before - process.memoryUsage.rss()).toBeGreaterThan(25 * 2 ** 20);
  expect(kept).toHaveLength(50_000);
});
