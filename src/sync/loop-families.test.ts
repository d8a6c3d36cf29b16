// Families turn side by side: one that is slow or refused keeps no other waiting, and misses nothing meanwhile.
import { describe, expect, it } from "vitest";
import { manualClock } from "../../test/support/manual-clock.ts";
import type { FamilySettings } from "../config/resolve/settings.ts";
import { HostError } from "../host/error.ts";
import type { Family } from "../model/address.ts";
import { keyed } from "../model/keyed.ts";
import { Notifier } from "../model/notifier.ts";
import type { Snapshot } from "../model/snapshot.ts";
import { type Applied, type Driver, emptyReport, noProblems } from "../modes/driver.ts";
import { openLoop, type Pace } from "./loop.ts";

const applied: Applied = { readBack: false, operations: 0, bytes: 0, refused: [] };
const noCIDRs: Snapshot["ipv4"]["serviceCIDRs"] = [];
const pace: Pace = { gap: { kind: "period", ms: 1000 }, retryMs: 30_000, resyncMs: 3_600_000 };

describe("10/60 two families", () => {
  it("sync independently: one that hangs does not delay the other", async () => {
    await running(async ({ drivers, offer, pass }) => {
      drivers.ipv4.hold();
      offer(1);
      await pass(0);
      for (const at of [2, 3]) {
        offer(at);
        await pass(1000);
      }
      expect(drivers.ipv4.syncs).toBe(1);
      expect(drivers.ipv6.syncs).toBe(3);
    });
  });

  it("changes that arrive while one is busy are merged, with nothing missing", async () => {
    await running(async ({ drivers, offer, pass, taken }) => {
      drivers.ipv4.hold();
      offer(1);
      await pass(0);
      for (const at of [2, 3]) {
        offer(at);
        await pass(1000);
      }
      drivers.ipv4.release();
      await pass(0);
      await pass(1000);
      const seen = taken.filter(({ family }) => family === "ipv4").map(({ snapshot }) => snapshot);
      expect(seen).toHaveLength(2);
      expect([...seen[1]!.ipv4.changed]).toEqual(["key-2", "key-3"]);
      expect(seen[1]!.triggeredAt.ipv4).toEqual([2, 3]);
      expect(seen[1]!.causes.objects.map(({ name }) => name)).toEqual(["slice-2", "slice-3"]);
      expect(seen[1]!.causes.more).toBe(5);
    });
  });

  it("a change of one family syncs only that family", async () => {
    await running(async ({ drivers, offer, pass }) => {
      offer(1);
      await pass(0);
      offer(2, ["ipv6"]);
      await pass(1000);
      offer(3, ["ipv6"]);
      await pass(1000);
      expect([drivers.ipv4.syncs, drivers.ipv6.syncs]).toEqual([1, 3]);
      offer(4);
      await pass(1000);
      expect([drivers.ipv4.syncs, drivers.ipv6.syncs]).toEqual([2, 4]);
    });
  });

  it("a change of neither family syncs none", async () => {
    await running(async ({ drivers, offer, pass }) => {
      offer(1);
      await pass(0);
      offer(2, []);
      await pass(1000);
      expect([drivers.ipv4.syncs, drivers.ipv6.syncs]).toEqual([1, 1]);
    });
  });

  it("a change of the zone syncs both", async () => {
    await running(async ({ drivers, offer, pass }) => {
      offer(1);
      await pass(0);
      offer(2, [], "east");
      await pass(1000);
      expect([drivers.ipv4.syncs, drivers.ipv6.syncs]).toEqual([2, 2]);
    });
  });

  it("one that fails is retried alone", async () => {
    await running(async ({ drivers, offer, pass }) => {
      drivers.ipv4.refuse();
      offer(1);
      await pass(0);
      await pass(30_000);
      expect([drivers.ipv4.syncs, drivers.ipv6.syncs]).toEqual([2, 1]);
    });
  });
});

type Rig = {
  readonly drivers: Readonly<Record<Family, TestDriver>>;
  readonly taken: { readonly family: Family; readonly snapshot: Snapshot }[];
  readonly offer: (n: number, concerned?: readonly Family[], zone?: string) => void;
  readonly pass: (ms: number) => Promise<void>;
};

/** A driver that can be made to hang, or to refuse once. */
class TestDriver implements Driver {
  syncs = 0;
  #held: Promise<void> = Promise.resolve();
  #refuses = false;
  release = () => {};

  hold(): void {
    this.#held = new Promise((resolve) => {
      this.release = resolve;
    });
  }

  refuse(): void {
    this.#refuses = true;
  }

  async sync(): Promise<Applied> {
    this.syncs++;
    await this.#held;
    if (!this.#refuses) return applied;
    this.#refuses = false;
    throw new HostError("refused", "Cannot apply: no");
  }

  verify = () => Promise.resolve({ differences: 0 });
  watch = () => Promise.resolve();
  unserved = () => noProblems;
  report = () => emptyReport;
  close = () => Promise.resolve();
}

async function running(steps: (rig: Rig) => Promise<void>): Promise<void> {
  const clock = manualClock();
  const drivers = { ipv4: new TestDriver(), ipv6: new TestDriver() };
  const taken: Rig["taken"] = [];
  const [waiting, notifier, stop]: [Snapshot[], Notifier, AbortController] = [
    [],
    new Notifier(),
    new AbortController(),
  ];
  const loop = openLoop({
    snapshots: offered(waiting, notifier, stop.signal),
    drivers: new Map(Object.entries(drivers) as [Family, Driver][]),
    settings: (family) => ({ family }) as unknown as FamilySettings,
    pace: () => pace,
    clock,
    cpuMs: () => clock.steady(),
    observers: [{ taken: (family, snapshot) => taken.push({ family, snapshot }) }],
  });
  const ended = loop.run(stop.signal);
  const settle = async () => {
    for (let i = 0; i < 20; i++) await new Promise((resolve) => setImmediate(resolve));
  };
  await steps({
    drivers,
    taken,
    offer(n, concerned = ["ipv4", "ipv6"], zone = "west") {
      waiting.push(snapshotOf(n, concerned, zone));
      notifier.notify();
    },
    async pass(ms) {
      await settle();
      clock.advance(ms);
      await settle();
    },
  });
  stop.abort();
  drivers.ipv4.release();
  await ended;
}

async function* offered(
  waiting: Snapshot[],
  notifier: Notifier,
  signal: AbortSignal,
): AsyncGenerator<Snapshot> {
  for (;;) {
    await notifier.notified(signal);
    while (waiting.length > 0) yield waiting.shift()!;
  }
}

const slice = {
  kind: "EndpointSlice",
  namespace: "shop",
  event: "modified",
  resourceVersion: "",
  receivedAt: 0,
} as const;

function snapshotOf(n: number, concerned: readonly Family[], zone: string): Snapshot {
  const changed = (family: Family) => new Set(concerned.includes(family) ? [`key-${n}`] : []);
  const part = (family: Family) => ({
    ports: keyed<never>(),
    changed: changed(family),
    serviceCIDRs: noCIDRs,
  });
  const at = (family: Family) => (concerned.includes(family) ? [n] : []);
  return {
    ipv4: part("ipv4"),
    ipv6: part("ipv6"),
    node: { name: "node-a", zone, addresses: [], podCIDRs: [], eligibleForLoadBalancers: true },
    triggeredAt: { ipv4: at("ipv4"), ipv6: at("ipv6") },
    causes: { objects: [{ ...slice, name: `slice-${n}` }], more: n },
    problems: [],
  };
}
