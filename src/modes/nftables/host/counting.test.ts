// Counts of the nftables mode on a host in memory: sums that never decrease, and losses that are reported.
import { describe, expect, it } from "vitest";
import { manualClock } from "../../../../test/support/manual-clock.ts";
import { endpoint, ipv4Settings, routed, servicePort } from "../../../../test/support/routed.ts";
import type { FamilySettings } from "../../../config/resolve/settings.ts";
import { MemoryTableHost } from "../../../host/nftables/memoryhost.ts";
import { momentOf } from "../../../model/clock.ts";
import type { ServicePort } from "../../../model/snapshot.ts";
import { elementId } from "../../../plan/nftables/key.ts";
import type { Routes } from "../../../routing/routes.ts";
import { NftablesDriver } from "./driver.ts";

const signal = new AbortController().signal;
const key = "shop/web/tcp/";
const clusterIP = "172.30.0.10 . tcp . 80";
const external = "198.51.100.1 . tcp . 80";

describe("services", () => {
  it("sums the connections to all frontends of a ServicePort", async () => {
    const { sync, hit, counts } = setUp("services");
    await sync([web(2, { nodePort: 30080, externalIPs: ["198.51.100.1"] })]);
    hit("traffic-ips", clusterIP, 3);
    hit("traffic-ips", external, 4);
    hit("traffic-nodeports", "tcp . 30080", 5);
    expect(await counts()).toMatchObject({ connections: 12, refused: 0, outOfRange: 0, endpoints: null });
    hit("traffic-ips", clusterIP, 1);
    expect(await counts()).toMatchObject({ connections: 13 });
  });

  it("does not count a refused packet as a connection", async () => {
    const { sync, hit, counts } = setUp("services");
    await sync([web(0)]);
    hit("traffic-ips", clusterIP, 3);
    hit("refused-ips", clusterIP, 3);
    expect(await counts()).toMatchObject({ connections: 0, refused: 3 });
    await sync([web(1)]);
    hit("traffic-ips", clusterIP, 2);
    expect(await counts()).toMatchObject({ connections: 2, refused: 3 });
  });

  it("counts packets outside the source ranges", async () => {
    const { sync, hit, counts } = setUp("services");
    await sync([web(1, { loadBalancerIPs: ["203.0.113.9"], sourceRanges: ["192.0.2.0/24"] })]);
    hit("out-of-range-ips", "203.0.113.9 . tcp . 80", 7);
    expect(await counts()).toMatchObject({ connections: 0, outOfRange: 7 });
  });

  it("keeps what was counted at a frontend that is gone, up to its deletion", async () => {
    const { sync, hit, counts } = setUp("services");
    await sync([web(1, { externalIPs: ["198.51.100.1"] })]);
    hit("traffic-ips", external, 4);
    await counts();
    hit("traffic-ips", external, 1);
    await sync([web(1)]);
    expect(await counts()).toMatchObject({ connections: 5 });
    await sync([web(1, { externalIPs: ["198.51.100.1"] })]);
    hit("traffic-ips", external, 2);
    expect(await counts()).toMatchObject({ connections: 7 });
  });

  it("counts for a Service that takes over an address only what comes after that", async () => {
    const { sync, hit, driver } = setUp("services");
    await sync([web(1)]);
    hit("traffic-ips", clusterIP, 4);
    await driver.readCounts!(signal);
    await sync([{ ...web(1), ...named("shop/other") }]);
    hit("traffic-ips", clusterIP, 1);
    const { ports } = await driver.readCounts!(signal);
    expect([...ports].map(([name, { connections }]) => [name, connections])).toEqual([
      ["shop/other/tcp/", 1],
    ]);
  });

  it("continues with the values of the kernel after a restart", async () => {
    const { sync, hit, host, counts, open } = setUp("services");
    await sync([web(2)]);
    hit("traffic-ips", clusterIP, 3);
    expect(await counts()).toMatchObject({ connections: 3 });
    hit("traffic-ips", clusterIP, 2);
    const next = open(host);
    await next.sync(routed([web(3)], { ...ipv4Settings, traffic: "services" }), signal);
    expect((await next.readCounts!(signal)).ports.get(key)).toMatchObject({ connections: 5 });
  });

  it("does not count when it is off", () => {
    expect(new NftablesDriver(new MemoryTableHost("ip")).readCounts).toBeUndefined();
  });
});

describe("a loss", () => {
  it("by another program is reported from the last read to the repair, and the sums continue", async () => {
    const { sync, hit, host, driver, counts, clock } = setUp("services");
    await sync([web(2)]);
    hit("traffic-ips", clusterIP, 10);
    await counts();
    const from = clock.wall();
    clock.advance(4_000);
    hit("traffic-ips", clusterIP, 6);
    host.flush();
    await driver.verify(signal);
    const to = clock.wall();
    hit("traffic-ips", clusterIP, 2);
    clock.advance(6_000);
    expect(await counts()).toMatchObject({ connections: 12 });
    expect((await driver.readCounts!(signal)).gaps).toEqual([{ from, to }]);
  });

  it("is also found when counters were set back, or an element is missing", async () => {
    const { sync, host, driver, hit, counts, clock } = setUp("services");
    await sync([web(1)]);
    hit("traffic-ips", clusterIP, 10);
    await counts();
    const from = clock.wall();
    clock.advance(1_000);
    host.counts.set(elementId("traffic-ips", clusterIP), 3);
    expect(await counts()).toMatchObject({ connections: 13 });
    expect((await driver.readCounts!(signal)).gaps).toEqual([{ from, to: clock.wall() }]);
    clock.advance(5_000);
    host.flush();
    clock.advance(5_000);
    expect(await counts()).toMatchObject({ connections: 13 });
    expect((await driver.readCounts!(signal)).gaps).toEqual([{ from, to: clock.wall() }]);
  });

  it.each([-3_600_000, 3_600_000])(
    "is as long as it was when the clock is set by %d ms meanwhile",
    async (step) => {
      const { sync, host, driver, hit, counts, clock } = setUp("services");
      await sync([web(1)]);
      hit("traffic-ips", clusterIP, 10);
      await counts();
      clock.advance(4_000);
      clock.jump(step);
      host.flush();
      await driver.verify(signal);
      const to = clock.wall();
      expect((await driver.readCounts!(signal)).gaps).toEqual([{ from: to - 4_000, to }]);
    },
  );

  it("is none when elements are only written by the driver itself", async () => {
    const { sync, hit, counts, driver } = setUp("endpoints");
    for (const endpoints of [1, 3, 2, 0, 2]) {
      await sync([web(endpoints, endpoints === 3 ? { externalIPs: ["198.51.100.1"] } : {})]);
      hit("traffic-ips", clusterIP, 1);
      await counts();
    }
    expect((await driver.readCounts!(signal)).gaps).toEqual([]);
  });
});

describe("endpoints", () => {
  const pods = (at: readonly number[]) => at.map((n) => endpoint(`10.180.1.${n}:80`));

  it("keeps the count of an endpoint that moves to another slot, and drops one that is gone", async () => {
    const { sync, hitEndpoint, counts } = setUp("endpoints");
    await sync([web(0, { endpoints: pods([1, 2, 3]) })]);
    for (const n of [1, 2, 3]) hitEndpoint(`10.180.1.${n}`, n);
    expect((await counts())!.endpoints).toEqual(
      new Map([
        ["10.180.1.1:80", 1],
        ["10.180.1.2:80", 2],
        ["10.180.1.3:80", 3],
      ]),
    );
    await sync([web(0, { endpoints: pods([3, 4]) })]);
    hitEndpoint("10.180.1.3", 10);
    expect((await counts())!.endpoints).toEqual(
      new Map([
        ["10.180.1.3:80", 13],
        ["10.180.1.4:80", 0],
      ]),
    );
  });

  it("counts those of a Service with session affinity", async () => {
    const { sync, host, counts } = setUp("endpoints");
    await sync([web(2, { affinity: { seconds: 60 } })]);
    for (const [i, name] of [...host.table!.counters].entries()) host.counts.set(name, i + 1);
    expect([...(await counts())!.endpoints!.values()]).toEqual([1, 2]);
  });
});

function named(service: string): Pick<ServicePort, "key" | "service" | "namespace" | "name"> {
  const { key: made, namespace, name } = servicePort(service);
  return { key: made, service, namespace, name };
}

function web(endpoints: number, more: Partial<ServicePort> = {}): ServicePort {
  const pods = Array.from({ length: endpoints }, (_, i) => endpoint(`10.180.1.${i + 1}:80`));
  return servicePort("shop/web", { endpoints: pods, ...more });
}

function setUp(traffic: FamilySettings["traffic"]) {
  const settings: FamilySettings = { ...ipv4Settings, traffic };
  const clock = manualClock();
  const host = new MemoryTableHost("ip");
  const open = (on: MemoryTableHost) =>
    new NftablesDriver(
      on,
      (ms, run) => clock.after(ms, run),
      () => momentOf(clock),
    );
  const driver = open(host);
  let routes: Routes | null = null;
  return {
    host,
    driver,
    clock,
    open,
    sync: async (ports: readonly ServicePort[]) => {
      routes = routed(ports, settings, routes);
      await driver.sync(routes, signal);
    },
    /** As packets would. */
    hit: (set: string, at: string, packets: number) => {
      const id = elementId(set, at);
      host.counts.set(id, (host.counts.get(id) ?? 0) + packets);
    },
    hitEndpoint: (address: string, packets: number) => {
      const { backends } = host.table!.spreads.get("counted-endpoints")!.get(clusterIP)!;
      const slot = backends.findIndex((backend) => backend?.address === address);
      const id = elementId("counted-endpoints", `${clusterIP} . ${slot}`);
      host.counts.set(id, (host.counts.get(id) ?? 0) + packets);
    },
    counts: async () => (await driver.readCounts!(signal)).ports.get(key),
  };
}
