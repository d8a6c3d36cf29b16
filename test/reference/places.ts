// Where things are in the generated clusters: the reference set-up of the conformance matrix, in both families.
import type { Family } from "../../src/model/address.ts";

export const nodeName = "node-a";
export const remoteNodeName = "node-b";
export const zones = ["east", "west"] as const;

/** One place an endpoint can be. */
export type Place = {
  readonly name: string;
  readonly node: string;
  readonly addresses: Record<Family, string>;
};

export const node: Place = {
  name: "node",
  node: nodeName,
  addresses: { ipv4: "192.168.0.2", ipv6: "2001:db8::2" },
};

export const localPods: readonly Place[] = [1, 2].map((n) => ({
  name: `local${n}`,
  node: nodeName,
  addresses: { ipv4: `10.180.0.${n}`, ipv6: `fd00:180:0:0::${n}` },
}));

export const remotePods: readonly Place[] = [1, 2].map((n) => ({
  name: `remote${n}`,
  node: remoteNodeName,
  addresses: { ipv4: `10.180.1.${n}`, ipv6: `fd00:180:0:1::${n}` },
}));

/** Where servers listen in every place, by protocol. */
export const serverPorts = { TCP: [8080, 8081], UDP: [8080, 8081], SCTP: [8080] } as const;

export const clusterCIDRs = "10.180.0.0/16,fd00:180::/48";
export const podCIDRs = ["10.180.0.0/24", "fd00:180::/64"] as const;
export const serviceCIDRs = ["172.30.0.0/16", "fd00:172:30::/112"] as const;

/** Addresses for Services, numbered from 1. The first 250 are inside the networks that the world routes. */
export const clusterIP = numbered(172, 30, 0, "fd00:172:30::");
export const externalIP = numbered(192, 168, 99, "2001:db8:99::");
export const loadBalancerIP = numbered(198, 51, 100, "2001:db8:100::");

/** Networks a Service may admit to its load-balancer addresses. */
export const sourceRanges: Record<Family, readonly string[]> = {
  ipv4: ["203.0.113.0/25", "203.0.113.128/25", "192.168.0.0/24", "10.180.0.0/16", "0.0.0.0/0"],
  ipv6: ["2001:db8:113::/64", "2001:db8::/64", "fd00:180::/48", "::/0"],
};

function numbered(a: number, b: number, c: number, ipv6: string): (family: Family, n: number) => string {
  return (family, n) =>
    family === "ipv4" ? `${a}.${b}.${c + Math.floor(n / 256)}.${n % 256}` : `${ipv6}${n.toString(16)}`;
}
