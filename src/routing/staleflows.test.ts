// Which UDP flows are stale: every row of the model's table of flows.
import { describe, expect, it } from "vitest";
import { endpoint, ipv4Settings, ipv6Settings, routed, servicePort } from "../../test/support/routed.ts";
import type { ServicePort } from "../model/snapshot.ts";
import { isStale, type UdpFlow } from "./staleflows.ts";

describe("a tracked UDP flow", () => {
  it("04/34 10/58 11/56 is stale when its endpoint was removed, and kept when another one answers", () => {
    expect(judged(dns({ endpoints: [endpoint("10.180.0.1:53")] }))).toEqual({
      "172.30.0.10:53 > 10.180.0.1:53": "kept",
      "172.30.0.10:53 > 10.180.0.2:53": "stale",
      "198.51.100.7:53 > 10.180.0.2:53": "stale",
      "192.168.99.5:53 > 10.180.0.2:53": "stale",
      "192.168.0.2:30053 > 10.180.0.2:53": "stale",
      "192.168.0.2:30053 > 10.180.0.1:53": "kept",
    });
  });

  it("04/35 stays with an endpoint that drains, as long as it serves", () => {
    const flow = flowOf("172.30.0.10:53 > 10.180.0.2:53");
    const at = (serving: boolean) =>
      routed([
        dns({
          endpoints: [endpoint("10.180.0.2:53", { state: serving ? "draining" : "unready", serving })],
        }),
      ]);
    expect([isStale(flow, at(true)), isStale(flow, at(false))]).toEqual([false, true]);
  });

  it("04/36 10/58 12/166 of a Service that lost all endpoints is stale at its addresses, and kept at its NodePort", () => {
    expect(judged(dns({ endpoints: [] }))).toEqual({
      "172.30.0.10:53 > 10.180.0.1:53": "stale",
      "172.30.0.10:53 > 10.180.0.2:53": "stale",
      "198.51.100.7:53 > 10.180.0.2:53": "stale",
      "192.168.99.5:53 > 10.180.0.2:53": "stale",
      "192.168.0.2:30053 > 10.180.0.2:53": "kept",
      "192.168.0.2:30053 > 10.180.0.1:53": "kept",
    });
  });

  it("04/39 is stale when its endpoint answers on another port now", () => {
    const routes = routed([dns({ endpoints: [endpoint("10.180.0.1:5353")] })]);
    expect(isStale(flowOf("172.30.0.10:53 > 10.180.0.1:53"), routes)).toBe(true);
    expect(isStale(flowOf("172.30.0.10:53 > 10.180.0.1:5353"), routes)).toBe(false);
  });

  it("is stale when it was not translated at all", () => {
    const routes = routed([dns({ endpoints: [endpoint("10.180.0.1:53")] })]);
    expect(isStale(flowOf("172.30.0.10:53 > 172.30.0.10:53"), routes)).toBe(true);
  });

  it("12/167 is kept when it goes to another port, to a deleted Service, or to the port number of a TCP port", () => {
    const routes = routed([dns({ endpoints: [] }), servicePort("shop/web", { clusterIP: "172.30.0.11" })]);
    for (const to of ["172.30.0.10:54", "172.30.0.99:53", "172.30.0.11:80"]) {
      expect(isStale(flowOf(`${to} > 10.180.0.1:53`), routes)).toBe(false);
    }
  });

  it("is kept at an external IP while those are not allowed", () => {
    const routes = routed([dns({ endpoints: [], nodePort: 0 })], {
      ...ipv4Settings,
      externalIPsAllowed: false,
    });
    expect(isStale(flowOf("192.168.99.5:53 > 10.180.0.1:53"), routes)).toBe(false);
  });

  it("is judged by endpoints of its own family", () => {
    const six = dns({
      family: "ipv6",
      clusterIP: "fd00:172:30::10",
      loadBalancerIPs: [],
      externalIPs: [],
      endpoints: [endpoint("[fd00:180::1]:53")],
    });
    const routes = routed([six], ipv6Settings);
    expect(isStale(flowOf("[fd00:172:30::10]:53 > [fd00:180::1]:53"), routes)).toBe(false);
    expect(isStale(flowOf("[fd00:172:30::10]:53 > [fd00:180::2]:53"), routes)).toBe(true);
  });
});

function dns(more: Partial<ServicePort>): ServicePort {
  return servicePort("kube-system/dns:dns", {
    protocol: "udp",
    port: 53,
    nodePort: 30053,
    loadBalancerIPs: ["198.51.100.7"],
    externalIPs: ["192.168.99.5"],
    ...more,
  });
}

/** The same six flows, each time. */
function judged(port: ServicePort): Record<string, string> {
  const flows = [
    "172.30.0.10:53 > 10.180.0.1:53",
    "172.30.0.10:53 > 10.180.0.2:53",
    "198.51.100.7:53 > 10.180.0.2:53",
    "192.168.99.5:53 > 10.180.0.2:53",
    "192.168.0.2:30053 > 10.180.0.2:53",
    "192.168.0.2:30053 > 10.180.0.1:53",
  ];
  const routes = routed([port]);
  return Object.fromEntries(flows.map((text) => [text, isStale(flowOf(text), routes) ? "stale" : "kept"]));
}

/** `destination > who answers`. */
function flowOf(text: string): UdpFlow {
  const [to, from] = text.split(" > ").map((place) => endpoint(place));
  return {
    destination: to!.address,
    destinationPort: to!.port,
    replySource: from!.address,
    replySourcePort: from!.port,
  };
}
