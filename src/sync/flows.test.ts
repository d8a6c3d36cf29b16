// When stale flows are searched for: after successful Syncs that require it, one pass at a time.
import { describe, expect, it } from "vitest";
import { manualClock } from "../../test/support/manual-clock.ts";
import { endpoint, ipv4Settings, routed, servicePort } from "../../test/support/routed.ts";
import { HostError } from "../host/error.ts";
import type { Cleaning, FlowQuery } from "../host/netlink/conntrack.ts";
import type { Family } from "../model/address.ts";
import { noUdpChanges, type Snapshot } from "../model/snapshot.ts";
import type { Routes } from "../routing/routes.ts";
import { type FinishedSync, type FlowSweep, FlowSweeper } from "./flows.ts";

describe("stale flows", () => {
  it("04/37 10/57 are not searched for when no UDP endpoint changed", async () => {
    const { passes, sync } = setUp();
    await sync(snapshot());
    expect(passes).toEqual([]);
  });

  it("are not searched for in a family whose slices did not change", async () => {
    const { passes, sync } = setUp();
    await sync(snapshot("kube-system/dns"), "ok", "ipv6");
    expect(passes).toEqual([]);
  });

  it("are searched for once after the Sync with the change", async () => {
    const { passes, sync } = setUp();
    const changed = snapshot("kube-system/dns");
    await sync(changed);
    await sync(changed);
    await sync(snapshot());
    expect(passes.map(({ family, protocol }) => [family, protocol])).toEqual([["ipv4", 17]]);
  });

  it("04/38 are searched for after the next successful Sync when the one with the change failed", async () => {
    const { passes, sync } = setUp();
    const changed = snapshot("kube-system/dns");
    await sync(changed, "failed");
    expect(passes).toEqual([]);
    await sync(changed);
    expect(passes).toHaveLength(1);
  });

  it("04/40 are searched for again after the next Sync when the kernel refused", async () => {
    const { passes, sweeps, sync, refuse } = setUp();
    refuse();
    await sync(snapshot("kube-system/dns"));
    expect(sweeps.map(({ outcome }) => outcome)).toEqual([{ kind: "failed", message: "Cannot read: EPERM" }]);
    await sync(snapshot());
    expect(passes).toHaveLength(2);
    expect(sweeps.at(-1)!.outcome).toMatchObject({ kind: "ok", deleted: 1 });
  });

  it("accumulate while a pass runs, and are selected by the current Routes", async () => {
    const { passes, sync, hold, wanted } = setUp();
    const release = hold();
    for (let i = 0; i < 3; i++) await sync(snapshot("kube-system/dns"));
    expect(passes).toHaveLength(1);
    const flow = { destination: "172.30.0.10", destinationPort: 53, replySourcePort: 53, protocol: 17 };
    const isDeleted = (replySource: string) => passes[0]!.select({ ...flow, replySource });
    expect([isDeleted("10.180.0.1"), isDeleted("10.180.0.2")]).toEqual([false, true]);
    wanted("10.180.0.2:53");
    expect([isDeleted("10.180.0.1"), isDeleted("10.180.0.2")]).toEqual([true, false]);
    await release();
    expect(passes).toHaveLength(2);
  });

  it("upstream/1: of a removed Frontend are selected, those of others are not", async () => {
    const { passes, sync, remove } = setUp();
    await sync(snapshot());
    remove();
    await sync(snapshot());
    expect(passes).toHaveLength(1);
    const flow = { protocol: 17, destinationPort: 53, replySource: "10.180.0.1", replySourcePort: 53 };
    const isSelected = (more: object) => passes[0]!.select({ ...flow, destination: "172.30.0.10", ...more });
    expect(isSelected({})).toBe(true);
    expect(isSelected({ destination: "172.30.0.11" })).toBe(false);
    expect(isSelected({ replySource: "172.30.0.10" })).toBe(false);
    const nodePort = { destinationPort: 30_053, destination: "192.168.0.2" };
    expect(isSelected(nodePort)).toBe(true);
    expect(isSelected({ ...nodePort, destination: "8.8.8.8" })).toBe(false);
    await sync(snapshot());
    expect(passes).toHaveLength(1);
  });

  it("upstream/1: of a removed Frontend are searched for again until a pass was complete", async () => {
    const { passes, sync, remove, refuse } = setUp();
    await sync(snapshot());
    remove();
    refuse();
    await sync(snapshot(), "failed");
    expect(passes).toHaveLength(0);
    await sync(snapshot());
    await sync(snapshot());
    expect(passes).toHaveLength(2);
    await sync(snapshot());
    expect(passes).toHaveLength(2);
  });

  it("upstream/1: are not searched for when a Service changed and kept its Frontends", async () => {
    const { passes, sync, wanted } = setUp();
    await sync(snapshot());
    wanted("10.180.0.2:53");
    await sync(snapshot());
    expect(passes).toEqual([]);
  });

  it("a pass that takes too long is aborted", async () => {
    const { sweeps, sync, hold, clock } = setUp();
    const release = hold();
    await sync(snapshot("kube-system/dns"));
    clock.advance(61_000);
    await release();
    expect(sweeps[0]!.outcome).toEqual({
      kind: "failed",
      message: "Cannot delete stale flows: it took too long",
    });
  });
});

function setUp() {
  const clock = manualClock();
  const passes: FlowQuery[] = [];
  const sweeps: FlowSweep[] = [];
  let routes = dnsAt("10.180.0.1:53");
  let answer = (): Promise<Cleaning> => Promise.resolve(oneDeleted);
  const clean = async (query: FlowQuery, signal: AbortSignal): Promise<Cleaning> => {
    passes.push(query);
    const cleaning = await answer();
    signal.throwIfAborted();
    return cleaning;
  };
  const sweeper = new FlowSweeper(
    { clean, clock, swept: (sweep) => sweeps.push(sweep) },
    new AbortController().signal,
  );
  return {
    clock,
    passes,
    sweeps,
    sync: async (snapshot: Snapshot, outcome: "ok" | "failed" = "ok", family: Family = "ipv4") => {
      sweeper.afterSync({ record: record(outcome, family), snapshot, routes: () => routes });
      await new Promise((resolve) => setImmediate(resolve));
    },
    refuse: () => {
      answer = () => {
        answer = () => Promise.resolve(oneDeleted);
        return Promise.reject(new HostError("refused", "Cannot read: EPERM", { errno: "EPERM" }));
      };
    },
    /** The next pass waits until the returned function is called. */
    hold: () => {
      let open = () => {};
      const held = new Promise<void>((resolve) => {
        open = resolve;
      });
      answer = () => {
        answer = () => Promise.resolve(oneDeleted);
        return held.then(() => oneDeleted);
      };
      return async () => {
        open();
        await sweeper.idle();
      };
    },
    wanted: (at: string) => {
      routes = dnsAt(at, routes);
    },
    remove: () => {
      routes = routed([], ipv4Settings, routes);
    },
  };
}

const oneDeleted: Cleaning = { examined: 1, deleted: 1, complete: true };

function dnsAt(at: string, before: Routes | null = null): Routes {
  const dns = { protocol: "udp", port: 53, nodePort: 30_053, endpoints: [endpoint(at)] } as const;
  return routed([servicePort("kube-system/dns", dns)], ipv4Settings, before);
}

function snapshot(...udpEndpointsChanged: readonly string[]): Snapshot {
  const changes = { ...noUdpChanges, ipv4: new Set(udpEndpointsChanged) };
  return { udpEndpointsChanged: changes } as unknown as Snapshot;
}

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
