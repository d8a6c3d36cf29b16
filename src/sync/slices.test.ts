// A large change in slices: it gives the Routes of the whole, and a first load reaches the host slice by slice.
import { describe, expect, it } from "vitest";
import { endpoint, ipv4Settings, servicePort } from "../../test/support/routed.ts";
import { MemoryTableHost } from "../host/nftables/memoryhost.ts";
import { keyed } from "../model/keyed.ts";
import type { FamilySnapshot, ServicePort } from "../model/snapshot.ts";
import { compile } from "../modes/nftables/compile.ts";
import { NftablesDriver } from "../modes/nftables/host/driver.ts";
import { countOperations, diff } from "../plan/nftables/diff.ts";
import { unfold } from "../plan/nftables/plan.ts";
import { type Routes, route } from "../routing/routes.ts";
import { FamilySync } from "./family-sync.ts";
import { routeInSlices } from "./slices.ts";

const { signal } = new AbortController();
const services = 3000;

describe("a large change", () => {
  it("is routed in slices that visit each key once, and gives the Routes of the whole", async () => {
    const parts: Routes[] = [];
    const snapshot = snapshotOf(many(1));
    const routes = await routeInSlices(null, snapshot, ipv4Settings, async (part) => void parts.push(part));
    expect(parts.length).toBeGreaterThan(3);
    expect(parts.reduce((sum, { changed }) => sum + changed.size, 0)).toBe(services);
    expectSame(routes, route(null, snapshot, ipv4Settings));
    const next = snapshotOf(many(2));
    expectSame(
      await routeInSlices(routes, next, ipv4Settings, async () => {}),
      route(null, next, ipv4Settings),
    );
  });

  it("begins with the API server and kube-system", async () => {
    const parts: Routes[] = [];
    const dns = servicePort("kube-system/dns", { clusterIP: "172.31.0.10" });
    const snapshot = snapshotOf([...many(1), dns]);
    await routeInSlices(null, snapshot, ipv4Settings, async (part) => void parts.push(part));
    expect(parts[0]!.changed).toContain(dns.key);
  });

  it("keeps all ports of a Service in one slice", async () => {
    const parts: Routes[] = [];
    const ports = Array.from({ length: 5000 }, (_, i) =>
      servicePort("shop/wide", { port: i + 1, portName: `p${i}`, key: `shop/wide/tcp/p${i}` }),
    );
    const snapshot = snapshotOf([...ports, ...many(1)]);
    await routeInSlices(null, snapshot, ipv4Settings, async (part) => void parts.push(part));
    expect(parts[0]!.changed.size).toBeGreaterThanOrEqual(5000);
  });
});

describe("a first load in slices", () => {
  it("writes each slice when there is no table, and one record covers all", async () => {
    const { host, sync } = setUp();
    const record = await sync(snapshotOf(many(1)));
    expect(host.applied.length).toBeGreaterThan(3);
    const written = host.applied.reduce((sum, patch) => sum + countOperations(patch), 0);
    expect(record).toMatchObject({ operations: written, changedPorts: services, readBack: true });
    expect(diff(host.table, wanted(many(1)))).toEqual([]);
  });

  it("writes several slices at a time once the table is large", async () => {
    const { host, sync } = setUp();
    const snapshot = snapshotOf(many(1, 30_000));
    let slices = 0;
    await routeInSlices(null, snapshot, ipv4Settings, async () => void slices++);
    await sync(snapshot);
    expect(host.applied.length).toBeLessThan(0.8 * slices);
  });

  it("deletes nothing of a table that exists before all slices are known", async () => {
    const first = setUp();
    await first.sync(snapshotOf(many(1)));
    const transactions = first.host.applied.length;
    const second = setUp(first.host);
    const record = await second.sync(snapshotOf(many(2)));
    expect(first.host.applied.length).toBe(transactions + 1);
    expect(record.operations).toBe(countOperations(first.host.applied.at(-1)!));
    expect(diff(first.host.table, wanted(many(2)))).toEqual([]);
  });

  it("writes nothing when the table is as wanted", async () => {
    const first = setUp();
    await first.sync(snapshotOf(many(1)));
    const transactions = first.host.applied.length;
    expect(await setUp(first.host).sync(snapshotOf(many(1)))).toMatchObject({ operations: 0 });
    expect(first.host.applied.length).toBe(transactions);
  });

  it("fails as a whole when the host cannot be written, and the next Sync brings all", async () => {
    const { host, sync } = setUp();
    host.breakDown("Cannot write: EIO");
    expect(await sync(snapshotOf(many(1)))).toMatchObject({ outcome: { kind: "failed" } });
    host.breakDown(null);
    expect(await sync({ ...snapshotOf(many(1)), changed: new Set() })).toMatchObject({
      outcome: { kind: "ok", refused: [] },
    });
    expect(diff(host.table, wanted(many(1)))).toEqual([]);
  });
});

function setUp(host = new MemoryTableHost("ip")) {
  const family = new FamilySync("ipv4", new NftablesDriver(host), () => 0);
  return {
    host,
    sync: (snapshot: FamilySnapshot) => family.run(snapshot, ipv4Settings, "first", signal),
  };
}

function many(endpoints: number, count = services): ServicePort[] {
  return Array.from({ length: count }, (_, i) =>
    servicePort(`shop/web-${i}`, {
      clusterIP: `172.30.${i >> 8}.${i & 255}`,
      endpoints: Array.from({ length: endpoints }, (_, e) => endpoint(`10.${e}.${i >> 8}.${i & 255}:80`)),
    }),
  );
}

function snapshotOf(ports: readonly ServicePort[]): FamilySnapshot {
  const map = keyed(ports.map((port) => [port.key, port] as const));
  return { ports: map, changed: new Set(map.keys()), serviceCIDRs: [] };
}

function wanted(ports: readonly ServicePort[]) {
  return unfold(compile(null, route(null, snapshotOf(ports), ipv4Settings)));
}

function expectSame(routes: Routes, whole: Routes): void {
  expect(new Map(routes.ports.entries())).toEqual(new Map(whole.ports.entries()));
  expect(new Map(routes.claims.entries())).toEqual(new Map(whole.claims.entries()));
  expect(new Set(routes.changed)).toEqual(new Set(whole.changed));
}
