// Where things are in the generated clusters: the reference set-up, with the numbers that Services get.
import type { Family } from "../../src/model/address.ts";
import {
  inFamily,
  loadBalancerAddressesOnNode,
  nodeName,
  nodeNetwork,
  nodePodNetwork,
  otherNodeName,
  outsideAddresses,
  type Place,
  places,
  podNetwork,
  serviceNetwork,
  twin,
} from "../places.ts";

export const zones = ["east", "west"] as const;

/** One place an endpoint can be. */
export type EndpointPlace = { readonly place: Place; readonly node: string };

export const hostEndpoint: EndpointPlace = { place: "host", node: nodeName };
export const localPods: readonly EndpointPlace[] = (["L1", "L2"] as const).map((place) => ({
  place,
  node: nodeName,
}));
export const remotePods: readonly EndpointPlace[] = (["R1", "R2"] as const).map((place) => ({
  place,
  node: otherNodeName,
}));

export function addressOf(place: Place, family: Family): string {
  return inFamily(places[place], family);
}

/** Where servers listen in every place, by protocol. */
export const serverPorts = { TCP: [8080, 8081], UDP: [8080, 8081], SCTP: [8080] } as const;

export const clusterCIDRs = both(podNetwork).join(",");
export const podCIDRs = both(nodePodNetwork);
export const serviceCIDRs = both(serviceNetwork);

/** Addresses for Services, numbered from 1. The first 120 are inside the networks that the world routes. */
export const clusterIP = numbered(172, 30, 0);
export const externalIP = numbered(192, 168, 99);
export const loadBalancerIP = numbered(198, 51, 100);

/** Numbers of load-balancer addresses that the node itself has, as some load balancers require it. */
export const loadBalancerNumbersOnNode: readonly number[] = loadBalancerAddressesOnNode.map((address) =>
  Number(address.split(".")[3]),
);

/** Of the load-balancer address that several Services share. */
export const sharedLoadBalancerNumber = 110;

/** Networks a Service may admit to its load-balancer addresses; the first halves the outside. */
export const sourceRanges: Record<Family, readonly string[]> = (() => {
  const ipv4 = ["203.0.113.0/25", `${outsideAddresses[1]}/32`, nodeNetwork, podNetwork, "0.0.0.0/0"];
  return { ipv4, ipv6: ipv4.map(twin) };
})();

function both(network: string): readonly [string, string] {
  return [network, twin(network)];
}

function numbered(a: number, b: number, c: number): (family: Family, n: number) => string {
  const prefix = twin(`${a}.${b}.${c}.0`);
  return (family, n) =>
    family === "ipv4" ? `${a}.${b}.${c + Math.floor(n / 256)}.${n % 256}` : `${prefix}${n}`;
}
