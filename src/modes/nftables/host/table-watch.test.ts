// Watching with pauses: nothing that others did meanwhile goes unnoticed.
import { describe, expect, it } from "vitest";
import { TableWatch } from "./table-watch.ts";

describe("watching the table", () => {
  it("begins with the first resume, not before", async () => {
    const { watch, listeners } = setUp();
    await watch.pause();
    expect(listeners()).toBe(0);
    await watch.resume();
    await watch.resume();
    expect(listeners()).toBe(1);
  });

  it("stops during a pause, and checks afterwards whether another process changed anything", async () => {
    const { watch, listeners, reported, others } = setUp();
    await watch.resume();
    await watch.pause();
    await watch.pause();
    expect(listeners()).toBe(0);
    await watch.resume();
    expect(reported).toEqual([]);
    await watch.pause();
    others();
    await watch.resume();
    await expect.poll(() => reported).toEqual(["nf_tables changed while we did not watch"]);
    expect(listeners()).toBe(1);
  });

  it("ends with its signal", async () => {
    const { watch, listeners, stop } = setUp();
    await watch.resume();
    stop();
    expect(listeners()).toBe(0);
  });
});

function setUp() {
  const stop = new AbortController();
  const reported: string[] = [];
  const signals = new Set<AbortSignal>();
  let generation = 0;
  const watch = new TableWatch({
    watch: (_, signal) => {
      signals.add(signal);
      return Promise.resolve();
    },
    mark: () => Promise.resolve({ generation, own: 0 }),
    changedByOthersSince: (mark) => Promise.resolve(mark?.generation !== generation),
  });
  watch.want((what) => reported.push(what), stop.signal);
  return {
    watch,
    reported,
    listeners: () => [...signals].filter(({ aborted }) => !aborted).length,
    others: () => {
      generation++;
    },
    stop: () => stop.abort(),
  };
}
