// Converts virtual and real servers between the Plan's types and IPVS messages.
import { type Address, type Family, familyOf } from "../../model/address.ts";
import type { Protocol } from "../../model/snapshot.ts";
import {
  type Destination,
  type DestinationId,
  type HeldDestination,
  type ServerId,
  serverFlag,
  type VirtualServer,
} from "../../plan/ipvs/types.ts";
import { addressOf, addressText, type Bytes } from "../netlink/bytes.ts";
import type { DestinationMessage, ServiceMessage } from "../netlink/ipvs.ts";

/** `whole`: the kernel's netmask for a single client. */
const wires = {
  ipv4: { number: 2, length: 4, wholeNetmask: 0xffffffff },
  ipv6: { number: 10, length: 16, wholeNetmask: 128 },
} as const satisfies Record<Family, unknown>;

const protocolNumbers = { tcp: 6, udp: 17, sctp: 132 } as const satisfies Record<Protocol, number>;
const protocolNames = new Map<number, Protocol>(
  Object.entries(protocolNumbers).map(([name, number]) => [number, name as Protocol]),
);

const allFlags = 0xffffffff;
const masquerade = 0;

/** What names a virtual server. */
export function serviceKey({ address, port, protocol }: ServerId): ServiceMessage {
  return {
    family: wires[familyOf(address)].number,
    protocol: protocolNumbers[protocol],
    address: addressText(address),
    port,
  };
}

export function serviceOf(server: VirtualServer): ServiceMessage {
  return {
    ...serviceKey(server),
    scheduler: server.scheduler,
    flags: { flags: server.flags, mask: allFlags },
    timeout: server.timeoutSeconds,
    netmask: wires[familyOf(server.address)].wholeNetmask,
  };
}

/** Null for servers that answer to marks or to protocols that Services do not have. */
export function serverOf(message: ServiceMessage): VirtualServer | null {
  const family = familyNumbered(message.family);
  const protocol = protocolNames.get(message.protocol ?? 0);
  if (family === null || protocol === undefined || message.address === undefined) return null;
  return {
    address: addressIn(message.address, family),
    port: message.port ?? 0,
    protocol,
    scheduler: message.scheduler ?? "",
    flags: (message.flags?.flags ?? 0) & ~serverFlag.hashed,
    timeoutSeconds: message.timeout ?? 0,
  };
}

/** The family is always sent: without it the kernel takes the first bytes of an IPv6 address for an IPv4 one. */
export function destinationKeyOf({ address, port }: DestinationId): DestinationMessage {
  return { address: addressText(address), port, family: wires[familyOf(address)].number };
}

export function destinationOf(destination: Destination): DestinationMessage {
  return {
    ...destinationKeyOf(destination),
    forwarding: masquerade,
    weight: destination.weight,
    upperThreshold: 0,
    lowerThreshold: 0,
  };
}

export function heldDestinationOf(message: DestinationMessage, serverFamily: Family): HeldDestination {
  const family = familyNumbered(message.family ?? 0) ?? serverFamily;
  return {
    address: addressIn(message.address, family),
    port: message.port,
    weight: message.weight ?? 0,
    active: message.active ?? 0,
    inactive: message.inactive ?? 0,
  };
}

function familyNumbered(number: number): Family | null {
  if (number === wires.ipv4.number) return "ipv4";
  return number === wires.ipv6.number ? "ipv6" : null;
}

/** The kernel sends 16 bytes for IPv4 too. */
function addressIn(bytes: Bytes, family: Family): Address {
  return addressOf(bytes.slice(0, wires[family].length));
}
