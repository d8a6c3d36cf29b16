// When stale flows are searched for: after successful Syncs that leave some, at most once a second, and how often the table is read.
import { describe, expect, it } from "vitest";
import { manualClock } from "../../test/support/manual-clock.ts";
import { endpoint, ipv4Settings, routed, servicePort } from "../../test/support/routed.ts";
import { trackedView } from "../../test/support/tracked-flows.ts";
import { HostError } from "../host/error.ts";
import type { Cleaning, FlowQuery } from "../host/netlink/conntrack.ts";
import type { Family } from "../model/address.ts";
import type { Endpoint, ServicePort } from "../model/snapshot.ts";
import type { Routes } from "../routing/routes.ts";
import { type FinishedSync, type FlowSweep, FlowSweeper } from "./flows.ts";

const dns = (...at: readonly string[]): ServicePort =>
  servicePort("kube-system/dns", {
    protocol: "udp",
    port: 53,
    nodePort: 30_053,
    externalIPs: ["203.0.113.8"],
    endpoints: at.map((each) => endpoint(each)),
  });
const web = (at: string): ServicePort => servicePort("shop/web", { endpoints: [endpoint(at)] });
const two = dns("10.180.0.1:53", "10.180.0.2:53");
const [first, second] = two.endpoints as [Endpoint, Endpoint];

describe("stale flows", () => {
  it("are searched for after the first Sync of a family with UDP, as kube-proxy does", async () => {
    const { passes, sync, wanted } = setUp();
    wanted(web("10.180.0.1:80"));
    await sync("ok", "ipv6");
    expect(passes).toEqual([]);
    wanted(web("10.180.0.1:80"), dns("10.180.0.1:53"));
    await sync();
    expect(passes.map(({ family, protocol }) => [family, protocol])).toEqual([["ipv4", 17]]);
  });

  it("04/37 10/57 are not searched for when only TCP endpoints change", async () => {
    const { later, sync, wanted } = await afterFirst(web("10.180.0.1:80"), dns("10.180.0.1:53"));
    wanted(web("10.180.0.2:80"), dns("10.180.0.1:53"));
    await sync();
    wanted(dns("10.180.0.1:53"));
    await sync();
    expect(later()).toBe(0);
  });

  it("are not searched for when UDP endpoints are only added, however often", async () => {
    const { later, sync, wanted } = await afterFirst(dns("10.180.0.1:53"));
    for (let i = 2; i < 100; i++) {
      wanted(dns(...Array.from({ length: i }, (_, n) => `10.180.0.${n + 1}:53`)));
      await sync();
    }
    expect(later()).toBe(0);
  });

  it.for<[string, ServicePort[]]>([
    ["an endpoint is gone", [dns("10.180.0.2:53")]],
    ["an endpoint is replaced", [dns("10.180.0.1:53", "10.180.0.3:53")]],
    ["an endpoint no longer serves", [{ ...two, endpoints: [first, { ...second, serving: false }] }]],
    ["all endpoints are gone", [dns()]],
    ["an address is gone", [{ ...two, externalIPs: [] }]],
    ["a node port is another", [{ ...two, nodePort: 30_054 }]],
    ["the Service is gone", []],
    // Flows that passed its address by before it was served there.
    ["an address is new", [{ ...two, loadBalancerIPs: ["203.0.113.9"] }]],
    [
      "a Service is new",
      [two, servicePort("shop/dns", { protocol: "udp", clusterIP: "172.30.0.11", endpoints: [first] })],
    ],
  ])("are searched for once when %s", async ([, ports]) => {
    const { later, sync, wanted } = await afterFirst(two);
    wanted(...ports);
    await sync();
    await sync();
    expect(later()).toBe(1);
  });

  it("are searched for only where the change may have left some, also when it is repeated", async () => {
    const { passes, sync, wanted, interrupt, clock } = await afterFirst(two);
    const gone = { kind: "answered by", address: "10.180.0.2", port: 53 };
    interrupt();
    wanted(dns("10.180.0.1:53"));
    await sync();
    clock.advance(1000);
    wanted({ ...dns("10.180.0.1:53"), externalIPs: [], nodePort: 30_054 });
    await sync();
    expect(passes.slice(-2).map(({ among }) => among)).toEqual([
      [gone],
      [
        gone,
        { kind: "sent to", address: "203.0.113.8", port: 53 },
        { kind: "sent to", address: null, port: 30_053 },
        { kind: "sent to", address: null, port: 30_054 },
      ],
    ]);
  });

  it("are searched for when the first endpoint starts to serve", async () => {
    const { later, sync, wanted } = await afterFirst(dns());
    wanted(dns("10.180.0.1:53"));
    await sync();
    expect(later()).toBe(1);
  });

  it("04/38 are searched for after the next successful Sync when the one with the change failed", async () => {
    const { later, sync, wanted } = await afterFirst(dns("10.180.0.1:53"));
    wanted(dns("10.180.0.2:53"));
    await sync("failed");
    expect(later()).toBe(0);
    await sync();
    expect(later()).toBe(1);
  });

  it("04/40 are searched for again after the next Sync when the kernel refused", async () => {
    const { later, sweeps, sync, refuse, wanted, clock } = await afterFirst(dns("10.180.0.1:53"));
    refuse();
    wanted(dns("10.180.0.2:53"));
    await sync();
    expect(sweeps.at(-1)!.outcome).toEqual({ kind: "failed", message: "Cannot read: EPERM" });
    clock.advance(1000);
    await sync();
    expect(later()).toBe(2);
    expect(sweeps.at(-1)!.outcome).toMatchObject({ kind: "ok", deleted: 1 });
  });

  it("are searched for again after the next Sync when the table could not be read completely", async () => {
    const { later, sync, interrupt, wanted, clock } = await afterFirst(dns("10.180.0.1:53"));
    interrupt();
    wanted(dns("10.180.0.2:53"));
    await sync();
    clock.advance(1000);
    await sync();
    await sync();
    expect(later()).toBe(2);
  });

  it("of 20 changes a second are searched for once a second, the last ones within a second", async () => {
    const { later, sync, wanted, clock } = await afterFirst(dns("10.180.0.1:53"));
    for (let i = 0; i < 200; i++) {
      wanted(dns(`10.180.1.${i + 1}:53`));
      await sync();
      clock.advance(50);
      await settled();
    }
    // At 0, 1, … 10 seconds: that of the last second covers the last change.
    expect(later()).toBe(11);
    clock.advance(5000);
    await settled();
    expect(later()).toBe(11);
  });

  it("are searched for at the pace of each family", async () => {
    const { passes, sync, wanted } = await afterFirst(dns("10.180.0.1:53"));
    wanted(dns("10.180.0.2:53"));
    await sync("ok", "ipv4");
    await sync("ok", "ipv6");
    expect(passes.slice(1).map(({ family }) => family)).toEqual(["ipv4", "ipv6"]);
  });

  it("accumulate while a pass runs, and are selected by the current Routes", async () => {
    const { passes, sync, hold, wanted, clock } = await afterFirst(dns("10.180.0.9:53"));
    const release = hold();
    for (const address of ["10.180.0.3:53", "10.180.0.2:53", "10.180.0.1:53"]) {
      wanted(dns(address));
      await sync();
    }
    expect(passes).toHaveLength(2);
    const flow = trackedView("udp 10.0.1.9:4000 > 172.30.0.10:53 > 10.180.0.1:53");
    const isDeleted = (replySource: string) => passes[1]!.select({ ...flow, replySource });
    expect([isDeleted("10.180.0.1"), isDeleted("10.180.0.2")]).toEqual([false, true]);
    wanted(dns("10.180.0.2:53"));
    expect([isDeleted("10.180.0.1"), isDeleted("10.180.0.2")]).toEqual([true, false]);
    clock.advance(1000);
    await release();
    expect(passes).toHaveLength(3);
  });

  it("upstream/1: of a removed Frontend are selected, those of others are not", async () => {
    const { passes, sync, wanted } = await afterFirst(dns("10.180.0.1:53"));
    wanted();
    await sync();
    const flow = trackedView("udp 10.0.1.9:4000 > 172.30.0.10:53 > 10.180.0.1:53");
    const isSelected = (more: object) => passes[1]!.select({ ...flow, ...more });
    expect(isSelected({})).toBe(true);
    expect(isSelected({ destination: "172.30.0.11" })).toBe(false);
    expect(isSelected({ replySource: "172.30.0.10" })).toBe(false);
    const nodePort = { destinationPort: 30_053, destination: "192.168.0.2" };
    expect(isSelected(nodePort)).toBe(true);
    expect(isSelected({ ...nodePort, destination: "8.8.8.8" })).toBe(false);
  });

  it("upstream/1: of a removed Frontend are selected until a pass was complete", async () => {
    const { passes, later, sync, wanted, refuse, clock } = await afterFirst(dns("10.180.0.1:53"));
    wanted();
    refuse();
    await sync("failed");
    expect(later()).toBe(0);
    await sync();
    clock.advance(1000);
    await sync();
    clock.advance(1000);
    await sync();
    expect(later()).toBe(2);
    const flow = trackedView("udp 10.0.1.9:4000 > 172.30.0.10:53 > 10.180.0.1:53");
    expect(passes.at(-1)!.select(flow)).toBe(true);
  });

  it("a pass that takes too long is aborted", async () => {
    const { sweeps, sync, hold, clock, wanted } = await afterFirst(dns("10.180.0.1:53"));
    const release = hold();
    wanted(dns("10.180.0.2:53"));
    await sync();
    clock.advance(61_000);
    await release();
    expect(sweeps.at(-1)!.outcome).toEqual({
      kind: "failed",
      message: "Cannot delete stale flows: it took too long",
    });
  });

  it("a pass that is due when the daemon stops does not keep it", async () => {
    const { sync, wanted, stop, sweeper, sweeps } = await afterFirst(dns("10.180.0.1:53"));
    for (const address of ["10.180.0.2:53", "10.180.0.3:53"]) {
      wanted(dns(address));
      await sync();
    }
    stop();
    await sweeper.idle();
    expect(sweeps.at(-1)!.outcome).toEqual({
      kind: "failed",
      message: "Cannot delete stale flows: we are stopping",
    });
  });
});

/** More than a second after the first Sync. */
async function afterFirst(...ports: readonly ServicePort[]) {
  const rig = setUp();
  rig.wanted(...ports);
  await rig.sync();
  rig.clock.advance(1001);
  const before = rig.passes.length;
  return { ...rig, later: () => rig.passes.length - before };
}

function setUp() {
  const clock = manualClock();
  const passes: FlowQuery[] = [];
  const sweeps: FlowSweep[] = [];
  const stopping = new AbortController();
  let routes: Routes = routed([], ipv4Settings);
  const unseen = new Map<Family, Set<string>>([
    ["ipv4", new Set()],
    ["ipv6", new Set()],
  ]);
  let answer = (): Promise<Cleaning> => Promise.resolve(oneDeleted);
  const once = (next: () => Promise<Cleaning>) => {
    answer = () => {
      answer = () => Promise.resolve(oneDeleted);
      return next();
    };
  };
  const clean = async (query: FlowQuery, signal: AbortSignal): Promise<Cleaning> => {
    passes.push(query);
    const cleaning = await answer();
    signal.throwIfAborted();
    return cleaning;
  };
  const sweeper = new FlowSweeper({ clean, clock, swept: (sweep) => sweeps.push(sweep) }, stopping.signal);
  return {
    clock,
    passes,
    sweeps,
    sweeper,
    stop: () => stopping.abort(),
    sync: async (outcome: "ok" | "failed" = "ok", family: Family = "ipv4") => {
      const changed = unseen.get(family)!;
      unseen.set(family, new Set());
      sweeper.afterSync({ record: record(outcome, family), changed, routes: () => routes });
      await settled();
    },
    refuse: () =>
      once(() => Promise.reject(new HostError("refused", "Cannot read: EPERM", { errno: "EPERM" }))),
    interrupt: () => once(() => Promise.resolve({ ...oneDeleted, complete: false })),
    /** The next pass waits until the returned function is called. */
    hold: () => {
      let open = () => {};
      const held = new Promise<void>((resolve) => {
        open = resolve;
      });
      once(() => held.then(() => oneDeleted));
      return async () => {
        open();
        await sweeper.idle();
      };
    },
    wanted: (...ports: readonly ServicePort[]) => {
      routes = routed(ports, ipv4Settings, routes);
      for (const keys of unseen.values()) for (const key of routes.changed) keys.add(key);
    },
  };
}

function settled(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

const oneDeleted: Cleaning = { examined: 1, deleted: 1, complete: true };

function record(outcome: "ok" | "failed", family: Family): FinishedSync["record"] {
  return {
    family,
    trigger: "change",
    startedAt: 0,
    finishedAt: 0,
    changedPorts: 0,
    servicePorts: 0,
    endpoints: 0,
    operations: 0,
    bytes: 0,
    readBack: false,
    outcome: outcome === "ok" ? { kind: "ok", refused: [] } : { kind: "failed", message: "no" },
  };
}
