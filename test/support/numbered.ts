// Many equal Services, by number: for large clusters in tests and benchmarks.
import type { Endpoint, ServicePort } from "../../src/model/snapshot.ts";
import { endpoint, ipv4Settings, servicePort } from "./routed.ts";

/** NodePorts answer on one address of this node. */
export const oneAddressSettings = {
  ...ipv4Settings,
  localAddresses: ["192.168.0.2"],
  nodePortAddresses: { kind: "some", cidrs: ["192.168.0.2/32"] },
  localhostNodePorts: false,
} as const;

/** Service `shop/s<i>` with this many endpoints; its port has a name if one is passed. */
export function numberedService(i: number, endpoints: number, portName = ""): ServicePort {
  return servicePort(`shop/s${i}${portName === "" ? "" : `:${portName}`}`, {
    clusterIP: `172.30.${i >> 8}.${i & 255}`,
    endpoints: Array.from({ length: endpoints }, (_, j) => numberedEndpoint(i, j)),
  });
}

/** The first one is on this node. */
export function numberedEndpoint(i: number, j: number): Endpoint {
  return endpoint(`10.${i >> 8}.${i & 255}.${j + 1}:8080`, { nodeName: j === 0 ? "node-a" : "node-b" });
}
