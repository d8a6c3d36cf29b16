// Services that take an address of this node or of the API server are found, in proportion to what changed.
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { servicePort } from "../../test/support/routed.ts";
import { type Keyed, keyed } from "../model/keyed.ts";
import { printProblem } from "../model/problem.ts";
import type { FamilySnapshot, ServicePort } from "../model/snapshot.ts";
import { type Intercepts, interceptsIn, noIntercepts, problemsOf, type Surroundings } from "./intercepts.ts";

const plain = servicePort("shop/web:http");

const serving = {
  port: 6443,
  state: "ready",
  serving: true,
  nodeName: "",
  zoneHints: [],
  nodeHints: [],
} as const;
const kubernetes: ServicePort = {
  ...plain,
  key: "default/kubernetes/tcp/https",
  service: "default/kubernetes",
  clusterIP: "172.30.0.1",
  port: 443,
  externalIPs: ["192.168.0.9"],
  endpoints: [{ address: "192.168.0.9", ...serving }],
};

const around: Surroundings = {
  node: ["192.168.0.1", "203.0.113.1"],
  server: { address: "192.168.0.8", port: 8443 },
  externalIPsAllowed: true,
};

const portNamed = (name: string, change: Partial<ServicePort>): ServicePort => ({
  ...plain,
  key: `shop/${name}/tcp/http`,
  service: `shop/${name}`,
  name,
  ...change,
});

function snapshotOf(ports: readonly ServicePort[]): FamilySnapshot {
  const all = keyed(ports.map((port) => [port.key, port] as const));
  return { ports: all, changed: new Set(all.keys()), serviceCIDRs: [] };
}

const found = (change: Partial<ServicePort>, surroundings = around) => {
  const intercepts = interceptsIn(null, snapshotOf([kubernetes, portNamed("web", change)]), surroundings);
  const counts = Object.entries(intercepts.counts).flatMap(([kind, count]) =>
    count > 0 ? `${kind}: ${count}` : [],
  );
  return { counts, problems: problemsOf(intercepts).map(printProblem) };
};

describe("security/14: addresses that are not a Service's own", () => {
  it.each([
    ["192.168.0.1", "node", "this node"],
    ["203.0.113.1", "node", "this node"],
    ["192.168.0.9", "api-server", "the API server"],
    ["172.30.0.1", "api-server", "the API server"],
    ["192.168.0.8", "api-server", "the API server"],
  ])("external IP %s, an address of the %s, is a Problem", (address, of, owner) => {
    expect(found({ externalIPs: ["198.51.100.7", address] })).toEqual({
      counts: [`external-ip ${of}: 1`],
      problems: [
        `Service shop/web spec.externalIPs: ${address} is an address of ${owner}: traffic to it at tcp port 80 goes to shop/web:http (CVE-2020-8554)`,
      ],
    });
  });

  it.each(["192.168.0.9", "172.30.0.1", "192.168.0.8"])(
    "load-balancer IP %s, an address of the API server, is a Problem",
    (address) => {
      const { counts, problems } = found({ loadBalancerIPs: [address] });
      expect(counts).toEqual(["load-balancer-ip api-server: 1"]);
      expect(problems).toEqual([expect.stringContaining("status.loadBalancer.ingress: ")]);
    },
  );

  it("where nodes are the load balancer, as in k3s, their addresses are only counted", () => {
    const nodes = ["192.168.0.9", "192.168.0.1"];
    expect(found({ loadBalancerIPs: ["192.168.0.1"] })).toEqual({
      counts: ["load-balancer-ip node: 1"],
      problems: [],
    });
    expect(found({ loadBalancerIPs: nodes })).toEqual({ counts: ["load-balancer-ip node: 1"], problems: [] });
    expect(found({ loadBalancerIPs: nodes, port: 6443 }).counts).toEqual([
      "load-balancer-ip node: 1",
      "load-balancer-ip api-server: 1",
    ]);
  });

  it("other addresses, and external IPs that are not served, are nothing to report", () => {
    expect(found({ externalIPs: ["198.51.100.7"], loadBalancerIPs: ["198.51.100.8"] })).toEqual({
      counts: [],
      problems: [],
    });
    expect(found({ externalIPs: ["192.168.0.1"] }, { ...around, externalIPsAllowed: false }).counts).toEqual(
      [],
    );
  });
});

it("security/14: only changed ServicePorts are visited, however large the cluster is", () => {
  const many = Array.from({ length: 5000 }, (_, i) => portNamed(`s${i}`, {}));
  const first = snapshotOf([kubernetes, ...many]);
  const before = interceptsIn(null, first, around);
  const changed = portNamed("s7", { externalIPs: ["192.168.0.1"] });
  const visited: string[] = [];
  const counting = (ports: Keyed<ServicePort>): Keyed<ServicePort> => ({
    size: ports.size,
    has: (key) => ports.has(key),
    with: (changes) => ports.with(changes),
    get(key) {
      visited.push(key);
      return ports.get(key);
    },
    keys: () => expect.unreachable("all keys were visited"),
    values: () => expect.unreachable("all values were visited"),
    entries: () => expect.unreachable("all entries were visited"),
  });
  const ports = counting(first.ports.with([[changed.key, changed]]));
  const after = interceptsIn(before, { ...first, ports, changed: new Set([changed.key]) }, around);
  expect(visited).toEqual([changed.key]);
  expect(after.counts).toEqual({ ...noIntercepts, "external-ip node": 1 });
});

it("security/14: what is found step by step is what is found from scratch", () => {
  const address = fc.constantFrom("192.168.0.1", "192.168.0.9", "192.168.0.8", "172.30.0.1", "198.51.100.7");
  const port = fc.record({
    name: fc.constantFrom("a", "b", "c"),
    isThere: fc.boolean(),
    externalIPs: fc.uniqueArray(address, { maxLength: 3 }),
    loadBalancerIPs: fc.uniqueArray(address, { maxLength: 3 }),
    port: fc.constantFrom(80, 443, 6443),
  });
  const step = fc.record({
    port,
    isApiThere: fc.boolean(),
    surroundings: fc.constantFrom(around, { ...around, node: [] }),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 12 }), (steps) => {
      let ports = keyed<ServicePort>();
      let known: Intercepts | null = null;
      for (const {
        port: { name, isThere, ...change },
        isApiThere,
        surroundings,
      } of steps) {
        const one = portNamed(name, change);
        const changes = [
          [one.key, isThere ? one : undefined],
          [kubernetes.key, isApiThere ? kubernetes : undefined],
        ] as const;
        ports = ports.with(changes);
        const changed = new Set(changes.map(([key]) => key));
        known = interceptsIn(known, { ports, changed, serviceCIDRs: [] }, surroundings);
        const scratch = interceptsIn(null, snapshotOf([...ports.values()]), surroundings);
        expect(known.counts).toEqual(scratch.counts);
        expect(problemsOf(known).map(printProblem).sort()).toEqual(
          problemsOf(scratch).map(printProblem).sort(),
        );
      }
    }),
  );
});
