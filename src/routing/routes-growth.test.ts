// The work of routing grows with the size of the cluster, not with its square.
import { describe, expect, it, vi } from "vitest";
import { endpoint, ipv4Settings, servicePort } from "../../test/support/routed.ts";
import { keyed } from "../model/keyed.ts";
import type { PortKey, ServicePort } from "../model/snapshot.ts";
import { route } from "./routes.ts";

describe("routing", () => {
  it("security/2: all ports and addresses of a Service share one list of allowed sources", () => {
    const sourceRanges = ["192.168.0.0/24", "203.0.113.0/24"];
    const loadBalancerIPs = ["198.51.100.1", "198.51.100.2"];
    const more = { sourceRanges, loadBalancerIPs };
    const { ports } = routesOf([servicePort("shop/web:a", more), servicePort("shop/web:b", more)]);
    const lists = [...ports.values()].flatMap(({ routes }) => routes.map(({ allowed }) => allowed));
    const [allowed, ...others] = new Set(lists.filter((list) => list !== null));
    expect(allowed).toEqual([...sourceRanges, "198.51.100.1/32", "198.51.100.2/32"]);
    expect(others).toEqual([]);
  });

  it.each([500, 2000])("security/2: claims of %i Services on one address are sorted once", (count) => {
    const ports = Array.from({ length: count }, (_, i) =>
      servicePort(`shop/s${i}`, {
        clusterIP: `172.30.${i >> 8}.${i & 255}`,
        externalIPs: ["198.51.100.1"],
      }),
    );
    const sort = vi.spyOn(Array.prototype, "sort");
    const { claims } = routesOf(ports);
    const sorted = sort.mock.contexts.reduce((sum: number, list) => sum + (list as unknown[]).length, 0);
    sort.mockRestore();
    expect(claims.get("198.51.100.1/tcp/80")).toHaveLength(count);
    expect(sorted).toBe(count);
  });

  it("two Services that share their addresses cost twice as much with twice as many, at first and at each update", () => {
    const [few, many] = [500, 1000].map(idsMadeForShared);
    for (const [i, made] of many!.entries()) expect(made).toBeLessThan(few![i]! * 2.2);
  });
});

/** How many ids of Frontends are made for two Services with the same addresses, and for an update of one of them. */
function idsMadeForShared(count: number): number[] {
  const externalIPs = Array.from({ length: count }, (_, i) => `198.51.${i >> 8}.${i & 255}`);
  const [a, b] = [1, 2].map((n) => servicePort(`shop/s${n}`, { clusterIP: `172.30.0.${n}`, externalIPs }));
  const join = vi.spyOn(Array.prototype, "join");
  const before = routesOf([a!, b!]);
  const first = join.mock.calls.length;
  const now = { ...b!, endpoints: [endpoint("10.180.0.1:80")] };
  const changed = new Set([now.key]);
  const after = route(
    before,
    { ports: keyed([a!, now].map(keyedPort)), changed, serviceCIDRs: [] },
    ipv4Settings,
  );
  const update = join.mock.calls.length - first;
  join.mockRestore();
  expect(after.ports.get(now.key)!.lost).toHaveLength(count);
  return [first, update];
}

function keyedPort(port: ServicePort): readonly [PortKey, ServicePort] {
  return [port.key, port];
}

function routesOf(ports: readonly ServicePort[]) {
  const snapshot = {
    ports: keyed(ports.map(keyedPort)),
    changed: new Set<string>(),
    serviceCIDRs: [],
  };
  return route(null, snapshot, ipv4Settings);
}
