import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Cluster } from "../src/manifests/cluster.ts";
import { kinds } from "../src/manifests/objects.ts";
import { families } from "../src/model/address.ts";
import type { ServicePort } from "../src/model/snapshot.ts";
import { arbitraryObjects, clusterFromSeed, type Objects, thisNode } from "./generators.ts";

describe("generated clusters", () => {
  it("are the same for the same seed", () => {
    expect(clusterFromSeed(7)).toEqual(clusterFromSeed(7));
    expect(clusterFromSeed(7)).not.toEqual(clusterFromSeed(8));
  });

  // A property test on clusters without collisions proves nothing.
  it("hold what makes properties hard to keep", () => {
    const clusters = fc.sample(arbitraryObjects({ hostile: false }), { seed: 1, numRuns: 200 });
    const ports = clusters.flatMap(portsOf);
    const endpoints = ports.flatMap((port) => port.endpoints);
    const often = (count: number) => count >= 20;
    for (const family of families) {
      expect(ports.filter((port) => port.family === family && port.endpoints.length > 1).length).toSatisfy(
        often,
      );
    }
    for (const state of ["ready", "draining", "unready"] as const) {
      expect(endpoints.filter((endpoint) => endpoint.state === state).length).toSatisfy(often);
    }
    expect(endpoints.filter(({ nodeName }) => nodeName === thisNode).length).toSatisfy(often);
    expect(
      endpoints.filter(({ zoneHints, nodeHints }) => zoneHints.length + nodeHints.length > 0).length,
    ).toSatisfy(often);
    expect(ports.filter((port) => port.affinity !== null).length).toSatisfy(often);
    expect(ports.filter((port) => port.externalPolicy === "local").length).toSatisfy(often);
    expect(ports.filter((port) => port.internalPolicy === "local").length).toSatisfy(often);
    expect(ports.filter((port) => port.sourceRanges.length > 0).length).toSatisfy(often);
    expect(ports.filter((port) => port.loadBalancerIPs.length > 0).length).toSatisfy(often);
    expect(ports.filter((port) => port.protocol === "udp").length).toSatisfy(often);
  });
});

function portsOf(objects: Objects): readonly ServicePort[] {
  const cluster = new Cluster(thisNode);
  for (const kind of kinds) cluster.replace(kind, objects[kind]);
  const { ipv4, ipv6 } = cluster.take();
  return [...ipv4.ports.values(), ...ipv6.ports.values()];
}
