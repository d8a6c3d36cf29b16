// Counts of the ipvs mode on a host in memory: sums that never decrease, and losses that are reported.
import { describe, expect, it } from "vitest";
import { manualClock } from "../../../../test/support/manual-clock.ts";
import { MemoryTables } from "../../../../test/support/memory-tables.ts";
import { endpoint, ipv4Settings, routed, servicePort } from "../../../../test/support/routed.ts";
import type { TrafficSetting } from "../../../config/resolve/settings.ts";
import { MemoryIpvsHost } from "../../../host/ipvs/memory.ts";
import type { ServicePort } from "../../../model/snapshot.ts";
import type { ServerId } from "../../../plan/ipvs/types.ts";
import type { Routes } from "../../../routing/routes.ts";
import { TablesDriver } from "../../iptables/host/tables.ts";
import { IpvsDriver } from "./driver.ts";

const signal = new AbortController().signal;
const key = "shop/web/tcp/";
const clusterIP: ServerId = { address: "172.30.0.10", port: 80, protocol: "tcp" };
const external: ServerId = { ...clusterIP, address: "198.51.100.1" };
const [one, two] = ["10.180.1.1:80", "10.180.1.2:80"] as const;

describe("connections in ipvs mode", () => {
  it("are summed over all virtual servers of a ServicePort; refused packets are not counted", async () => {
    const { sync, host, counts } = setUp("services");
    await sync([web([one, two], { externalIPs: [external.address] })]);
    host.connect(clusterIP, one, 3);
    host.connect(external, two, 4);
    expect(await counts()).toEqual({ connections: 7, refused: null, outOfRange: null, endpoints: null });
    host.connect(clusterIP, two, 1);
    expect(await counts()).toMatchObject({ connections: 8 });
  });

  it("begin with what the kernel has counted before this process", async () => {
    const { sync, host, open, counts } = setUp("services");
    await sync([web([one])]);
    host.connect(clusterIP, one, 5);
    expect(await counts()).toMatchObject({ connections: 5 });
    host.connect(clusterIP, one, 2);
    open();
    await sync([web([one, two])]);
    expect(await counts()).toMatchObject({ connections: 7 });
  });

  it("at an address that the Service gives up count up to its deletion", async () => {
    const { sync, host, counts } = setUp("services");
    await sync([web([one], { externalIPs: [external.address] })]);
    host.connect(external, one, 4);
    await counts();
    host.connect(external, one, 2);
    await sync([web([one])]);
    expect(await counts()).toMatchObject({ connections: 6 });
    await sync([web([one], { externalIPs: [external.address] })]);
    host.connect(external, one, 1);
    expect(await counts()).toMatchObject({ connections: 7 });
  });

  it("of a deleted Service are forgotten, and those of one that takes its address begin at that time", async () => {
    const { sync, host, driver } = setUp("services");
    await sync([web([one])]);
    host.connect(clusterIP, one, 4);
    await driver().readCounts!(signal);
    await sync([servicePort("shop/other", { clusterIP: clusterIP.address, endpoints: [endpoint(one)] })]);
    host.connect(clusterIP, one, 1);
    const { ports } = await driver().readCounts!(signal);
    expect([...ports].map(([name, { connections }]) => [name, connections])).toEqual([
      ["shop/other/tcp/", 1],
    ]);
  });

  it("of endpoints add up over the virtual servers, without those that drain or are gone", async () => {
    const { sync, host, counts } = setUp("endpoints");
    await sync([web([one, two], { externalIPs: [external.address] })]);
    host.connect(clusterIP, one, 3);
    host.connect(external, one, 2);
    host.connect(clusterIP, two, 1);
    host.count(clusterIP, two, 1);
    expect((await counts())!.endpoints).toEqual(
      new Map([
        [one, 5],
        [two, 1],
      ]),
    );
    await sync([web([one], { externalIPs: [external.address] })]);
    expect(await counts()).toMatchObject({ connections: 6, endpoints: new Map([[one, 5]]) });
  });

  it("do not exist when it is off", () => {
    expect(setUp("off").driver().readCounts).toBeUndefined();
  });
});

describe("a loss in ipvs mode", () => {
  it("by ipvsadm -C is reported from the last read to the repair, and the sums continue", async () => {
    const { sync, host, driver, counts, clock } = setUp("services");
    await sync([web([one])]);
    host.connect(clusterIP, one, 10);
    await counts();
    const from = clock.wall();
    clock.advance(4_000);
    host.connect(clusterIP, one, 6);
    host.clear();
    await driver().verify(signal);
    const to = clock.wall();
    host.connect(clusterIP, one, 12);
    clock.advance(6_000);
    expect(await counts()).toMatchObject({ connections: 22 });
    expect((await driver().readCounts!(signal)).gaps).toEqual([{ from, to }]);
  });

  it("by ipvsadm -Z is found when a count is smaller than before", async () => {
    const { sync, host, driver, counts, clock } = setUp("services");
    await sync([web([one])]);
    host.connect(clusterIP, one, 10);
    await counts();
    const from = clock.wall();
    clock.advance(3_000);
    host.zero();
    host.connect(clusterIP, one, 2);
    expect(await counts()).toMatchObject({ connections: 12 });
    expect((await driver().readCounts!(signal)).gaps).toEqual([{ from, to: clock.wall() }]);
  });

  it("is none when servers and endpoints are only changed by the driver itself", async () => {
    const { sync, host, driver, counts } = setUp("endpoints");
    for (const [i, endpoints] of [[one], [one, two], [], [two]].entries()) {
      await sync([web(endpoints, i % 2 === 0 ? { externalIPs: [external.address] } : {})]);
      if (endpoints.length > 0) host.connect(clusterIP, endpoints[0]!, 1);
      await counts();
    }
    expect((await driver().readCounts!(signal)).gaps).toEqual([]);
  });
});

function web(endpoints: readonly string[], more: Partial<ServicePort> = {}): ServicePort {
  return servicePort("shop/web", {
    clusterIP: clusterIP.address,
    endpoints: endpoints.map((at) => endpoint(at)),
    ...more,
  });
}

function setUp(traffic: TrafficSetting) {
  const clock = manualClock();
  const host = new MemoryIpvsHost("ipv4");
  const tables = new MemoryTables([]);
  const made = () =>
    new IpvsDriver(
      host,
      (compile) => new TablesDriver(tables, { place: {}, compile }),
      clock,
      { scheduler: "", excludeCIDRs: [] },
      traffic,
    );
  let driver = made();
  let routes: Routes | null = null;
  return {
    host,
    clock,
    driver: () => driver,
    /** As a restart of the daemon does. */
    open: () => {
      routes = null;
      driver = made();
    },
    sync: async (ports: readonly ServicePort[]) => {
      routes = routed(ports, { ...ipv4Settings, traffic }, routes);
      await driver.sync(routes, signal);
    },
    counts: async () => (await driver.readCounts!(signal)).ports.get(key),
  };
}
