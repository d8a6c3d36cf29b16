// This node's address in each family, and which family comes first.
import { type Address, type Family, familyOf, isLoopback, parseAddress } from "../../model/address.ts";

export type NodeIPs = {
  readonly primary: Family;
  /** A loopback address when unknown. */
  readonly addresses: Readonly<Record<Family, Address>>;
};

/** `raw` are the addresses of the Node object, first one first; a specific bind address wins over them. */
export function chooseNodeIPs(raw: readonly Address[], bindAddress: string): NodeIPs {
  const bound = parseAddress(bindAddress);
  const specific = bound === null || bound === "0.0.0.0" || bound === "::" ? [] : [bound];
  const addresses: Record<Family, Address> = { ipv4: "127.0.0.1", ipv6: "::1" };
  for (const address of [...raw.toReversed(), ...specific]) addresses[familyOf(address)] = address;
  const first = specific[0] ?? raw[0];
  return { primary: first === undefined ? "ipv4" : familyOf(first), addresses };
}

/** Whether the primary address is unknown, which is worth a line in the log. */
export function isNodeIPUnknown({ primary, addresses }: NodeIPs): boolean {
  return isLoopback(addresses[primary]);
}
