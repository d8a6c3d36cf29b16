import { setImmediate as nextTurn } from "node:timers/promises";
import { expect, it } from "vitest";
import { manualClock } from "../../test/support/manual-clock.ts";
import { collectAfterLoads } from "./heap.ts";

const large = { family: "ipv4", changedPorts: 10_000 } as const;
const small = { family: "ipv4", changedPorts: 1 } as const;

it("garbage is collected half a second after the last of several large Syncs, and then memory is returned", () => {
  const clock = manualClock();
  let [collected, trimmed] = [0, 0];
  const tidy = collectAfterLoads(clock, { collect: () => collected++, trim: () => trimmed++ });
  tidy.synced(large);
  clock.advance(400);
  tidy.synced(large);
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
  tidy.synced(small);
  clock.advance(400);
  tidy.synced(small);
  clock.advance(100);
  expect(collected).toBe(1);
  tidy.synced(small);
  clock.advance(60_000);
  expect(collected).toBe(1);
});

it("collections wait for a Sync that is under way", () => {
  const clock = manualClock();
  let collected = 0;
  const tidy = collectAfterLoads(clock, { collect: () => collected++, trim() {} });
  tidy.taken("ipv4");
  tidy.taken("ipv6");
  tidy.synced(large);
  clock.advance(10_000);
  expect(collected).toBe(0);
  tidy.synced({ ...small, family: "ipv6" });
  clock.advance(500);
  expect(collected).toBe(1);
});

it("collections take a twentieth of the time, also after a large Sync every second", () => {
  const clock = manualClock();
  let collected = 0;
  const collect = () => {
    collected++;
    clock.advance(300);
  };
  const tidy = collectAfterLoads(clock, { collect, trim() {} });
  for (let i = 0; i < 60; i++) {
    tidy.synced(large);
    clock.advance(1000);
  }
  expect(collected).toBeGreaterThan(5);
  expect(collected).toBeLessThanOrEqual(10);
});

it("V8 collects objects that are not in use, though Node.js was started without --expose-gc", async () => {
  const clock = manualClock();
  const tidy = collectAfterLoads(clock);
  const unused = new WeakRef({ name: "unused" });
  // In the turn that makes it, a WeakRef keeps its object.
  await nextTurn();
  expect(unused.deref()).toBeDefined();
  await nextTurn();
  tidy.synced(large);
  clock.advance(60_000);
  expect(globalThis.gc).toBeUndefined();
  expect(unused.deref()).toBeUndefined();
});

it("memory of buffers that are not in use is returned", async () => {
  const clock = manualClock();
  const tidy = collectAfterLoads(clock);
  // One that is in use among a hundred: malloc cannot give back the end of its heap.
  let kept: (Buffer | null)[] = Array.from({ length: 50_000 }, () => Buffer.allocUnsafeSlow(1000).fill(1));
  kept = kept.map((buffer, i) => (i % 100 === 0 ? buffer : null));
  await nextTurn();
  const before = process.memoryUsage.rss();
  tidy.synced(large);
  clock.advance(60_000);
  await expect.poll(() => before - process.memoryUsage.rss()).toBeGreaterThan(25 * 2 ** 20);
  expect(kept).toHaveLength(50_000);
});
