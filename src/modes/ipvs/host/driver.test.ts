// The driver of ipvs mode on hosts in memory: what it sends, in which order, and what it does after trouble.
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { type ManualClock, manualClock } from "../../../../test/support/manual-clock.ts";
import { MemoryTables } from "../../../../test/support/memory-tables.ts";
import { endpoint, ipv4Settings, routed, servicePort } from "../../../../test/support/routed.ts";
import { HostError } from "../../../host/error.ts";
import { RestoreFailed } from "../../../host/iptables/refusal.ts";
import { MemoryIpvsHost } from "../../../host/ipvs/memory.ts";
import type { ServicePort } from "../../../model/snapshot.ts";
import { printOperation } from "../../../plan/ipvs/print.ts";
import type { Routes } from "../../../routing/routes.ts";
import type { Applied } from "../../driver.ts";
import { TablesDriver } from "../../iptables/host/tables.ts";
import { IpvsDriver } from "./driver.ts";

class LoggedHost extends MemoryIpvsHost {
  readonly #log: string[];

  constructor(log: string[]) {
    super("ipv4");
    this.#log = log;
  }

  override apply(operations: Parameters<MemoryIpvsHost["apply"]>[0]): ReturnType<MemoryIpvsHost["apply"]> {
    for (const operation of operations) this.#log.push(printOperation(operation));
    return super.apply(operations);
  }
}

describe("ipvs mode at work", () => {
  let log: string[];
  let host: LoggedHost;
  let tables: MemoryTables;
  let clock: ManualClock;
  let driver: IpvsDriver;
  let routes: Routes | null;
  const life = new AbortController();

  const open = () => {
    routes = null;
    driver = new IpvsDriver(host, (compile) => new TablesDriver(tables, { place: {}, compile }), clock, {
      scheduler: "",
      excludeCIDRs: ["10.99.0.0/16"],
    });
  };

  beforeEach(() => {
    log = [];
    host = new LoggedHost(log);
    tables = new MemoryTables(log);
    clock = manualClock();
    open();
  });

  afterEach(() => driver.close());

  const sync = (ports: readonly ServicePort[], retry = false): Promise<Applied> => {
    routes = routed(ports, ipv4Settings, routes);
    return driver.sync(routes, life.signal, retry);
  };
  /** What a Sync sends. */
  const sent = async (ports: readonly ServicePort[]): Promise<string[]> => {
    log.length = 0;
    await sync(ports);
    return [...log];
  };

  const one = endpoint("10.180.1.1:8080");
  const two = endpoint("10.180.1.2:8080");
  const web = (...endpoints: ServicePort["endpoints"][number][]) => servicePort("shop/web", { endpoints });
  const server = { address: "172.30.0.10", port: 80, protocol: "tcp" } as const;

  it("20/8 touches nothing before the first Sync", async () => {
    await driver.watch(() => {}, life.signal);
    clock.advance(60_000);
    await driver.verify(life.signal);
    expect([log, host.applied, tables.restores]).toEqual([[], [], 0]);
  });

  it("20/24 rules and entries of a Service go before its address, and that before its server", async () => {
    const guarded = servicePort("shop/lb", {
      clusterIP: "172.30.0.20",
      loadBalancerIPs: ["198.51.100.7"],
      sourceRanges: ["203.0.113.0/24"],
      endpoints: [one],
    });
    await sync([web(one), guarded]);
    const gone = await sent([web(one)]);
    const at = (text: string) => gone.findIndex((line) => line.startsWith(text));
    expect(at("restore")).toBe(0);
    expect(at("delete entry")).toBeGreaterThan(at("restore"));
    expect(at("delete address")).toBeGreaterThan(
      gone.findLastIndex((line) => line.startsWith("delete entry")),
    );
    expect(at("delete server")).toBeGreaterThan(
      gone.findLastIndex((line) => line.startsWith("delete address")),
    );
  });

  it("20/33 a failed restore leaves addresses and servers that should go, and the next Sync takes them", async () => {
    const guarded = servicePort("shop/lb", {
      clusterIP: "172.30.0.20",
      loadBalancerIPs: ["198.51.100.7"],
      sourceRanges: ["203.0.113.0/24"],
    });
    await sync([web(one), guarded]);
    tables.fail(new RestoreFailed("refused", "Cannot restore tables: exited with 2", "no", [], []));
    await expect(sync([web(one)])).rejects.toThrow("exited with 2");
    expect([...(await host.read()).addresses]).toContain("198.51.100.7");
    expect((await host.read()).servers.has("172.30.0.20:80/TCP")).toBe(true);
    tables.fail(null);
    expect((await sync([web(one)], true)).readBack).toBe(true);
    expect([...(await host.read()).addresses]).toEqual(["172.30.0.10"]);
    expect([...(await host.read()).servers.keys()]).toEqual(["172.30.0.10:80/TCP"]);
  });

  it("another program's removal of an address, or of the whole link, is noticed; our own is not", async () => {
    const reported: string[] = [];
    await driver.watch((what) => reported.push(what), life.signal);
    const dns = servicePort("shop/dns", { clusterIP: "172.30.0.20" });
    await sync([web(one), dns]);
    await sync([web(one)]);
    expect(reported).toEqual([]);
    await host.apply([{ kind: "delete address", address: "172.30.0.99" }, { kind: "delete link" }]);
    expect(reported).toEqual(["address 172.30.0.10 was removed from kube-ipvs0"]);
    expect((await driver.verify(life.signal)).differences).toBe(2);
    expect([...(await host.read()).addresses]).toEqual(["172.30.0.10"]);
  });

  it("20/11 an address that another link gets leaves ours, and is served there; when it goes it comes back", async () => {
    const lb = servicePort("shop/lb", {
      loadBalancerIPs: ["198.51.100.7"],
      externalIPs: ["192.168.99.5"],
      endpoints: [one],
    });
    const syncWith = async (...elsewhere: string[]) => {
      const localAddresses = [...ipv4Settings.localAddresses, ...elsewhere];
      routes = routed([lb], { ...ipv4Settings, localAddresses }, routes);
      log.length = 0;
      await driver.sync(routes, life.signal);
      return [...log];
    };
    await syncWith();
    expect(await syncWith("198.51.100.7", "192.168.99.5")).toEqual([
      "delete entry KUBE-IPVS-IPS 192.168.99.5",
      "delete entry KUBE-IPVS-IPS 198.51.100.7",
      "delete address 198.51.100.7",
      "delete address 192.168.99.5",
    ]);
    expect([...(await host.read()).servers.keys()]).toContain("198.51.100.7:80/TCP");
    expect(await syncWith("192.168.99.5")).toEqual([
      "add entry KUBE-IPVS-IPS 198.51.100.7",
      "add address 198.51.100.7",
    ]);
  });

  it("20/42 a restart over the same state sends nothing", async () => {
    await sync([web(one, two)]);
    open();
    expect(await sent([web(one, two)])).toEqual([]);
  });

  it("20/20 an endpoint with connections is removed a minute after its last one ended, one without immediately", async () => {
    await driver.watch(() => {}, life.signal);
    await sync([web(one, two)]);
    host.count(server, "10.180.1.2:8080", 1);
    expect(await sent([web(one)])).toEqual(["set destination 172.30.0.10:80/TCP 10.180.1.2:8080 weight 0"]);
    log.length = 0;
    clock.advance(60_000);
    await driver.verify(life.signal);
    expect(log).toEqual([]);
    host.count(server, "10.180.1.2:8080", 0);
    clock.advance(60_000);
    await driver.verify(life.signal);
    expect(log).toEqual(["delete destination 172.30.0.10:80/TCP 10.180.1.2:8080"]);

    const three = endpoint("10.180.1.3:8080");
    await sync([web(one, three)]);
    expect(await sent([web(one)])).toEqual([
      "set destination 172.30.0.10:80/TCP 10.180.1.3:8080 weight 0",
      "delete destination 172.30.0.10:80/TCP 10.180.1.3:8080",
    ]);
  });

  it("20/20 an endpoint that the kernel does not let go yet is tried again a minute later", async () => {
    await driver.watch(() => {}, life.signal);
    await sync([web(one, two)]);
    host.refuse("delete destination");
    await sync([web(one)]);
    host.refuse(null);
    log.length = 0;
    clock.advance(60_000);
    await vi.waitUntil(() => log.length > 0, { timeout: 10_000 });
    expect(log).toEqual(["delete destination 172.30.0.10:80/TCP 10.180.1.2:8080"]);
  });

  it.each([
    "add entry",
    "add server",
    "add destination",
    "add address",
    "delete entry",
    "delete address",
    "delete server",
    "set destination",
  ] as const)(
    "where every %s is refused it is reported, and repaired as soon as it is accepted",
    async (kind) => {
      const clusterIP = kind === "set destination" ? server.address : "172.30.0.11";
      const [web1, web2] = [web(one), { ...web(two), clusterIP }];
      if (!kind.startsWith("add")) await sync([web1]);
      host.refuse(kind);
      expect((await sync([web2])).refused.map(({ object }) => object)).toEqual(["Service shop/web"]);
      host.refuse(null);
      expect((await sync([web2], true)).refused).toEqual([]);
      const { servers, addresses, sets } = await host.read();
      expect([...servers.keys()]).toEqual([`${clusterIP}:80/TCP`]);
      expect([...servers.values()].flatMap(({ destinations }) => [...destinations.keys()])).toEqual([
        "10.180.1.2:8080",
      ]);
      expect([...addresses]).toEqual([clusterIP]);
      expect([...sets.get("KUBE-CLUSTER-IP")!.entries]).toEqual([`${clusterIP},tcp:80`]);
      expect(await driver.verify(life.signal)).toEqual({ differences: 0 });
    },
  );

  it("20/22 an endpoint that returns while it drains keeps its connections", async () => {
    await sync([web(one, two)]);
    host.count(server, "10.180.1.2:8080", 1);
    await sync([web(one)]);
    expect(await sent([web(one, two)])).toEqual([
      "set destination 172.30.0.10:80/TCP 10.180.1.2:8080 weight 1",
    ]);
    expect(
      (await host.read()).servers.get("172.30.0.10:80/TCP")!.destinations.get("10.180.1.2:8080"),
    ).toMatchObject({
      weight: 1,
      active: 1,
    });
  });

  it("20/25 repairs what others change, and takes away servers of others outside excluded networks", async () => {
    await sync([web(one)]);
    const foreign = (address: string) =>
      ({
        kind: "add server",
        server: { ...server, address, scheduler: "wlc", flags: 0, timeoutSeconds: 0 },
      }) as const;
    await host.apply([
      foreign("10.98.0.1"),
      foreign("10.99.0.1"),
      { kind: "delete address", address: "172.30.0.10" },
      { kind: "delete entry", set: "KUBE-CLUSTER-IP", entry: "172.30.0.10,tcp:80" },
    ]);
    log.length = 0;
    expect(await driver.verify(life.signal)).toEqual({ differences: 3, repair: { operations: 3, bytes: 0 } });
    expect(log).toEqual([
      "add entry KUBE-CLUSTER-IP 172.30.0.10,tcp:80",
      "add address 172.30.0.10",
      "delete server 10.98.0.1:80/TCP",
    ]);
    expect(await driver.verify(life.signal)).toEqual({ differences: 0 });
  });

  it("20/47 a set takes 65536 entries; the next is reported as refused, and everything else is in place", async () => {
    const crowded = Array.from({ length: 65_537 }, (_, i) =>
      endpoint(`10.180.0.${1 + Math.floor(i / 65_000)}:${1 + (i % 65_000)}`),
    );
    const crowd = servicePort("shop/crowd", { endpoints: crowded });
    const { refused } = await sync([crowd]);
    expect(refused).toMatchObject([
      { object: "Service shop/crowd", message: expect.stringContaining("Hash is full") },
    ]);
    const state = await host.read();
    expect(state.sets.get("KUBE-LOOP-BACK")!.entries.size).toBe(65_536);
    expect(state.servers.get("172.30.0.10:80/TCP")!.destinations.size).toBe(65_537);
    expect([...state.addresses]).toEqual(["172.30.0.10"]);
    // It is reported again until it fits, and does not stop the others.
    const other = servicePort("shop/web", { clusterIP: "172.30.0.11", endpoints: [two] });
    expect((await sync([crowd, other])).refused).toHaveLength(1);
    expect((await host.read()).servers.has("172.30.0.11:80/TCP")).toBe(true);
    expect((await sync([other])).refused).toEqual([]);
  }, 60_000);

  it("without link or sets a Sync fails as a whole, and is tried again from what the host holds", async () => {
    host.breakDown("Cannot read IP sets: ipset exited with 1");
    await expect(sync([web(one)])).rejects.toThrow(HostError);
    host.breakDown(null);
    expect(await sync([web(one)], true)).toMatchObject({ readBack: true, refused: [] });
  });

  it("20/48 one changed endpoint sends the same among 100 Services and among 5000, and nothing is read", async () => {
    const cluster = (size: number) =>
      Array.from({ length: size }, (_, i) =>
        servicePort(`shop/s${i}`, {
          clusterIP: `172.${16 + (i >> 12)}.${(i >> 4) & 255}.${i & 15}`,
          endpoints: [1, 2, 3, 4].map((k) => endpoint(`10.181.${(i >> 8) & 255}.${i & 255}:${8000 + k}`)),
        }),
      );
    const costs: unknown[] = [];
    for (const size of [100, 5000]) {
      host = new LoggedHost(log);
      tables = new MemoryTables(log);
      open();
      const ports = cluster(size);
      await sync(ports);
      const before = tables.restores;
      const changed = { ...ports[50]!, endpoints: [...ports[50]!.endpoints.slice(1), one] };
      const applied = await sync([...ports.slice(0, 50), changed, ...ports.slice(51)]);
      costs.push({
        operations: applied.operations,
        readBack: applied.readBack,
        restores: tables.restores - before,
      });
      expect(await driver.verify(life.signal)).toEqual({ differences: 0 });
    }
    // The new one, weight 0 for the old one, and its end, since it has no connections.
    expect(costs).toEqual([
      { operations: 3, readBack: false, restores: 0 },
      { operations: 3, readBack: false, restores: 0 },
    ]);
  }, 60_000);
});
