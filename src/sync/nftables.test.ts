// The nftables mode at work on a host in memory: what old kernels refuse, and loads too big for one transaction.
import { describe, expect, it } from "vitest";
import { manualClock } from "../../test/support/manual-clock.ts";
import { endpoint, ipv4Settings, routed, servicePort } from "../../test/support/routed.ts";
import { MemoryTableHost } from "../host/nftables/memoryhost.ts";
import type { ServicePort } from "../model/snapshot.ts";
import { compile } from "../modes/nftables/compile.ts";
import { diff } from "../plan/nftables/diff.ts";
import { unfold } from "../plan/nftables/plan.ts";
import type { Routes } from "../routing/routes.ts";
import { NftablesDriver } from "./nftables.ts";

describe("chains that an old kernel does not let go at once", () => {
  it("11/47 are emptied with their last use and deleted a second later", async () => {
    const { sync, chains, clock, host } = setUp({ beforeLinux62: true });
    await sync([web(3)]);
    await sync([web(2)]);
    expect(chains()).toMatchObject({ "pick/tcp/3": 0, "pick/tcp/2": 1 });
    clock.advance(999);
    await settle();
    expect(Object.keys(chains())).toContain("pick/tcp/3");
    clock.advance(1);
    await settle();
    expect(Object.keys(chains())).not.toContain("pick/tcp/3");
    expect(host.applied.at(-1)).toEqual([{ kind: "delete chain", name: "pick/tcp/3" }]);
  });

  it("11/47 stay when they are used again before that", async () => {
    const { sync, chains, clock } = setUp({ beforeLinux62: true });
    for (const endpoints of [3, 2, 3]) await sync([web(endpoints)]);
    clock.advance(5000);
    await settle();
    expect(chains()).toMatchObject({ "pick/tcp/3": 1 });
  });

  it("11/48 that are still busy then are left alone: the next comparison with the host finds them", async () => {
    const { sync, driver, host, chains, clock } = setUp({ beforeLinux62: true });
    await sync([web(3)]);
    await sync([web(2)]);
    const busy = { kind: "add elements", set: host.table!.sets.get("service-ips")! } as const;
    const item = { key: "9.9.9.9 . tcp . 1", slot: null, data: "goto pick/tcp/3", comment: null };
    await host.apply([{ ...busy, items: [item] }]);
    clock.advance(1000);
    await settle();
    expect(Object.keys(chains())).toContain("pick/tcp/3");
    expect(driver.cleanUpFailures).toBe(1);
    await host.apply([{ ...busy, kind: "delete elements", items: [item] }]);
    await driver.verify(signal);
    expect(Object.keys(chains())).not.toContain("pick/tcp/3");
  });
});

describe("a Sync that fails", () => {
  it("11/49 leaves nothing in doubt: the host is read before the next one, which brings all", async () => {
    const { sync, host, driver } = setUp();
    await sync([web(1)]);
    await host.apply([{ kind: "delete table" }]);
    host.breakDown("Cannot write: EIO");
    await expect(sync([web(2)])).rejects.toThrow("EIO");
    await expect(sync([web(3)])).rejects.toThrow("EIO");
    host.breakDown(null);
    const routes = routed([web(3)]);
    expect(await driver.sync(routes, signal)).toMatchObject({ readBack: true, refused: [] });
    expect(diff(host.table, unfold(compile(null, routes)))).toEqual([]);
  });
});

describe("a big load", () => {
  const big = Array.from({ length: 700 }, (_, i) =>
    servicePort(`shop/s${i}`, {
      clusterIP: `172.30.${i >> 8}.${i & 255}`,
      endpoints: Array.from({ length: 100 }, (__, j) => endpoint(`10.${i >> 8}.${i & 255}.${j + 1}:80`)),
    }),
  );
  const api = servicePort("default/kubernetes:https", {
    clusterIP: "172.30.255.1",
    endpoints: [endpoint("192.168.0.9:6443")],
  });

  it("comes in several transactions, the API server in the first, and is then what it shall be", async () => {
    const { sync, host } = setUp();
    const routes = await sync([...big, api]);
    expect(host.applied.length).toBeGreaterThan(2);
    expect(JSON.stringify(host.applied[0])).toContain("172.30.255.1 . tcp . 80");
    expect(diff(host.table, unfold(compile(null, routes)))).toEqual([]);
  });

  it("is one transaction when the table is there already and unknown", async () => {
    const { sync, host } = setUp();
    await sync([...big, api]);
    const before = host.applied.length;
    const second = new NftablesDriver(host);
    await second.sync(routed([api], ipv4Settings), signal);
    expect(host.applied.length).toBe(before + 1);
    expect(host.table!.spreads.get("endpoints")!.size).toBe(1);
  });

  it("later on is cut as well, and what follows is exact", async () => {
    const { sync, host } = setUp();
    await sync([api]);
    const before = host.applied.length;
    await sync([...big, api]);
    expect(host.applied.length).toBeGreaterThan(before + 2);
    const moved = { ...big[5]!, endpoints: big[5]!.endpoints.slice(1) };
    const routes = await sync([...big.with(5, moved), api]);
    expect(diff(host.table, unfold(compile(null, routes)))).toEqual([]);
  });
});

const { signal } = new AbortController();

function setUp(options: { beforeLinux62?: boolean } = {}) {
  const host = new MemoryTableHost("ip", options);
  const clock = manualClock();
  const driver = new NftablesDriver(host, (ms, run) => clock.after(ms, run));
  let routes: Routes | null = null;
  return {
    host,
    clock,
    driver,
    sync: async (ports: readonly ServicePort[]) => {
      routes = routed(ports, ipv4Settings, routes);
      await driver.sync(routes, signal);
      return routes;
    },
    /** Name → number of rules. */
    chains: () =>
      Object.fromEntries([...host.table!.chains.values()].map(({ name, rules }) => [name, rules.length])),
  };
}

function web(endpoints: number): ServicePort {
  return servicePort("shop/web", {
    endpoints: Array.from({ length: endpoints }, (_, i) => endpoint(`10.180.0.${i + 1}:80`)),
  });
}

function settle(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
