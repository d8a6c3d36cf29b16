// The nftables mode at work on a host in memory: what old kernels refuse, and loads too big for one transaction.
import { describe, expect, it } from "vitest";
import { manualClock } from "../../../../test/support/manual-clock.ts";
import { endpoint, ipv4Settings, routed, servicePort } from "../../../../test/support/routed.ts";
import { MemoryTableHost } from "../../../host/nftables/memoryhost.ts";
import type { ServicePort } from "../../../model/snapshot.ts";
import { countOperations, diff, type Operation } from "../../../plan/nftables/diff.ts";
import { unfold } from "../../../plan/nftables/plan.ts";
import { goto } from "../../../plan/nftables/verdict.ts";
import type { Routes } from "../../../routing/routes.ts";
import { compile } from "../compile.ts";
import { NftablesDriver } from "./driver.ts";

describe("chains that an old kernel does not delete immediately", () => {
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
    const item = { key: "9.9.9.9 . tcp . 1", slot: null, data: goto("pick/tcp/3"), comment: null };
    await host.apply([{ ...busy, items: [item] }]);
    clock.advance(1000);
    await settle();
    expect(Object.keys(chains())).toContain("pick/tcp/3");
    expect(driver.report().cleanupFailures).toBe(1);
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

  it("later on that ends early for a newer change is continued by the next Sync", async () => {
    const { sync, host, driver } = setUp();
    await sync([api]);
    const routes = routed([...big, api], ipv4Settings, routed([api]));
    const first = await driver.sync(routes, signal, false, () => true);
    expect(first.unfinished).toBe(true);
    expect(diff(host.table, unfold(compile(null, routes)))).not.toEqual([]);
    const second = await driver.sync({ ...routes, changed: new Set() }, signal);
    expect(second.unfinished).not.toBe(true);
    expect(diff(host.table, unfold(compile(null, routes)))).toEqual([]);
  });

  it("security/3: after a change that is cut, it is known which slot holds which endpoint", async () => {
    const { sync, host, driver } = setUp();
    await sync([...big, api]);
    const less = (port: ServicePort, by: number) => ({ ...port, endpoints: port.endpoints.slice(by) });
    await sync([...big.map((port) => less(port, 1)), api]);
    const transactions = host.applied.length;
    const routes = await sync([...big.map((port, i) => less(port, i < 5 ? 2 : 1)), api]);
    expect(host.applied.length).toBe(transactions + 1);
    expect(driver.report().cleanupFailures).toBe(0);
    expect(diff(host.table, unfold(compile(null, routes)))).toEqual([]);
  });
});

describe("a table that another program deleted", () => {
  const others = Array.from({ length: 300 }, (_, i) =>
    servicePort(`shop/other-${i}`, {
      clusterIP: `172.30.${1 + (i >> 8)}.${i & 255}`,
      endpoints: [endpoint(`10.180.1.${i & 255}:80`)],
    }),
  );
  const dns = servicePort("kube-system/dns", {
    clusterIP: "172.30.0.53",
    endpoints: [endpoint("10.1.0.53:80")],
  });
  const metrics = servicePort("shop/web:metrics", {
    clusterIP: "172.30.0.10",
    port: 9090,
    endpoints: [endpoint("10.180.0.1:9090")],
  });
  const inUse = new Set(["172.30.0.10 . tcp . 80", "9.9.9.9 . tcp . 80"]);

  /** Keys of `service-ips` that a Patch adds. */
  const frontends = (patch: readonly Operation[]) =>
    patch
      .filter((each) => each.kind === "add elements")
      .filter(({ set }) => set.name === "service-ips")
      .flatMap(({ items }) => items.map(({ key }) => key));

  async function flushed(ports: readonly ServicePort[]) {
    const made = setUp();
    const routes = await made.sync(ports);
    const loaded = countOperations(made.host.applied.at(-1)!);
    made.host.flush();
    made.host.inUse = inUse;
    const transactions = made.host.applied.length;
    return { ...made, routes, loaded, restored: () => made.host.applied.slice(transactions) };
  }

  it("is restored with the hooks, the ServicePorts in use and urgent ones first, then with all others", async () => {
    const ports = [...others, dns, web(3), metrics];
    const { sync, host, driver, routes, loaded, restored } = await flushed(ports);
    expect(await driver.verify(signal)).toEqual({
      differences: loaded,
      repair: { operations: loaded, bytes: 0 },
    });
    const [first, ...rest] = restored();
    expect(rest).toHaveLength(1);
    // The other port of a Service in use as well: its active cluster IP would reject it.
    expect(frontends(first!).sort()).toEqual([
      "172.30.0.10 . tcp . 80",
      "172.30.0.10 . tcp . 9090",
      "172.30.0.53 . tcp . 80",
    ]);
    expect(first!.filter((each) => each.kind === "add chain").map(({ chain }) => chain.name)).toContain(
      "nat-prerouting",
    );
    expect(diff(host.table, unfold(compile(null, routes)))).toEqual([]);
    expect(await driver.verify(signal)).toEqual({ differences: 0 });
    await sync([...others, dns, web(2), metrics]);
    expect(countOperations(host.applied.at(-1)!)).toBeLessThan(10);
  });

  it("is restored with urgent ServicePorts first where connections cannot be read", async () => {
    const { host, driver, restored } = await flushed([...others, dns, web(3)]);
    host.inUse = new Set();
    await driver.verify(signal);
    expect(frontends(restored()[0]!)).toEqual(["172.30.0.53 . tcp . 80"]);
  });

  it("is restored in one transaction, without reading connections, if it is small", async () => {
    const { host, driver, routes, restored } = await flushed([...others.slice(0, 20), web(3)]);
    let reads = 0;
    host.destinationsInUse = () => {
      reads++;
      return Promise.resolve(inUse);
    };
    await driver.verify(signal);
    expect({ reads, transactions: restored().length }).toEqual({ reads: 0, transactions: 1 });
    expect(diff(host.table, unfold(compile(null, routes)))).toEqual([]);
  });

  it.each([0, 1])(
    "after %i of 2 transactions and a failure is completed by the next Sync",
    async (written) => {
      const { host, driver, routes, restored } = await flushed([...others, dns, web(3)]);
      host.failAfter(written, "Cannot write: EIO");
      await expect(driver.verify(signal)).rejects.toThrow("EIO");
      expect(restored()).toHaveLength(written);
      host.breakDown(null);
      expect(await driver.sync(routes, signal)).toMatchObject({ readBack: true, refused: [] });
      expect(diff(host.table, unfold(compile(null, routes)))).toEqual([]);
      expect(await driver.verify(signal)).toEqual({ differences: 0 });
    },
  );

  it.each([0, 1])(
    "after %i of 2 transactions and a crash is completed by the next start",
    async (written) => {
      const { host, driver, routes } = await flushed([...others, dns, web(3)]);
      host.failAfter(written, "Cannot write: EIO");
      await expect(driver.verify(signal)).rejects.toThrow("EIO");
      host.breakDown(null);
      const next = new NftablesDriver(host);
      await next.sync(routes, signal);
      expect(diff(host.table, unfold(compile(null, routes)))).toEqual([]);
    },
  );
});

describe("a large ServicePort", () => {
  const wide = (addresses: number, endpoints: number) =>
    servicePort("shop/wide", {
      clusterIP: "172.30.255.2",
      externalIPs: Array.from({ length: addresses }, (_, i) => `198.18.${i >> 8}.${i & 255}`),
      endpoints: Array.from({ length: endpoints }, (_, i) =>
        endpoint(`10.${i >> 16}.${(i >> 8) & 255}.${i & 255}:80`),
      ),
    });

  it.each([
    [100, 100],
    [1000, 1000],
    [2000, 2000],
  ])("security/3: %i addresses × %i endpoints cost their sum", async (addresses, endpoints) => {
    const { sync, written, host } = setUp();
    await sync([web(1)]);
    await sync([web(1), wide(addresses, endpoints)]);
    // Besides: the cluster IP with its slot or two, two chains with three rules, one map.
    expect(written()).toBeLessThanOrEqual(addresses + endpoints + 10);
    const routes = await sync([web(1), wide(addresses, endpoints - 1)]);
    // The slot, and the rule that picks among them; the last endpoint takes the place of none.
    expect(written()).toBeLessThanOrEqual(5);
    expect(diff(host.table, unfold(compile(null, routes)))).toEqual([]);
    await sync([web(1)]);
    expect([...host.table!.sets.keys()].filter((name) => name.includes("wide"))).toEqual([]);
  });

  it("security/3: its slots are written step by step before anything leads to them, and newer changes go in between", async () => {
    const { sync, host, driver } = setUp();
    const before = await sync([web(1)]);
    const transactions = host.applied.length;
    const large = routed([web(1), wide(1, 100_000)], ipv4Settings, before);
    let checks = 0;
    const first = await driver.sync(large, signal, false, () => checks++ > 0);
    expect(first).toMatchObject({ unfinished: true, refused: [] });
    expect(host.table!.elements.get("service-ips")!.size).toBe(1);

    const newer = routed([web(2), wide(1, 100_000)], ipv4Settings, large);
    const second = await driver.sync({ ...newer, changed: new Set([web(2).key]) }, signal, false, () => true);
    expect(second).toMatchObject({ unfinished: true });
    expect(host.table!.spreads.get("endpoints")!.get("172.30.0.10 . tcp . 80")!.backends).toHaveLength(2);

    expect(await driver.sync({ ...newer, changed: new Set() }, signal)).not.toHaveProperty("unfinished");
    expect(diff(host.table, unfold(compile(null, newer)))).toEqual([]);
    for (const patch of host.applied.slice(transactions)) expect(countOperations(patch)).toBeLessThan(40_000);
    const elements = host.applied.slice(transactions).reduce((sum, patch) => sum + countOperations(patch), 0);
    expect(elements).toBeLessThan(100_050);
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
    /** How many kernel objects the last transaction touched. */
    written: () => countOperations(host.applied.at(-1)!),
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
