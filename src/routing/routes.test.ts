// Claims on Frontends, and how little is visited when little changes.
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { servicePort, settings, snapshotOf } from "../../test/clusters.ts";
import { change, generatedHistory } from "../../test/properties/common.ts";
import type { FamilySettings } from "../config/resolve/settings.ts";
import { keyed } from "../model/keyed.ts";
import type { PortKey, ServicePort } from "../model/snapshot.ts";
import { conflicts } from "./conflicts.ts";
import { frontendId, hasSameRoutes, holderOf, type Routes, route } from "./routes.ts";

const here = fc.sample(settings("ipv4"), { seed: 1, numRuns: 1 })[0]!;
const allowing: FamilySettings = { ...here, externalIPsAllowed: true };

describe("claims", () => {
  const web = port("web", { clusterIP: "172.30.0.1" });
  const thief = port("a-thief", { clusterIP: "172.30.0.2", externalIPs: ["172.30.0.1"] });

  it("a cluster IP cannot be taken over by another Service's external IP, in any order of arrival", () => {
    for (const ports of [
      [web, thief],
      [thief, web],
    ]) {
      const routes = route(null, snapshotOf(ports, "ipv4"), allowing);
      expect(routes.ports.get(web.key)!.lost).toEqual([]);
      expect(conflicts(routes, routes.ports.get(thief.key)!)).toEqual([
        {
          kind: "conflict",
          object: "Service shop/a-thief",
          field: "externalIP",
          message: "externalIP 172.30.0.1:80/tcp is held by shop/web; shop/a-thief is not served there",
        },
      ]);
    }
  });

  it("of many Frontends that others hold, twenty are listed and the others counted", () => {
    const externalIPs = Array.from({ length: 25 }, (_, i) => `198.51.100.${i}`);
    const [first, second] = [1, 2].map((n) => port(`s${n}`, { clusterIP: `172.30.0.${n}`, externalIPs }));
    const routes = route(null, snapshotOf([first!, second!], "ipv4"), allowing);
    const found = conflicts(routes, routes.ports.get(second!.key)!);
    expect(found.slice(0, 20).every(({ message }) => message.includes("is held by shop/s1"))).toBe(true);
    expect(found.slice(20)).toEqual([
      {
        kind: "conflict",
        object: "Service shop/s2",
        field: "",
        message: "shop/s2 is not served at 5 more addresses that other Services hold",
      },
    ]);
  });

  it("a Frontend that its holder gives up goes to the next one, which is routed again", () => {
    const before = route(null, snapshotOf([web, thief], "ipv4"), allowing);
    const after = route(before, snapshotOf([thief], "ipv4", [web.key]), allowing);
    expect([...after.changed].sort()).toEqual([thief.key, web.key]);
    expect(after.ports.get(thief.key)!.routes.map(({ frontend }) => frontend.kind)).toContain("externalIP");
    expect(after.ports.has(web.key)).toBe(false);
  });

  it("who is given one Frontend still has lost the others", () => {
    const api = port("api", { clusterIP: "172.30.0.3" });
    const greedy = { ...thief, externalIPs: ["172.30.0.1", "172.30.0.3"] };
    const before = route(null, snapshotOf([web, api, greedy], "ipv4"), allowing);
    const after = route(before, snapshotOf([api, greedy], "ipv4", [web.key]), allowing);
    expect(after.ports.get(greedy.key)!.lost.map(({ holder }) => holder)).toEqual([api.key]);
  });

  it("who holds and who lost what, reached step by step, is what it is from scratch", () => {
    fc.assert(
      fc.property(generatedHistory("ipv4"), ({ settings, steps }) => {
        const ports = new Map<PortKey, ServicePort>();
        let routes: Routes | null = null;
        for (const { changes, setting } of steps) {
          const changed = change(ports, changes);
          const snapshot = snapshotOf([...ports.values()], "ipv4", changed);
          routes = route(routes, snapshot, settings[setting]!);
          const fresh = route(null, snapshot, settings[setting]!);
          expect(new Map(routes.ports.entries())).toEqual(new Map(fresh.ports.entries()));
          expect(new Map(routes.claims.entries())).toEqual(new Map(fresh.claims.entries()));
          for (const { port, routes: held, lost } of fresh.ports.values()) {
            const holders = [...held, ...lost].map(({ frontend }) => holderOf(fresh, frontendId(frontend)));
            expect(holders).toEqual([...held.map(() => port.key), ...lost.map(({ holder }) => holder)]);
          }
        }
      }),
      { numRuns: 500 },
    );
  });

  it("04/9 an external IP counts for reachability although the gate keeps it from being served", () => {
    const only = port("web", { externalIPs: ["198.51.100.1"], internalPolicy: "local" });
    const { routes, pools } = route(null, snapshotOf([only], "ipv4"), {
      ...allowing,
      externalIPsAllowed: false,
    }).ports.get(only.key)!;
    expect(routes.map(({ frontend }) => frontend.kind)).toEqual(["clusterIP"]);
    expect(pools.cluster.because).not.toBe("not needed by any frontend");
  });
});

describe("cost", () => {
  it("one changed ServicePort among 10,000 is the only one visited, and all others keep their Routes", () => {
    const ports = Array.from({ length: 10_000 }, (_, i) =>
      port(`s${i}`, { clusterIP: `172.30.${i >> 8}.${i & 255}` }),
    );
    const before = route(null, snapshotOf(ports, "ipv4"), allowing);
    const changed = { ...ports[7]!, port: 81 };
    const snapshot = {
      ports: keyed(ports.with(7, changed).map((each) => [each.key, each] as const)),
      changed: new Set([changed.key]),
      serviceCIDRs: [],
    };
    const after = route(before, snapshot, allowing);
    expect([...after.changed]).toEqual([changed.key]);
    const moved = [...after.ports.keys()].filter((key) => !hasSameRoutes(before, after, key));
    expect(moved).toEqual([changed.key]);
  });
});

function port(name: string, more: Partial<ServicePort>): ServicePort {
  const sample = fc.sample(servicePort("ipv4"), { seed: 3, numRuns: 1 })[0]!;
  return {
    ...sample,
    name,
    key: `shop/${name}/tcp/`,
    service: `shop/${name}`,
    portName: "",
    protocol: "tcp",
    port: 80,
    nodePort: 0,
    externalIPs: [],
    loadBalancerIPs: [],
    sourceRanges: [],
    ...more,
  };
}
