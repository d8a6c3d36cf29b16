// Reading at an interval: what is read, when, and what is reported where nothing is counted or reading fails.
import { getEventListeners } from "node:events";
import { describe, expect, it, vi } from "vitest";
import { manualClock } from "../../../test/support/manual-clock.ts";
import { endpoint, ipv4Settings, routed, servicePort } from "../../../test/support/routed.ts";
import type { TrafficSetting } from "../../config/resolve/settings.ts";
import { HostError } from "../../host/error.ts";
import type { Family } from "../../model/address.ts";
import type { CountGap } from "../../model/count-gaps.ts";
import type { Counted, Driver } from "../../modes/driver.ts";
import type { FinishedSync } from "../../sync/flows.ts";
import { systemClock } from "../clock.ts";
import type { Log } from "../log/log.ts";
import { silentLog } from "../log/log.ts";
import { openRegistry } from "../metrics/registry.ts";
import { metricTable } from "../metrics/table.ts";
import { readEveryMs, TrafficKeeper, type TrafficOptions } from "./keeper.ts";
import { mostPorts, reportTraffic } from "./metrics.ts";

const ports = [1, 2].map((n) =>
  servicePort(`shop/s${n}`, { clusterIP: `172.30.0.${n}`, endpoints: [endpoint("10.180.1.1:80")] }),
);

describe("reading", () => {
  it("begins after the first Sync, and is repeated every ten seconds", async () => {
    const { reads, synced, clock, start } = setUp();
    await start();
    expect(reads()).toBe(0);
    await synced();
    expect(reads()).toBe(1);
    clock.advance(readEveryMs - 1);
    await settle();
    expect(reads()).toBe(1);
    clock.advance(1);
    await settle();
    expect(reads()).toBe(2);
  });

  it("on demand happens at most once a second", async () => {
    const { reads, synced, clock, start, keeper } = setUp();
    await start();
    await synced();
    await keeper.refresh();
    await keeper.refresh();
    expect(reads()).toBe(1);
    clock.advance(1_000);
    await Promise.all([keeper.refresh(), keeper.refresh()]);
    expect(reads()).toBe(2);
  });

  it("uses a hundredth of one core at most", async () => {
    const { reads, synced, clock, start } = setUp({ costMs: 400 });
    await start();
    await synced();
    clock.advance(readEveryMs);
    await settle();
    expect(reads()).toBe(1);
    clock.advance(40_000 - readEveryMs);
    await settle();
    expect(reads()).toBe(2);
  });

  it("of conntrack on demand uses a tenth of one core at most, whatever time it takes", async () => {
    let [dumps, cpuMs] = [0, 0];
    const dump = async () => {
      dumps++;
      clock.advance(5_000);
      cpuMs += 200;
    };
    const { keeper, synced, clock, start } = setUp({ flows: { dump }, cpuMs: () => cpuMs });
    await start();
    await synced();
    expect(dumps).toBe(1);
    clock.advance(1_999);
    await keeper.refreshAll();
    expect(dumps).toBe(1);
    clock.advance(1);
    await keeper.refreshAll();
    expect(dumps).toBe(2);
  });

  it("is not charged for programs that end meanwhile, beyond the time that passed", async () => {
    let [dumps, cpuMs] = [0, 0];
    const dump = async () => {
      dumps++;
      clock.advance(50);
      cpuMs += 3_000;
    };
    const { synced, clock, start } = setUp({ flows: { dump }, cpuMs: () => cpuMs });
    await start();
    await synced();
    clock.advance(readEveryMs);
    await settle();
    expect(dumps).toBe(2);
  });

  it("leaves nothing at the signal that ends it", async () => {
    const { synced, clock, start, signal } = setUp();
    await start();
    await synced();
    const listeners = () => getEventListeners(signal, "abort").length;
    const first = listeners();
    for (let i = 0; i < 5; i++) {
      clock.advance(readEveryMs);
      await settle();
    }
    expect(listeners()).toBe(first);
  });

  it("continues after a failure, which is logged once, with the last known numbers", async () => {
    const errors: string[] = [];
    const log: Log = { ...silentLog, error: (error) => void errors.push(String((error as Error).message)) };
    const { synced, clock, start, keeper, fail } = setUp({ log });
    await start();
    await synced();
    fail("Cannot read: EPERM");
    for (let i = 0; i < 3; i++) {
      clock.advance(readEveryMs);
      await settle();
    }
    expect(errors).toEqual(["Cannot read: EPERM"]);
    expect(keeper.report().ports).toHaveLength(1);
  });
});

describe("the report", () => {
  it("has the Service ports with traffic only", async () => {
    const { synced, start, keeper } = setUp();
    await start();
    await synced();
    expect(keeper.report()).toMatchObject({
      setting: "services",
      counters: { counted: true, gaps: [] },
      ports: [{ namespace: "shop", name: "s1", counts: { connections: 5, refused: 1, outOfRange: 0 } }],
    });
  });

  it("has a loss in both IP families once", async () => {
    const { keeper, start, synced } = setUp({
      gaps: { ipv4: { from: 10, to: 20 }, ipv6: { from: 12, to: 25 } },
    });
    await start();
    await synced("ipv4");
    await synced("ipv6");
    expect(keeper.report().counters).toEqual({ counted: true, gaps: [{ from: 10, to: 25 }] });
  });

  it("states why nothing is counted: off, or a mode that cannot", async () => {
    expect(setUp({ setting: "off" }).keeper.report()).toMatchObject({
      counters: { counted: false, because: "--traffic is off" },
      ports: [],
    });
    expect(setUp({ counts: false }).keeper.report().counters).toEqual({
      counted: false,
      because: "not in this mode",
    });
    expect(setUp().keeper.report().flows).toEqual({ counted: false, because: "no accounting here" });
  });
});

describe("a kernel that refuses conntrack", () => {
  const refused = new HostError("refused", "Cannot watch conntrack: EPROTONOSUPPORT");
  const errorsIn = (errors: string[]): Log => ({
    ...silentLog,
    error: (error) => void errors.push(String((error as Error).message)),
  });

  it("because it has no nf_conntrack_netlink: bytes are not counted, connections are", async () => {
    const errors: string[] = [];
    const dump = async () => {
      throw new HostError("refused", "Cannot read flows: EPROTONOSUPPORT");
    };
    const watch = async () => {
      throw refused;
    };
    const { keeper, start, synced, clock } = setUp({
      log: errorsIn(errors),
      flows: { watch, dump },
      noFlows: null,
    });
    await start();
    await synced();
    clock.advance(readEveryMs);
    await settle();
    expect(keeper.report()).toMatchObject({
      counters: { counted: true },
      flows: { counted: false, because: refused.message },
      ports: [{ name: "s1", counts: { connections: 5 } }],
    });
    expect(errors).toEqual([refused.message, "Cannot read flows: EPROTONOSUPPORT"]);
  });

  it("for a while: bytes are counted again after that", async () => {
    let failing = true;
    const dump = async () => {
      if (failing) throw new HostError("refused", "Cannot read flows: ENOMEM");
    };
    const { keeper, start, synced, clock } = setUp({ flows: { dump }, noFlows: null });
    await start();
    await synced();
    expect(keeper.report()).toMatchObject({
      flowsAt: null,
      flows: { counted: false, because: "Cannot read flows: ENOMEM" },
    });
    failing = false;
    clock.advance(readEveryMs);
    await settle();
    expect(keeper.report().flows).toEqual({ counted: true, gaps: [] });
  });

  it("at first: a client that asks need not wait for the next reading", async () => {
    const failure = new HostError("refused", "Cannot read flows: ENOMEM");
    const dump = vi.fn(async () => {}).mockRejectedValueOnce(failure);
    const { keeper, start, synced, clock } = setUp({ flows: { dump }, noFlows: null });
    await start();
    await synced();
    await keeper.refreshAll();
    expect(dump).toHaveBeenCalledOnce();
    clock.advance(1_000);
    await keeper.refreshAll();
    expect(keeper.report().flows).toEqual({ counted: true, gaps: [] });
  });
});

describe("metrics", () => {
  it("have a limit on Service ports, which stays with the same ones, and a count of the others", async () => {
    const many = Array.from({ length: mostPorts + 3 }, (_, i) => servicePort(`shop/m${i}`));
    const { keeper, start, synced, count } = setUp({ ports: many });
    for (const { key } of many) count(key, 2);
    const { metrics, print } = openMetricsForTest();
    const report = vi.fn(() => keeper.report());
    reportTraffic(metrics, { setting: "services", refresh: () => keeper.refresh(), report });
    await start();
    await synced();
    const first = await print();
    // It costs time for every ServicePort.
    expect(report).toHaveBeenCalledOnce();
    expect(first.match(/^turnout_service_connections_total\{/gm)).toHaveLength(mostPorts);
    expect(first).toContain("\nturnout_traffic_hidden_ports 3\n");
    expect(first).toContain("\nturnout_traffic_hidden_connections_total 6\n");
    expect(await print()).toBe(first);
  });

  it("have no bytes where the kernel does not count them", async () => {
    const of = () => ({ active: 1, packetsIn: 0, bytesIn: 0, packetsOut: 0, bytesOut: 0 });
    const { keeper, start, synced } = setUp({ flows: { of } });
    const { metrics, print } = openMetricsForTest();
    reportTraffic(metrics, {
      setting: "services",
      refresh: () => keeper.refresh(),
      report: () => keeper.report(),
    });
    await start();
    await synced();
    const text = await print();
    expect(text).toMatch(/^turnout_service_active_connections\{.*\} 1$/m);
    expect(text).not.toMatch(/^turnout_service_(bytes|packets)_total\{/m);
  });

  it("are absent when nothing is counted, and cost nothing", async () => {
    const { keeper } = setUp({ setting: "off" });
    const { metrics, print } = openMetricsForTest();
    const report = vi.fn(() => keeper.report());
    reportTraffic(metrics, { setting: "off", refresh: () => keeper.refresh(), report });
    expect(await print()).not.toMatch(/^turnout_(service_(c|b|pac|a)|endpoint_|traffic_)/m);
    expect(report).not.toHaveBeenCalled();
  });
});

const openMetricsForTest = () =>
  openRegistry(
    metricTable,
    { mode: "nftables", gates: new Set(), kubernetes: "1.37", showHidden: false },
    systemClock,
  );

const noFlows = { watch: async () => {}, setRoutes() {}, dump: async () => {}, of: () => null, gaps: [] };

const settle = () => new Promise((resolve) => setImmediate(resolve));

type Options = {
  setting?: TrafficSetting;
  counts?: boolean;
  costMs?: number;
  log?: Log;
  ports?: typeof ports;
  flows?: Partial<TrafficOptions["flows"]>;
  noFlows?: string | null;
  gaps?: Readonly<Partial<Record<Family, CountGap | undefined>>>;
  cpuMs?: () => number;
};

function setUp({
  setting = "services",
  counts = true,
  costMs = 0,
  log = silentLog,
  ports: all = ports,
  flows = {},
  noFlows: reason = "no accounting here",
  gaps = { ipv4: undefined },
  cpuMs,
}: Options = {}) {
  const clock = manualClock();
  const counted = new Map<string, number>([["shop/s1/tcp/", 5]]);
  let [reads, failure] = [0, null as string | null];
  const readCounts = async (gap: CountGap | undefined): Promise<Counted> => {
    reads++;
    clock.advance(costMs);
    if (failure !== null) throw new HostError("refused", failure);
    return {
      gaps: gap === undefined ? [] : [gap],
      ports: new Map(
        [...counted].map(([key, connections]) => [
          key,
          { connections, refused: 1, outOfRange: 0, endpoints: null },
        ]),
      ),
    };
  };
  const driverOf = (gap: CountGap | undefined): Pick<Driver, "readCounts"> =>
    counts ? { readCounts: () => readCounts(gap) } : {};
  const keeper = new TrafficKeeper({
    setting,
    mode: counts ? "nftables" : "iptables",
    drivers: new Map(Object.entries(gaps).map(([family, gap]) => [family as Family, driverOf(gap)])),
    flows: { ...noFlows, ...flows },
    noFlows: reason,
    uncounted: counts ? null : "not in this mode",
    clock,
    cpuMs: cpuMs ?? (() => clock.steady()),
    log,
  });
  const routes = routed(all, { ...ipv4Settings, traffic: setting });
  const { signal } = new AbortController();
  return {
    clock,
    signal,
    keeper,
    reads: () => reads,
    count: (key: string, connections: number) => counted.set(key, connections),
    fail: (message: string) => {
      failure = message;
    },
    start: async () => {
      void keeper.run(signal);
      await settle();
    },
    synced: async (family: Family = "ipv4") => {
      const record = {
        family,
        outcome: { kind: "ok", refused: [] },
      } as unknown as FinishedSync["record"];
      keeper.observer.afterSync!({ record, changed: new Set(), routes: () => routes });
      await settle();
    },
  };
}
