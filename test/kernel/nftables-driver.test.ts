// The nftables mode at work in a real kernel: costs counted, drift noticed and repaired, bad objects set aside.
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { NftablesHost } from "../../src/host/nftables/host.ts";
import { keyed } from "../../src/model/keyed.ts";
import { compareEndpoints, type FamilySnapshot, type ServicePort } from "../../src/model/snapshot.ts";
import type { Driver } from "../../src/modes/driver.ts";
import { compileTable } from "../../src/modes/nftables/compile.ts";
import { openNftables } from "../../src/modes/nftables/host/driver.ts";
import { type Routes, route } from "../../src/routing/routes.ts";
import { numberedEndpoint, numberedService, oneAddressSettings as settings } from "../support/numbered.ts";
import { ipv6Settings } from "../support/routed.ts";
import { createNamespace, isRoot, type Namespace } from "./netns.ts";

describe.skipIf(!isRoot)("nftables mode at work", () => {
  let here: Namespace;
  let driver: Driver;
  let routes: Routes | null;
  const { signal } = new AbortController();

  beforeEach(async () => {
    here = createNamespace();
    driver = await openNftables({ family: "ip", netns: here.path });
    routes = null;
  });

  afterEach(async () => {
    await driver.close();
    here.remove();
  });

  const sync = (ports: readonly ServicePort[], changed: readonly string[] = []) => {
    routes = route(routes, snapshot(ports, changed), settings);
    return driver.sync(routes, signal);
  };

  it("11/60 replaces one endpoint among 10,000 × 10 with at most 4 element operations and less than 2 kB", async () => {
    const ports = Array.from({ length: 10_000 }, (_, i) => numberedService(i, 10));
    await sync(ports);
    const moved = {
      ...ports[7]!,
      endpoints: [...ports[7]!.endpoints.slice(1), numberedEndpoint(7, 200)].sort(compareEndpoints),
    };
    const { operations, bytes } = await sync(ports.with(7, moved), [moved.key]);
    expect(operations).toBeGreaterThan(0);
    expect(operations).toBeLessThanOrEqual(4);
    expect(bytes).toBeLessThan(2000);

    const scaled = {
      ...ports[8]!,
      endpoints: [...ports[8]!.endpoints, numberedEndpoint(8, 201)].sort(compareEndpoints),
    };
    const grown = await sync(ports.with(7, moved).with(8, scaled), [scaled.key]);
    // A picker for 11 endpoints is new here: its chain and rule come with it.
    expect(grown.operations).toBeLessThanOrEqual(8);
  });

  it("11/44 a restart with nothing changed writes nothing, one with changes only those", async () => {
    const ports = Array.from({ length: 50 }, (_, i) => numberedService(i, 3));
    await sync(ports);
    const second = await openNftables({ family: "ip", netns: here.path });
    const again = await second.sync(route(null, snapshot(ports), settings), signal);
    expect(again).toMatchObject({ readBack: true, operations: 0, bytes: 0 });
    await second.close();
    const third = await openNftables({ family: "ip", netns: here.path });
    const changed = await third.sync(route(null, snapshot(ports.slice(1)), settings), signal);
    // A cluster IP, a verdict, a hairpin and three slots.
    expect(changed.operations).toBe(6);
    await third.close();
  });

  it("11/44 a restart with nothing changed decodes no element, one with a change those of its set that differ", async () => {
    const ports = Array.from({ length: 50 }, (_, i) => numberedService(i, 3));
    await sync(ports);
    const want = compileTable(route(null, snapshot(ports), settings));
    const compared = [...want.elements].filter(([name]) => !want.sets.get(name)!.interval);
    expect(compared.length).toBeGreaterThanOrEqual(3);
    const host = await NftablesHost.open({ family: "ip", netns: here.path });
    try {
      const unchanged = (await host.find(() => want))!.table;
      for (const [map, spreads] of want.spreads) expect(unchanged.spreads.get(map)).toBe(spreads);
      for (const [name, elements] of compared) expect(unchanged.elements.get(name)).toBe(elements);

      here.run("nft", "add", "element", "ip", "kube-proxy", "cluster-ips", "{ 172.31.0.1 }");
      const { elements } = (await host.find(() => want))!.table;
      const different = compared.filter(([name, wanted]) => elements.get(name) !== wanted);
      expect(different.map(([name]) => name)).toEqual(["cluster-ips"]);
      const wanted = new Set(want.elements.get("cluster-ips")!.values());
      const decoded = [...elements.get("cluster-ips")!.values()].filter((element) => !wanted.has(element));
      expect(decoded).toEqual([{ key: "172.31.0.1", data: null, comment: null }]);
    } finally {
      await host.close();
    }
  });

  it("11/44 a ServiceCIDR of one address is no difference after a restart", async () => {
    const one = { ...snapshot([]), serviceCIDRs: ["172.30.0.1/32", "172.30.4.0/24"] };
    await driver.sync(route(null, one, settings), signal);
    const second = await openNftables({ family: "ip", netns: here.path });
    expect(await second.sync(route(null, one, settings), signal)).toMatchObject({
      readBack: true,
      operations: 0,
    });
    expect(await second.verify(signal)).toMatchObject({ differences: 0 });
    await second.close();
  });

  it("11/50 notices a foreign flush through events, and repairs it", async () => {
    await sync([numberedService(1, 2)]);
    const stop = new AbortController();
    const seen: string[] = [];
    await driver.watch((what) => seen.push(what), stop.signal);
    here.run("nft", "flush", "ruleset");
    await expect.poll(() => seen[0]).toMatch(/nft.*changed our table/);
    stop.abort();
    const { differences, repair } = await driver.verify(signal);
    expect(differences).toBeGreaterThan(0);
    expect(repair).toMatchObject({ operations: differences });
    expect(repair!.bytes).toBeGreaterThan(0);
    expect(await driver.verify(signal)).toEqual({ differences: 0 });
    expect(here.run("nft", "list", "table", "ip", "kube-proxy")).toContain(
      "172.30.0.1 . tcp . 80 : goto pick/tcp/2",
    );
  });

  it("watches from the first Sync on, and distinguishes our changes from others", async () => {
    const stop = new AbortController();
    const seen: string[] = [];
    await driver.watch((what) => seen.push(what), stop.signal);
    here.run("nft", "add", "table", "ip", "kube-proxy");
    await sync([numberedService(1, 2)]);
    await sync([numberedService(1, 3)], ["shop/s1/tcp/"]);
    // Until the check after the load is done, a change of any table counts.
    await new Promise((resolve) => setTimeout(resolve, 2000));
    here.run("nft", "add", "table", "ip", "other-program");
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(seen).toEqual([]);
    here.run("nft", "add", "chain", "ip", "kube-proxy", "foreign");
    await expect.poll(() => seen).toEqual([expect.stringContaining("newChain foreign")]);
    stop.abort();
  });

  it("detects whether other processes changed anything while both families were loaded", async () => {
    const hosts = await Promise.all(
      (["ip", "ip6"] as const).map((family) => NftablesHost.open({ family, netns: here.path })),
    );
    const [four, six] = hosts as [NftablesHost, NftablesHost];
    const mark = await four.mark();
    await Promise.all(
      hosts.map((host) =>
        host.apply([{ kind: "add table" }]).then(() => host.apply([{ kind: "delete table" }])),
      ),
    );
    expect(await six.changedByOthersSince(mark)).toBe(false);
    here.run("nft", "add", "table", "ip", "other-program");
    expect(await six.changedByOthersSince(mark)).toBe(true);
    await Promise.all(hosts.map((host) => host.close()));
  });

  it("finds and repairs edited elements, rules and foreign objects", async () => {
    await sync([numberedService(1, 2)]);
    here.feed(
      [
        "delete element ip kube-proxy service-ips { 172.30.0.1 . tcp . 80 }",
        "add rule ip kube-proxy services drop",
        "add element ip kube-proxy cluster-ips { 9.9.9.9 }",
        "add chain ip kube-proxy foreign",
      ].join("\n"),
      "nft",
      "-f",
      "-",
    );
    expect((await driver.verify(signal)).differences).toBeGreaterThan(3);
    const listing = here.run("nft", "list", "ruleset");
    expect(listing).not.toMatch(/9\.9\.9\.9|foreign/);
    expect(listing).toContain("172.30.0.1 . tcp . 80 : goto pick/tcp/2");
    expect(await driver.verify(signal)).toEqual({ differences: 0 });
  });

  it("deletes a foreign element with an IPv4-mapped address from a set of IPv6 addresses", async () => {
    const six = await openNftables({ family: "ip6", netns: here.path });
    try {
      await six.sync(route(null, snapshot([]), ipv6Settings), signal);
      here.run("nft", "add element ip6 kube-proxy cluster-ips { ::ffff:10.0.0.1 }");
      expect((await six.verify(signal)).differences).toBe(1);
      expect(here.run("nft", "list set ip6 kube-proxy cluster-ips")).not.toContain("10.0.0.1");
      expect((await six.verify(signal)).differences).toBe(0);
    } finally {
      await six.close();
    }
  });

  it("deletes a foreign element that catches everything, from a set, a map and a map of endpoints", async () => {
    await sync([numberedService(1, 2)]);
    const before = here.run("nft", "list", "table", "ip", "kube-proxy");
    here.feed(
      [
        "add element ip kube-proxy cluster-ips { * }",
        "add element ip kube-proxy service-ips { * : drop }",
        "add element ip kube-proxy endpoints { * : 10.0.0.1 . 80 }",
      ].join("\n"),
      "nft",
      "-f",
      "-",
    );
    expect((await driver.verify(signal)).differences).toBe(3);
    expect(here.run("nft", "list", "table", "ip", "kube-proxy")).toBe(before);
    expect(await driver.verify(signal)).toEqual({ differences: 0 });
  });

  it("11/50 heals by itself when the host is not what it was", async () => {
    await sync([numberedService(1, 2), numberedService(2, 2)]);
    here.run("nft", "delete", "table", "ip", "kube-proxy");
    const applied = await sync([numberedService(1, 2)], ["shop/s2/tcp/"]);
    expect(applied.readBack).toBe(true);
    expect(await driver.verify(signal)).toEqual({ differences: 0 });
  });

  it("sets a refused object aside, names it, keeps the rest, and tries again", async () => {
    const bad = {
      ...numberedService(3, 2),
      affinity: { seconds: 60 },
      name: "x".repeat(300),
      service: `shop/${"x".repeat(300)}`,
    };
    const oversized = {
      ...bad,
      key: "shop/bad/tcp/",
      clusterIP: "172.30.0.3",
      affinity: { seconds: 2 ** 53 },
    };
    const { refused } = await sync([numberedService(1, 2), oversized]);
    expect(refused.map(({ message }) => message).join()).toContain("shop/bad/tcp/");
    expect(here.run("nft", "list", "ruleset")).toContain("172.30.0.1 . tcp . 80 : goto pick/tcp/2");
    const good = { ...oversized, affinity: { seconds: 60 } };
    const after = await sync([numberedService(1, 2), good], [good.key]);
    expect(after.refused).toEqual([]);
    expect(await driver.verify(signal)).toEqual({ differences: 0 });
  });
});

function snapshot(ports: readonly ServicePort[], changed: readonly string[] = []): FamilySnapshot {
  return {
    ports: keyed(ports.map((port) => [port.key, port] as const)),
    changed: new Set(changed),
    serviceCIDRs: ["172.30.0.0/16"],
  };
}
