// Bursts, rolling updates and flapping endpoints on a manual clock: how many Syncs they cause, what those use, how long changes wait.
import { describe, expect, it } from "vitest";
import { changedSnapshots } from "../../test/support/changed-snapshots.ts";
import { SettlingClock } from "../../test/support/settling-clock.ts";
import type { FamilySettings } from "../config/resolve/settings.ts";
import { HostError } from "../host/error.ts";
import type { Family } from "../model/address.ts";
import { Notifier } from "../model/notifier.ts";
import { type Driver, emptyReport, noProblems } from "../modes/driver.ts";
import { openLoop } from "./loop.ts";
import { burstMs, type Gap, longestGapMs, share } from "./pace.ts";

/** What a Sync takes in each mode, about: nftables and ipvs write the change, iptables starts a program. */
const cheap = 2;
const dear = 400;

const byCost: Gap = { kind: "cost" };

describe("Syncs paced by cost", () => {
  it("a burst of changes at one moment is one Sync, and those that arrive meanwhile another", async () => {
    const { syncs, waits } = await simulate({ costMs: cheap, events: [...times(50, 0), ...times(50, 1)] });
    expect(syncs.map(({ start }) => start)).toEqual([0, 2]);
    expect(Math.max(...waits)).toBe(2 * cheap);
  });

  it("20 changes a second are one Sync each, and none waits", async () => {
    const { syncs, waits } = await simulate({ costMs: cheap, events: evenly(1200, 60_000) });
    expect(syncs).toHaveLength(1200);
    expect(Math.max(...waits)).toBe(cheap);
  });

  it("a new Service and its slice a moment later are two Syncs without a gap", async () => {
    const { syncs } = await simulate({ costMs: 100, events: [0, 20] });
    expect(syncs.map(({ start }) => start)).toEqual([0, 100]);
  });

  it("a rolling update of 1,000 pods in a cheap mode waits for no gap longer than its cost deserves", async () => {
    // Per pod: one ends, one becomes ready; 25 pods a second.
    const { syncs, waits, usedMs } = await simulate({ costMs: 4, events: evenly(2000, 40_000) });
    expect(usedMs).toBeLessThanOrEqual(budgetOver(40_000) + 4);
    expect(longestGap(syncs)).toBeLessThanOrEqual(Math.ceil(4 / share));
    expect(Math.max(...waits)).toBeLessThanOrEqual(4 + Math.ceil(4 / share));
    // The share allows 37 Syncs a second and the burst 75 more, of 50 changes a second.
    expect(syncs.length).toBeGreaterThan(1500);
  });

  it("a rolling update of 1,000 pods in a dear mode is synced after kube-proxy's second, no later", async () => {
    const { syncs, waits } = await simulate({ costMs: dear, events: evenly(2000, 40_000) });
    expect(longestGap(syncs)).toBe(longestGapMs);
    expect(Math.max(...waits)).toBeLessThanOrEqual(longestGapMs + 2 * dear);
    expect(syncs.length).toBeLessThanOrEqual(Math.ceil(40_000 / (longestGapMs + dear)) + 1);
  });

  it.for([2, 10, 50])(
    "an endpoint that flaps every 5 ms uses the share and no more, at %i ms a Sync",
    async (costMs) => {
      const { syncs, usedMs } = await simulate({ costMs, events: evenly(6000, 30_000) });
      expect(usedMs).toBeLessThan(budgetOver(30_000) + 2 * costMs);
      expect(usedMs).toBeGreaterThan(share * 30_000);
      expect(longestGap(syncs)).toBeLessThanOrEqual(longestGapMs);
    },
  );

  it("the second wins over the share", async () => {
    const { usedMs } = await simulate({ costMs: dear, events: evenly(6000, 30_000) });
    expect(usedMs).toBeGreaterThan(budgetOver(30_000));
  });

  it("two families share one budget, and neither waits longer than a second for the other", async () => {
    const families = ["ipv4", "ipv6"] as const;
    const { syncs, usedMs } = await simulate({ costMs: 10, events: evenly(6000, 30_000), families });
    expect(usedMs).toBeLessThanOrEqual(budgetOver(30_000) + 2 * 10);
    for (const family of families) {
      const own = syncs.filter((sync) => sync.family === family);
      expect(own.length).toBeGreaterThan(syncs.length * 0.4);
      expect(longestGap(own)).toBeLessThanOrEqual(longestGapMs);
    }
  });

  it("the first Sync is not charged: what changed during it follows immediately", async () => {
    const { syncs } = await simulate({ costMs: 5000, events: [0, 100], warm: false });
    expect(syncs.map(({ start }) => start)).toEqual([0, 5000]);
  });

  it("Syncs that fail are a second apart", async () => {
    const { syncs } = await simulate({ costMs: cheap, events: evenly(100, 5000), failing: true });
    expect(syncs).toHaveLength(6);
    expect(longestGap(syncs)).toBe(longestGapMs);
  });

  it("a period is kept exactly, whatever Syncs cost", async () => {
    const { syncs } = await simulate({
      costMs: 1,
      events: evenly(1000, 10_000),
      gap: { kind: "period", ms: 1000 },
    });
    expect(syncs).toHaveLength(11);
    expect(longestGap(syncs)).toBe(1000);
  });
});

type Simulation = {
  readonly costMs: number;
  /** When something changes. */
  readonly events: readonly number[];
  readonly families?: readonly Family[];
  readonly gap?: Gap;
  /** Whether a first Sync was made long before; it is not counted. */
  readonly warm?: boolean;
  readonly failing?: boolean;
};

type SimulatedSync = { readonly family: Family; readonly start: number; readonly end: number };

async function simulate({
  costMs,
  events,
  families = ["ipv4"],
  gap = byCost,
  warm = true,
  failing = false,
}: Simulation) {
  const clock = new SettlingClock();
  const notifier = new Notifier();
  const stop = new AbortController();
  let begin = 0;
  let workedMs = 0;
  let syncs: SimulatedSync[] = [];
  /** When each change that no Sync has taken yet was made. */
  let pending: number[] = [];
  const waits: number[] = [];
  const sync = async (family: Family) => {
    const start = clock.steady() - begin;
    const taken = pending;
    if (family === families[0]) pending = [];
    await new Promise<void>((resolve) => clock.after(costMs, resolve));
    const end = clock.steady() - begin;
    workedMs += costMs;
    syncs.push({ family, start, end });
    if (family === families[0]) waits.push(...taken.map((at) => end - at));
    if (failing && begin > 0) throw new HostError("refused", "Cannot apply: no");
    return { readBack: false, operations: 0, bytes: 0, refused: [] };
  };
  const loop = openLoop({
    snapshots: changedSnapshots(notifier, stop.signal),
    drivers: new Map(families.map((family) => [family, driverOf(() => sync(family))])),
    settings: (family) => ({ family }) as unknown as FamilySettings,
    pace: () => ({ gap, retryMs: 30_000, resyncMs: 3_600_000 }),
    clock,
    cpuMs: () => workedMs,
    observers: [],
  });
  const running = loop.run(stop.signal);
  if (warm) {
    notifier.notify();
    await clock.advance(60_000);
    begin = clock.steady();
    syncs = [];
  }
  const schedule = (i: number): void => {
    const at = events[i];
    if (at === undefined) return;
    clock.after(at - (events[i - 1] ?? 0), () => {
      pending.push(at);
      notifier.notify();
      schedule(i + 1);
    });
  };
  schedule(0);
  await clock.advance(Math.max(...events) + 10_000);
  stop.abort();
  await running;
  const usedMs = syncs.reduce((sum, { start, end }) => sum + end - start, 0);
  return { syncs, waits, usedMs };
}

function driverOf(sync: Driver["sync"]): Driver {
  return {
    sync,
    verify: () => Promise.resolve({ differences: 0 }),
    watch: () => Promise.resolve(),
    unserved: () => noProblems,
    report: () => emptyReport,
    close: () => Promise.resolve(),
  };
}

function times(count: number, at: number): number[] {
  return Array.from({ length: count }, () => at);
}

function evenly(count: number, overMs: number): number[] {
  return Array.from({ length: count }, (_, i) => (i * overMs) / count);
}

/** All that the share and the burst allow in that time. */
function budgetOver(ms: number): number {
  return burstMs + share * ms;
}

function longestGap(syncs: readonly SimulatedSync[]): number {
  return Math.max(...syncs.slice(1).map(({ start }, i) => start - syncs[i]!.end));
}
