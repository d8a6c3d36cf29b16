import { setImmediate as nextTurn } from "node:timers/promises";
import { expect, it } from "vitest";
import { manualClock } from "../../test/support/manual-clock.ts";
import { collectAfterLargeSyncs } from "./heap.ts";

it("garbage is collected twice, half a second after the last of several large Syncs", () => {
  const clock = manualClock();
  let collected = 0;
  const tidy = collectAfterLargeSyncs(clock, () => collected++);
  tidy({ changedPorts: 10_000 });
  clock.advance(400);
  tidy({ changedPorts: 10_000 });
  clock.advance(400);
  expect(collected).toBe(0);
  clock.advance(100);
  expect(collected).toBe(1);
  clock.advance(60_000);
  expect(collected).toBe(2);
  expect(clock.pending()).toBe(0);
});

it("small Syncs cause no collection", () => {
  const clock = manualClock();
  const tidy = collectAfterLargeSyncs(clock, () => expect.unreachable());
  tidy({ changedPorts: 1 });
  clock.advance(60_000);
});

it("V8 collects objects that are not in use, though Node.js was started without --expose-gc", async () => {
  const clock = manualClock();
  const tidy = collectAfterLargeSyncs(clock);
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
