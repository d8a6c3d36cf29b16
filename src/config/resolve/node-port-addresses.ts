// Where NodePorts answer: keywords become networks, and networks become a rule for each family.
import {
  type Address,
  type Cidr,
  containsCidr,
  type Family,
  familyOf,
  hostCidr,
  isLoopback,
  networkAddress,
  parseCidr,
  prefixLength,
} from "../../model/address.ts";
import type { NodePortAddresses } from "./settings.ts";

/** Networks in the order of the list. A node address that is a loopback address is not known, so it adds nothing. */
export function expandNodePortAddresses(
  items: readonly string[],
  nodeIPs: Readonly<Record<Family, Address>>,
): readonly Cidr[] {
  return items.flatMap((item) => {
    if (item === "primary") return [nodeIPs.ipv4, nodeIPs.ipv6].filter((ip) => !isLoopback(ip)).map(hostCidr);
    if (item === "localhost") return ["127.0.0.0/8", "::1/128"];
    if (item === "all") return ["0.0.0.0/0", "::/0"];
    return parseCidr(item.trim()) ?? [];
  });
}

/** A family without a network of its own accepts everything, even where the other one is restricted. */
export function nodePortAddressesOf(cidrs: readonly Cidr[], family: Family): NodePortAddresses {
  const own = cidrs.filter((cidr) => familyOf(cidr) === family);
  const all = own.length === 0 || own.some((cidr) => prefixLength(cidr) === 0);
  return all ? { kind: "all" } : { kind: "some", cidrs: own };
}

/** Whether 127.0.0.0/8 or a part of it is among the networks; networks after a zero network are ignored. */
export function includesIPv4Loopback(addresses: NodePortAddresses): boolean {
  if (addresses.kind === "all") return true;
  return addresses.cidrs.some(
    (cidr) => containsCidr("127.0.0.0/8", cidr) || containsCidr(cidr, "127.0.0.0/32"),
  );
}

/** Whether the family's networks name a loopback address; a zero network does not count, at any position. */
export function namesLoopback(cidrs: readonly Cidr[], family: Family): boolean {
  return cidrs.some((cidr) => familyOf(cidr) === family && isLoopback(networkAddress(cidr)));
}
