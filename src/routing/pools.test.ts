// Which endpoints may be chosen: every rule of the model about readiness, hints and policies.
import { describe, expect, it } from "vitest";
import { endpoint as anEndpoint, servicePort } from "../../test/support/routed.ts";
import { type Endpoint, endpointKey, type ServicePort } from "../model/snapshot.ts";
import { choosePools } from "./pools.ts";

const here = { nodeName: "node-a", zone: "a" };

describe("pools", () => {
  it("04/26 zone hints count when all ready endpoints carry one; an unready endpoint without hint does not matter", () => {
    const a = endpoint("10.0.1.1", { zoneHints: ["a"] });
    const b = endpoint("10.0.2.1", { zoneHints: ["b"] });
    const both = endpoint("10.0.2.2", { zoneHints: ["b", "a"] });
    const unready = endpoint("10.0.2.3", { state: "unready" });
    const bare = endpoint("10.0.2.4");
    expect(cluster(port([a, b, both, unready]))).toEqual(keys(a, both));
    expect(cluster(port([a, b, bare]))).toEqual(keys(a, b, bare));
  });

  it("04/27 a node without zone label uses all ready endpoints", () => {
    const endpoints = [
      endpoint("10.0.1.1", { zoneHints: ["a"] }),
      endpoint("10.0.2.1", { zoneHints: ["b"] }),
    ];
    expect(cluster(port(endpoints), { nodeName: "node-a", zone: "" })).toEqual(keys(...endpoints));
  });

  it("04/28 node hints beat zone hints, fall back to them, and then to all", () => {
    const mine = endpoint("10.0.1.1", { nodeHints: ["node-a"], zoneHints: ["a"] });
    const other = endpoint("10.0.2.1", { nodeHints: ["node-b"], zoneHints: ["b"] });
    const sameZone = endpoint("10.0.2.2", { nodeHints: ["node-b"], zoneHints: ["a"] });
    expect(cluster(port([mine, other, sameZone]))).toEqual(keys(mine));
    expect(cluster(port([other, sameZone]))).toEqual(keys(sameZone));
    expect(cluster(port([other]))).toEqual(keys(other));
    const withoutNodeHint = endpoint("10.0.2.3", { zoneHints: ["a"] });
    expect(cluster(port([mine, other, withoutNodeHint]))).toEqual(keys(mine, withoutNodeHint));
  });

  it("04/29 policy Local ignores hints", () => {
    const local = endpoint("10.0.1.1", { nodeName: "node-a", zoneHints: ["b"] });
    const remote = endpoint("10.0.2.1", { zoneHints: ["a"] });
    const pools = choosePools(external([local, remote]), here);
    expect(pools.local.endpoints.map(endpointKey)).toEqual(keys(local));
    expect(pools.cluster.endpoints.map(endpointKey)).toEqual(keys(remote));
  });

  it("04/30 without ready endpoints those serving while they terminate are used, hints or not", () => {
    const draining = [
      endpoint("10.0.1.1", { state: "draining", zoneHints: ["a"] }),
      endpoint("10.0.2.1", { state: "draining", zoneHints: ["b"] }),
    ];
    const pools = choosePools(port(draining), here);
    expect(pools.cluster.endpoints.map(endpointKey)).toEqual(keys(...draining));
    expect(pools.anyUsable).toBe(true);
    const gone = choosePools(port([endpoint("10.0.1.1", { state: "unready" })]), here);
    expect(gone).toMatchObject({ cluster: { endpoints: [] }, anyUsable: false });
  });

  it("04/31 internal policy Local with remote endpoints only: no endpoint here, but some elsewhere", () => {
    const pools = choosePools({ ...port([endpoint("10.0.2.1")]), internalPolicy: "local" }, here);
    expect(pools.local.endpoints).toEqual([]);
    expect(pools.cluster.endpoints).toEqual([]);
    expect(pools.anyUsable).toBe(true);
  });

  it("04/32 cluster and local fall back independently", () => {
    const remote = endpoint("10.0.2.1");
    const leaving = endpoint("10.0.1.1", { nodeName: "node-a", state: "draining" });
    const pools = choosePools(external([leaving, remote]), here);
    expect(pools.cluster.endpoints.map(endpointKey)).toEqual(keys(remote));
    expect(pools.local.endpoints.map(endpointKey)).toEqual(keys(leaving));
  });

  it("04/33 external policy Local without any external frontend needs no local endpoints", () => {
    const local = endpoint("10.0.1.1", { nodeName: "node-a" });
    const pools = choosePools({ ...port([local]), externalPolicy: "local" }, here);
    expect(pools.local).toEqual({ endpoints: [], because: "not needed by any frontend" });
  });

  it("gives the reason for these endpoints", () => {
    const ready = endpoint("10.0.1.1", { nodeName: "node-a" });
    expect(choosePools(port([ready]), here).cluster.because).toBe("all ready endpoints");
    expect(choosePools(port([]), here).cluster.because).toBe("the Service has no usable endpoint");
    expect(choosePools(external([endpoint("10.0.2.1")]), here).local.because).toBe(
      "no usable endpoint on this node",
    );
  });
});

function cluster(servicePort: ServicePort, place = here): string[] {
  return choosePools(servicePort, place).cluster.endpoints.map(endpointKey);
}

function keys(...endpoints: readonly Endpoint[]): string[] {
  return endpoints.map(endpointKey);
}

function endpoint(address: string, more: Partial<Endpoint> = {}): Endpoint {
  const serving = more.state !== "unready";
  return anEndpoint(`${address}:80`, { nodeName: "node-b", serving, ...more });
}

function external(endpoints: readonly Endpoint[]): ServicePort {
  return { ...port(endpoints), nodePort: 30080, externalPolicy: "local" };
}

function port(endpoints: readonly Endpoint[]): ServicePort {
  return { ...servicePort("shop/web"), endpoints };
}
