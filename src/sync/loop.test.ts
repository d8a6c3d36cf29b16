// The loop's pacing, on a manual clock.
import { describe, expect, it } from "vitest";
import { changedSnapshots } from "../../test/support/changed-snapshots.ts";
import { SettlingClock } from "../../test/support/settling-clock.ts";
import type { ValidConfig } from "../config/config.ts";
import type { FamilySettings } from "../config/resolve/settings.ts";
import { milliseconds } from "../config/units/duration.ts";
import { HostError } from "../host/error.ts";
import { Notifier } from "../model/notifier.ts";
import type { Problem } from "../model/problem.ts";
import { type Driver, emptyReport, noProblems } from "../modes/driver.ts";
import { modes } from "../modes/index.ts";
import { resyncPeriodMs } from "../modes/mode.ts";
import { openLoop, type Pace } from "./loop.ts";
import type { SyncRecord } from "./record.ts";

describe("loop", () => {
  it("02/22 writes nothing before the first Snapshot, and then everything once", async () => {
    const { records, syncs, run, advance } = setUp();
    const stopped = run();
    await advance(5000);
    expect(syncs()).toEqual([]);
    await stopped(async ({ change }) => {
      change();
      await advance(0);
      expect(records.map(({ trigger }) => trigger)).toEqual(["first"]);
    });
  });

  it("02/23 merges triggers: one more run, no earlier than minSyncPeriod after the end of the last", async () => {
    const { syncs, run, advance } = setUp();
    await run()(async ({ change }) => {
      change();
      await advance(0);
      for (let i = 0; i < 3; i++) {
        await advance(30);
        change();
      }
      await advance(900);
      expect(syncs()).toEqual([0]);
      await advance(20);
      expect(syncs()).toEqual([0, 1000]);
      await advance(5000);
      expect(syncs()).toEqual([0, 1000]);
    });
  });

  it("02/24 retries after retryMs and then waits for resyncMs", async () => {
    const { syncs, run, advance, fail } = setUp({
      gap: { kind: "period", ms: 1000 },
      retryMs: 5000,
      resyncMs: 10_000,
    });
    await run()(async ({ change }) => {
      fail(1);
      change();
      await advance(0);
      await advance(4999);
      expect(syncs()).toEqual([0]);
      await advance(1);
      expect(syncs()).toEqual([0, 5000]);
      await advance(9999);
      expect(syncs()).toEqual([0, 5000]);
      await advance(1);
      expect(syncs()).toEqual([0, 5000, 15_000]);
    });
  });

  it("02/25 a trigger after a failure runs at minGap, and its success cancels the retry", async () => {
    const { syncs, run, advance, fail } = setUp({
      gap: { kind: "period", ms: 1000 },
      retryMs: 5000,
      resyncMs: 10_000,
    });
    await run()(async ({ change }) => {
      fail(1);
      change();
      await advance(0);
      await advance(500);
      change();
      await advance(500);
      expect(syncs()).toEqual([0, 1000]);
      await advance(9000);
      expect(syncs()).toEqual([0, 1000]);
    });
  });

  it("02/26 a retry waits for minGap", async () => {
    const { syncs, run, advance, fail } = setUp({
      gap: { kind: "period", ms: 5000 },
      retryMs: 1000,
      resyncMs: 10_000,
    });
    await run()(async ({ change }) => {
      fail(1);
      change();
      await advance(0);
      await advance(4999);
      expect(syncs()).toEqual([0]);
      await advance(1);
      expect(syncs()).toEqual([0, 5000]);
    });
  });

  it("02/27 refuses a longest interval below the shortest", () => {
    expect(() => setUp({ gap: { kind: "period", ms: 5000 }, retryMs: 1000, resyncMs: 1000 })).toThrow(
      RangeError,
    );
  });

  it("02/28 retries a first Sync that failed, where kube-proxy would wait for an event", async () => {
    const { syncs, run, advance, fail } = setUp();
    await run()(async ({ change }) => {
      fail(1);
      change();
      await advance(0);
      await advance(30_000);
      expect(syncs()).toEqual([0, 30_000]);
    });
  });

  it.for(Object.entries(modes))(
    "02/28 mode %s tries a failed Sync again after syncPeriod",
    async ([, mode]) => {
      const { syncs, run, advance, fail } = setUp({
        gap: { kind: "period", ms: 1000 },
        retryMs: milliseconds(periods.syncPeriod),
        resyncMs: resyncPeriodMs(mode, periods as ValidConfig),
      });
      await run()(async ({ change }) => {
        fail(2);
        change();
        await advance(0);
        await advance(60_000);
        expect(syncs()).toEqual([0, 30_000, 60_000]);
      });
    },
  );

  it("repairs drift immediately, whatever minGap is", async () => {
    const { run, advance, drift, verified } = setUp();
    await run()(async ({ change }) => {
      change();
      await advance(0);
      drift();
      await advance(100);
      expect(verified()).toBe(1);
    });
  });

  it("a host that cannot be read is read again after retryMs, whatever happens in between", async () => {
    const { run, advance, drift, verified, unreadable } = setUp();
    await run()(async ({ change }) => {
      change();
      await advance(0);
      unreadable(1);
      drift();
      for (let i = 0; i < 29; i++) {
        change();
        await advance(1000);
      }
      expect(verified()).toBe(0);
      await advance(2000);
      expect(verified()).toBe(1);
      await advance(60_000);
      expect(verified()).toBe(1);
    });
  });

  it("a host that cannot be read is read again immediately when it is changed again", async () => {
    const { run, advance, drift, verified, unreadable } = setUp();
    await run()(async ({ change }) => {
      change();
      await advance(0);
      unreadable(1);
      drift();
      await advance(5000);
      expect(verified()).toBe(0);
      drift();
      await advance(100);
      expect(verified()).toBe(1);
    });
  });

  it("refused objects are retried after a foreign change, which may have been the reason", async () => {
    const { run, advance, drift, refuse, retried } = setUp();
    await run()(async ({ change }) => {
      refuse(1);
      change();
      await advance(0);
      drift();
      await advance(100);
      drift();
      await advance(100);
      expect(retried()).toEqual([false, true, false]);
    });
  });

  it("constant drift does not delay changes of the cluster", async () => {
    const { run, advance, drift, records } = setUp();
    await run()(async ({ change }) => {
      change();
      await advance(0);
      change();
      for (let i = 0; i < 30; i++) {
        drift();
        await advance(100);
      }
      expect(records.filter(({ trigger }) => trigger === "change")).toHaveLength(1);
      expect(records.filter(({ trigger }) => trigger === "drift").length).toBeGreaterThan(20);
    });
  });

  it("constant changes of the cluster do not delay repairs", async () => {
    const { run, advance, drift, verified } = setUp({
      gap: { kind: "period", ms: 10 },
      retryMs: 5000,
      resyncMs: 10_000,
    });
    await run()(async ({ change }) => {
      change();
      await advance(0);
      drift();
      for (let i = 0; i < 30; i++) {
        change();
        await advance(10);
      }
      expect(verified()).toBe(1);
    });
  });

  it.each(["changes", "refused objects"])(
    "constant %s do not delay the comparison with the host",
    async (what) => {
      const { run, advance, refuse, records } = setUp({
        gap: { kind: "period", ms: 10 },
        retryMs: 1000,
        resyncMs: 10_000,
      });
      await run()(async ({ change }) => {
        if (what === "refused objects") refuse(Number.POSITIVE_INFINITY);
        change();
        for (let i = 0; i < 250; i++) {
          if (what === "changes") change();
          await advance(100);
        }
        const compared = records.filter(({ trigger }) => trigger === "resync");
        expect(compared.map(({ readBack }) => readBack)).toEqual([true, true]);
      });
    },
  );

  it("a change is queued; a retry, a resync and a repair are not", async () => {
    const { run, advance, drift, fail, syncs, queued } = setUp({
      gap: { kind: "period", ms: 1000 },
      retryMs: 5000,
      resyncMs: 10_000,
    });
    await run()(async ({ change }) => {
      fail(1);
      change();
      await advance(0);
      await advance(15_000);
      drift();
      await advance(1000);
      expect([syncs().length, queued()]).toEqual([4, 1]);
    });
  });

  it("throws bugs", async () => {
    const { run, advance, bug } = setUp();
    await expect(
      run()(async ({ change }) => {
        bug();
        change();
        await advance(0);
      }),
    ).rejects.toThrow("a bug");
  });
});

type Steps = (steps: (source: { change: () => void }) => Promise<void>) => Promise<void>;

const periods: Pick<ValidConfig, "pace" | "syncPeriod"> = {
  pace: { kind: "period", period: 1_000_000_000n },
  syncPeriod: 30_000_000_000n,
};

function setUp(pace: Pace = { gap: { kind: "period", ms: 1000 }, retryMs: 30_000, resyncMs: 3_600_000 }) {
  const clock = new SettlingClock();
  const starts: number[] = [];
  const records: SyncRecord[] = [];
  const retries: boolean[] = [];
  let failures = 0;
  /** After a failure the host is read. */
  let isUnknown = true;
  let refusals = 0;
  let unreadable = 0;
  let isBuggy = false;
  let verifications = 0;
  let requests = 0;
  let onDrift: (what: string) => void = () => {};
  const driver: Driver = {
    sync: (_, __, retryRefused = false) => {
      starts.push(clock.steady());
      retries.push(retryRefused);
      if (isBuggy) return Promise.reject(new Error("a bug"));
      const readBack = isUnknown;
      isUnknown = failures-- > 0;
      if (isUnknown) return Promise.reject(new HostError("refused", "Cannot apply: no"));
      return Promise.resolve({
        readBack,
        operations: 0,
        bytes: 0,
        refused: refusals-- > 0 ? [problem] : [],
      });
    },
    verify: () => {
      if (unreadable-- > 0) return Promise.reject(new HostError("unavailable", "Cannot read: no"));
      return Promise.resolve({ differences: ++verifications });
    },
    watch: (callback) => {
      onDrift = callback;
      return Promise.resolve();
    },
    unserved: () => noProblems,
    report: () => emptyReport,
    close: () => Promise.resolve(),
  };
  const notifier = new Notifier();
  const stop = new AbortController();
  const loop = openLoop({
    snapshots: changedSnapshots(notifier, stop.signal),
    drivers: new Map([["ipv4", driver]]),
    settings: () => settings,
    pace: () => pace,
    clock,
    cpuMs: () => clock.steady(),
    observers: [
      {
        queued: () => {
          requests++;
        },
        synced: (record) => records.push(record),
      },
    ],
  });
  const run = (): Steps => {
    const running = loop.run(stop.signal);
    return async (steps) => {
      await Promise.race([steps({ change: () => notifier.notify() }), running]);
      stop.abort();
      await running;
    };
  };
  return {
    records,
    run,
    syncs: () => starts,
    verified: () => verifications,
    queued: () => requests,
    advance: (ms: number) => clock.advance(ms),
    fail: (times: number) => {
      failures = times;
    },
    refuse: (times: number) => {
      refusals = times;
    },
    unreadable: (times: number) => {
      unreadable = times;
    },
    /** For each Sync, whether what was refused should be tried again. */
    retried: () => retries,
    bug: () => {
      isBuggy = true;
    },
    drift: () => onDrift("another process"),
  };
}

const problem: Problem = { kind: "refused", object: "Service shop/web", field: "", message: "no" };

const settings = { family: "ipv4" } as unknown as FamilySettings;
