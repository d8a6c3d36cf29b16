// What changes from one release of Kubernetes to the next: both defaults of a gate, and objects that newer API servers accept.
import { describe, expect, it } from "vitest";
import { resolveGates } from "../src/config/gates/gates.ts";
import { parseTo } from "../src/explain/question.ts";
import { Cluster } from "../src/manifests/cluster.ts";
import { type Family, families, isLoopback } from "../src/model/address.ts";
import { compile as compileIptables } from "../src/modes/iptables/compile.ts";
import { compile as compileIpvs } from "../src/modes/ipvs/compile.ts";
import { nftablesBehavior } from "../src/modes/nftables/behavior.ts";
import { compile as compileNftables } from "../src/modes/nftables/compile.ts";
import { compile as compileUserspace } from "../src/modes/userspace/compile.ts";
import { socketsIn, wantedRelays } from "../src/modes/userspace/relays.ts";
import { print as printIptables } from "../src/plan/iptables/print.ts";
import { print as printIpvs } from "../src/plan/ipvs/print.ts";
import { unfold } from "../src/plan/nftables/plan.ts";
import { print as printNftables } from "../src/plan/nftables/print.ts";
import { decide } from "../src/routing/decide.ts";
import type { Routes } from "../src/routing/routes.ts";
import { dualStack, type KubeObject, referenceObjects } from "./cluster.ts";
import { nodeName } from "./places.ts";
import { routesFor } from "./scenario-routes.ts";
import { caseText, type ModeName, modeNames, readScenario, scenarioNames } from "./scenarios.ts";

const printed: Readonly<Record<ModeName, (routes: Routes) => string>> = {
  nftables: (routes) => printNftables(unfold(compileNftables(null, routes))),
  iptables: (routes) =>
    printIptables(compileIptables(null, routes, { invalidDropped: false, localhostNodePorts: false })),
  ipvs: (routes) => printIpvs(compileIpvs(null, routes, { scheduler: "", excludeCIDRs: [] })),
  userspace: (routes) => {
    const sockets = { bind: null, socketsOf: socketsIn(wantedRelays(routes)) };
    return printIptables(compileUserspace(null, routes, sockets));
  },
};

describe("upstream/3: AllowServiceExternalIPs (KEP-5707), on until about 1.40 and off from then", () => {
  const { objects, settings } = readScenario("external-ip");
  const plan = (mode: ModeName, family: Family, isOn: boolean) =>
    printed[mode](
      routesFor(objects, { ...settings, featureGates: { AllowServiceExternalIPs: isOn } }, mode, family),
    );

  it.each(modeNames.flatMap((mode) => families.map((family) => [mode, family] as const)))(
    "external IPs are served when it is on, and nothing else changes when it is off: %s %s",
    (mode, family) => {
      const external = family === "ipv4" ? "192.168.99." : "2001:db8:99:";
      const [on, off] = [plan(mode, family, true), plan(mode, family, false)];
      expect(on).toContain(external);
      expect(off).not.toContain(external);
      expect(off).toContain(family === "ipv4" ? "172.30.0." : "fd00:172:30:");
    },
  );

  it("is accepted with either value", () => {
    for (const isOn of [true, false]) {
      const gates = resolveGates({ AllowServiceExternalIPs: isOn });
      expect([gates.errors, gates.enabled("AllowServiceExternalIPs")]).toEqual([[], isOn]);
    }
  });
});

describe("upstream/3: KubeProxyNFTablesLocalhostNodePorts (KEP-6032), off in 1.37 and on in 1.38", () => {
  it("changes what happens to packets to loopback addresses, and nothing else", () => {
    const changed: string[] = [];
    for (const { objects, settings, packets } of scenarioNames().map(readScenario)) {
      for (const family of families) {
        const [off, on] = [false, true].map((isOn) => {
          const featureGates = { ...settings.featureGates, KubeProxyNFTablesLocalhostNodePorts: isOn };
          return routesFor(objects, { ...settings, featureGates }, "nftables", family);
        }) as [Routes, Routes];
        for (const packet of packets.filter((each) => each.family === family)) {
          const { from, to } = packet;
          const sent = {
            from: { origin: from.kind === "outside" ? "elsewhere" : from.kind, address: from.address },
            to,
          };
          const outcome = (routes: Routes) =>
            JSON.stringify(decide(routes, nftablesBehavior, sent as Parameters<typeof decide>[2]).outcome);
          if (outcome(off) !== outcome(on)) changed.push(`${to.address} ${caseText(packet)}`);
        }
      }
    }
    expect(changed.length).toBeGreaterThan(0);
    expect(changed.filter((line) => !isLoopback(line.split(" ")[0]!))).toEqual([]);
  });

  it("is accepted with either value, and follows AllAlpha", () => {
    const isOn = (wanted: Record<string, boolean>) =>
      resolveGates(wanted).enabled("KubeProxyNFTablesLocalhostNodePorts");
    expect([isOn({}), isOn({ AllAlpha: true })]).toEqual([false, true]);
    for (const value of [true, false])
      expect(isOn({ KubeProxyNFTablesLocalhostNodePorts: value })).toBe(value);
  });
});

describe("upstream/3: relaxed Service names (KEP-5311)", () => {
  const objects = named("1-web");

  it.each(modeNames)("a name that starts with a digit is served like any other in mode %s", (mode) => {
    for (const family of families) {
      const { settings } = readScenario("cluster-ip");
      const routes = routesFor([...referenceObjects(objects), ...objects], settings, mode, family);
      expect([...routes.ports.keys()]).toContain("9shop/1-web/tcp/");
      expect(printed[mode](routes)).toContain(family === "ipv4" ? "172.30.0.77" : "fd00:172:30::77");
    }
  });

  it("is no Problem, and can be queried by name", () => {
    const cluster = new Cluster(nodeName);
    for (const object of objects) cluster.upsert(object.kind as "Service" | "EndpointSlice", object);
    expect(cluster.take().problems).toEqual([]);
    expect(parseTo("svc/9shop/1-web:80")).toMatchObject({ ok: true, value: { name: "1-web" } });
    for (const text of ["9shop/1-web:80", "1-web.9shop:80"])
      expect(parseTo(text)).toEqual(parseTo("svc/9shop/1-web:80"));
  });
});

describe("upstream/3: strict validation of addresses and networks (KEP-4858)", () => {
  it("old forms of an object mean the same, and the gate is accepted", () => {
    const snapshot = (clusterIP: string, range: string) => {
      const cluster = new Cluster(nodeName);
      const [service] = named("web") as [KubeObject];
      const spec = { ...(service.spec as object), clusterIP, clusterIPs: [clusterIP], ipFamilies: ["IPv4"] };
      cluster.upsert("Service", { ...service, spec: { ...spec, loadBalancerSourceRanges: [range] } });
      return cluster.take();
    };
    const [strict, sloppy] = [
      snapshot("172.30.0.77", "10.0.0.0/8"),
      snapshot("172.030.000.077", "10.1.2.3/8"),
    ];
    expect([strict.problems, sloppy.problems]).toEqual([[], []]);
    expect([...sloppy.ipv4.ports.values()]).toEqual([...strict.ipv4.ports.values()]);
    for (const isOn of [true, false])
      expect(resolveGates({ StrictIPCIDRValidation: isOn }).errors).toEqual([]);
  });
});

function named(name: string): KubeObject[] {
  const metadata = { name, namespace: "9shop" };
  const labels = { "kubernetes.io/service-name": name };
  return [
    {
      apiVersion: "v1",
      kind: "Service",
      metadata,
      spec: { type: "ClusterIP", clusterIP: "172.30.0.77", ports: [{ port: 80, protocol: "TCP" }] },
    },
    {
      apiVersion: "discovery.k8s.io/v1",
      kind: "EndpointSlice",
      metadata: { ...metadata, name: `${name}-x`, labels },
      addressType: "IPv4",
      ports: [{ name: "", port: 8080, protocol: "TCP" }],
      endpoints: [{ addresses: ["10.180.0.1"], nodeName, conditions: { ready: true } }],
    },
  ].flatMap((object) => dualStack(object as KubeObject));
}
