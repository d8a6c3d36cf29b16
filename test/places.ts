// The reference set-up of every scenario: all places with their addresses, in IPv4 and the corresponding IPv6.
import { type Address, type Family, familyOf, parseAddress } from "../src/model/address.ts";

/** Where packets can start: pods on this node, pods elsewhere, this node, another node, the outside. */
export type Place = "L1" | "L2" | "R1" | "R2" | "host" | "RN" | "X";

/** First address of each place, IPv4. */
export const places: Readonly<Record<Place, Address>> = {
  L1: "10.180.0.1",
  L2: "10.180.0.2",
  R1: "10.180.1.1",
  R2: "10.180.1.2",
  host: "192.168.0.2",
  RN: "192.168.0.3",
  X: "203.0.113.2",
};

/** Further outside clients; .130 is Xb, which source ranges leave out, the rest are for affinity. */
export const outsideAddresses: readonly Address[] = [
  places.X,
  "203.0.113.130",
  ...Array.from({ length: 16 }, (_, i) => `203.0.113.${16 + i}`),
];

/** Names of nodes in Node objects and EndpointSlices. */
export const nodeName = "node-a";
export const otherNodeName = "node-b";

export const gateway = "192.168.0.1";
export const secondNodeAddress = "192.168.1.2";

/** Load-balancer addresses that are also configured on this node. */
export const loadBalancerAddressesOnNode: readonly Address[] = [126, 132, 133, 142].map(
  (n) => `198.51.100.${n}`,
);

/** Every address of this node that scenarios may name, IPv4. */
export const nodeAddresses: readonly Address[] = [
  places.host,
  secondNodeAddress,
  podGateway(places.L1),
  podGateway(places.L2),
  ...loadBalancerAddressesOnNode,
  "127.0.0.1",
];

export const podNetwork = "10.180.0.0/16";
export const nodePodNetwork = "10.180.0.0/24";
export const otherNodePodNetwork = "10.180.1.0/24";
export const outsideNetwork = "203.0.113.0/24";
export const nodeNetwork = "192.168.0.0/24";
export const serviceNetwork = "172.30.0.0/16";

/** Networks of frontends; without a proxy the gateway rejects them as unreachable. */
export const frontendNetworks: readonly string[] = [serviceNetwork, "192.168.99.0/24", "198.51.100.0/24"];

/** Interfaces of pods on this node start with this. */
export const podInterfacePrefix = "veth";

/** The place with this source address; null when the set-up has none. */
export function placeOf(address: Address): Place | null {
  for (const [place, first] of Object.entries(places) as [Place, Address][]) {
    if (first === address || twin(first) === address) return place;
  }
  if (outsideAddresses.some((outside) => outside === address || twin(outside) === address)) return "X";
  if (nodeAddresses.some((own) => own === address || twin(own) === address)) return "host";
  return null;
}

/** Interface of this node on which packets of a place arrive; empty for its own. */
export function interfaceOf(place: Place): string {
  switch (place) {
    case "host":
      return "";
    case "L1":
    case "L2":
      return `${podInterfacePrefix}${place}`;
    case "R1":
    case "R2":
    case "RN":
    case "X":
      return "eth0";
  }
}

/** The pod's router: an address of its node on the link to that pod. */
export function podGateway(pod: Address): Address {
  return pod.replace(/\d+$/, (n) => String(250 + Number(n)));
}

/** The address or network in the given family: itself, or its twin. */
export function inFamily(text: string, family: Family): string {
  return familyOf(text) === family ? text : twin(text);
}

/**
 * The IPv6 address or network that plays the part of an IPv4 one. Decimal digits are kept as text, so that
 * 203.0.113.130 is easily known again in 2001:db8:113::130.
 */
export function twin(text: string): string {
  const [address, length] = text.split("/") as [string, string?];
  if (length !== undefined) return `${length === "0" ? "::" : twin(address)}/${twinLength(address, length)}`;
  const [a, b, c, d] = address.split(".") as [string, string, string, string];
  return parseAddress(twinText(`${a}.${b}`, c, d))!;
}

function twinText(start: string, c: string, d: string): string {
  switch (start) {
    case "10.180":
      return `fd00:180:0:${c}::${d}`;
    case "172.30":
      return `fd00:172:30::${d}`;
    case "192.168":
      return `2001:db8:${c}::${d}`;
    case "198.51":
      return `2001:db8:100::${d}`;
    case "203.0":
      return `2001:db8:113::${d}`;
    case "127.0":
      return "::1";
    default:
      throw new Error(`Cannot name the IPv6 twin of ${start}.${c}.${d}: not in the reference set-up`);
  }
}

function twinLength(address: string, length: string): number {
  if (address.startsWith("127.")) return 128;
  if (address.startsWith("172.30.") && length === "16") return 112;
  const lengths: Record<string, number> = { 0: 0, 16: 48, 24: 64, 25: 120, 32: 128 };
  const found = lengths[length];
  if (found === undefined) throw new Error(`Cannot name the IPv6 twin of ${address}/${length}`);
  return found;
}
