// From Kubernetes objects to rules: order of slices, odd ranges, hints.
import { describe, expect, it } from "vitest";
import * as objects from "../../../test/objects.ts";
import { ipv4Settings } from "../../../test/support/routed.ts";
import type { FamilySettings } from "../../config/resolve/settings.ts";
import { Cluster } from "../../manifests/cluster.ts";
import { print } from "../../plan/iptables/print.ts";
import { route } from "../../routing/routes.ts";
import { compile } from "./compile.ts";

type Slices = readonly Record<string, unknown>[];

function rules(service: unknown, slices: Slices, settings: FamilySettings = ipv4Settings): string {
  const cluster = new Cluster("node-a");
  cluster.upsert("Service", service);
  for (const slice of slices) cluster.upsert("EndpointSlice", slice);
  const counters = { invalidDropped: false, localhostNodePorts: false };
  return print(compile(null, route(null, cluster.take().ipv4, settings), counters));
}

/** Endpoints in the order in which they are chosen. */
function choices(text: string): string[] {
  return [...text.matchAll(/^-A KUBE-SVC-.* -> (\S+)"/gm)].map(([, endpoint]) => endpoint!);
}

describe("rules of objects", () => {
  it("10/21 have endpoints in the bytewise order of their texts, whatever the order of slices", () => {
    const slice = (name: string, ...addresses: string[]) =>
      objects.slice(
        addresses.map((address) => objects.endpoint(address)),
        { metadata: { name } },
      );
    const slices = [slice("web-1", "10.0.0.2", "10.0.0.10"), slice("web-2", "10.0.0.9", "10.0.0.1")];
    const text = rules(objects.service(), slices);
    expect(choices(text)).toEqual(["10.0.0.10:8080", "10.0.0.1:8080", "10.0.0.2:8080", "10.0.0.9:8080"]);
    expect(rules(objects.service(), slices.toReversed())).toBe(text);
  });

  it("10/33 10/34 have normal source ranges, without those that are none", () => {
    const balanced = (ingress: object) =>
      objects.service(
        {
          type: "LoadBalancer",
          loadBalancerSourceRanges: [" 203.0.113.7/24 ", "10.001.0.0/16", "nonsense", "2001:db8::/32"],
        },
        { status: { loadBalancer: { ingress: [ingress] } } },
      );
    const slices = [objects.slice([objects.endpoint("10.0.0.1")])];
    const sources = (text: string) =>
      [...text.matchAll(/^-A KUBE-FW-\S+ -s (\S+)/gm)].map(([, source]) => source);
    expect(sources(rules(balanced({ ip: "198.51.100.1" }), slices))).toEqual([
      "203.0.113.0/24",
      "10.1.0.0/16",
    ]);
    expect(sources(rules(balanced({ ip: "198.51.100.1", ipMode: "VIP" }), slices))).toHaveLength(2);
    expect(rules(balanced({ ip: "198.51.100.1", ipMode: "Proxy" }), slices)).not.toMatch(/KUBE-FW|198\.51/);
  });

  it("10/38 follow hints only where every ready endpoint has one, those for nodes before those for zones", () => {
    const hinted = (address: string, forNodes: string | null, forZones: string | null, ready = true) =>
      objects.endpoint(address, {
        conditions: { ready, serving: ready, terminating: false },
        hints: {
          ...(forNodes === null ? {} : { forNodes: [{ name: forNodes }] }),
          ...(forZones === null ? {} : { forZones: [{ name: forZones }] }),
        },
      });
    const chosen = (...endpoints: readonly unknown[]) =>
      choices(rules(objects.service(), [objects.slice(endpoints)], { ...ipv4Settings, zone: "east" }));
    const [here, near, far] = [
      hinted("10.0.0.1", "node-a", "west"),
      hinted("10.0.0.2", "node-b", "east"),
      hinted("10.0.0.3", "node-b", "west"),
    ];
    expect(chosen(here, near, far)).toEqual(["10.0.0.1:8080"]);
    expect(chosen(near, far)).toEqual(["10.0.0.2:8080"]);
    expect(chosen(hinted("10.0.0.1", null, "west"), near, far)).toEqual(["10.0.0.2:8080"]);
    expect(chosen(near, far, objects.endpoint("10.0.0.4"))).toHaveLength(3);
    expect(chosen(near, far, hinted("10.0.0.5", null, null, false))).toEqual(["10.0.0.2:8080"]);
  });
});
