// Links and addresses of the node over rtnetlink: read, followed, added and removed.
import { type Address, addressBytes, type Family } from "../../model/address.ts";
import { HostError } from "../error.ts";
import {
  attributes,
  type Codec,
  field,
  hostU32,
  optional,
  raw,
  text,
  u32,
  writeAttribute,
} from "./attributes.ts";
import { addressOf, type Bytes } from "./bytes.ts";
import { collect } from "./dump.ts";
import { listen } from "./listen.ts";
import { beginMessage, endMessage, flag, type Message } from "./message.ts";
import { type NetlinkSocket, type Place, sendRequest } from "./socket.ts";
import { Writer } from "./writer.ts";

export type Link = {
  readonly index: number;
  readonly name: string;
  /** `dummy`, `bridge`, `veth`, …; empty for a physical link. */
  readonly kind: string;
  readonly up: boolean;
  readonly loopback: boolean;
  readonly mtu: number;
};

export type LinkAddress = {
  readonly family: Family;
  readonly address: Address;
  readonly prefixLength: number;
  /** Index of the link that has it. */
  readonly link: number;
  readonly scope: "global" | "site" | "link" | "host" | "nowhere";
};

export type AddressListener = {
  readonly changed: (change: "added" | "removed", address: LinkAddress) => void;
  /** Events were dropped: read again. */
  readonly lost: () => void;
};

const type = {
  newLink: 16,
  delLink: 17,
  getLink: 18,
  newAddress: 20,
  delAddress: 21,
  getAddress: 22,
} as const;
const IPV4 = 2;
const IPV6 = 10;
const linkUp = 1;
const linkLoopback = 8;
const addressGroups = [5, 9];
const linkHeaderLength = 16;
const addressHeaderLength = 8;

const linkAttributes = attributes({
  mtu: optional(4, u32),
  name: optional(3, text),
  info: optional(18, attributes({ kind: optional(1, text) })),
});
const addressAttributes = attributes({ address: optional(1, raw), local: optional(2, raw) });

export function readLinks(place: Place = {}, signal?: AbortSignal): Promise<Link[]> {
  return collect("route", "read links", dumpRequest(type.getLink, linkHeaderLength), linkIn, place, signal);
}

export function readAddresses(place: Place = {}, signal?: AbortSignal): Promise<LinkAddress[]> {
  const request = dumpRequest(type.getAddress, addressHeaderLength);
  return collect("route", "read addresses", request, addressIn, place, signal);
}

/** Reports addresses that come and go until the signal is aborted. */
export function watchAddresses(
  listener: AddressListener,
  signal: AbortSignal,
  place: Place = {},
): Promise<void> {
  const visit = (from: Buffer, message: Message) => {
    if (message.type !== type.newAddress && message.type !== type.delAddress) return;
    const address = addressIn(from, message);
    if (address !== undefined)
      listener.changed(message.type === type.newAddress ? "added" : "removed", address);
  };
  return listen("route", addressGroups, { visit, lost: listener.lost }, signal, place);
}

/** The link of this name; null when there is none. */
export async function findLink(
  socket: NetlinkSocket,
  name: string,
  signal?: AbortSignal,
): Promise<Link | null> {
  const request = linkRequest(type.getLink, 0, 0, (out) => writeAttribute(out, 3, text, name));
  let link: Link | null = null;
  try {
    await sendRequest(socket, `find link ${name}`, request, signal, (from, message) => {
      link = linkIn(from, message) ?? null;
    });
  } catch (error) {
    if (!(error instanceof HostError) || error.errno !== "ENODEV") throw error;
  }
  return link;
}

/** Adds a link of a kind that needs no more than a name. */
export function addLink(
  socket: NetlinkSocket,
  name: string,
  kind: string,
  signal?: AbortSignal,
  state: "up" | "down" = "up",
): Promise<void> {
  const flags = state === "up" ? linkUp : 0;
  const request = linkRequest(type.newLink, flag.create | flag.exclusive, flags, (out) => {
    writeAttribute(out, 3, text, name);
    writeAttribute(out, 18, newLinkInfo, { kind });
  });
  return sendRequest(socket, `add ${kind} link ${name}`, request, signal);
}

export function setLinkUp(socket: NetlinkSocket, name: string, signal?: AbortSignal): Promise<void> {
  const request = linkRequest(type.newLink, 0, linkUp, (out) => writeAttribute(out, 3, text, name));
  return sendRequest(socket, `set link ${name} up`, request, signal);
}

export function deleteLink(socket: NetlinkSocket, name: string, signal?: AbortSignal): Promise<void> {
  const request = linkRequest(type.delLink, 0, 0, (out) => writeAttribute(out, 3, text, name));
  return sendRequest(socket, `delete link ${name}`, request, signal);
}

export type AddressRequest = Pick<LinkAddress, "family" | "address" | "prefixLength" | "link">;

export function addAddress(
  socket: NetlinkSocket,
  wanted: AddressRequest,
  signal?: AbortSignal,
): Promise<void> {
  const out = new Writer(256);
  writeAddress(out, 1, "add", wanted);
  return sendRequest(socket, `add address ${wanted.address}`, out.bytes(), signal);
}

export function deleteAddress(
  socket: NetlinkSocket,
  unwanted: AddressRequest,
  signal?: AbortSignal,
): Promise<void> {
  const out = new Writer(256);
  writeAddress(out, 1, "delete", unwanted);
  return sendRequest(socket, `delete address ${unwanted.address}`, out.bytes(), signal);
}

/** One message; several can be sent in one write. */
export function writeAddress(
  out: Writer,
  sequence: number,
  verb: "add" | "delete",
  { family, address, prefixLength, link }: AddressRequest,
): void {
  const messageType = verb === "add" ? type.newAddress : type.delAddress;
  const flags = verb === "add" ? flag.create | flag.exclusive : 0;
  const at = beginMessage(out, messageType, flag.request | flag.acknowledge | flags, sequence);
  out.u8(family === "ipv4" ? IPV4 : IPV6);
  out.u8(prefixLength);
  out.u16(0);
  out.u32(link);
  for (const attribute of [2, 1]) {
    const value = out.begin(attribute);
    out.append(addressBytes(address)!);
    out.end(value);
  }
  endMessage(out, at);
}

const newLinkInfo: Codec<{ readonly kind: string }> = attributes({ kind: field(1, text) });

function linkIn(from: Buffer, { start, end }: Message): Link | undefined {
  const found = linkAttributes.read(from, start + linkHeaderLength, end);
  if (found?.name === undefined) return undefined;
  const flags = hostU32(from, start + 8);
  return {
    index: hostU32(from, start + 4),
    name: found.name,
    kind: found.info?.kind ?? "",
    up: (flags & linkUp) !== 0,
    loopback: (flags & linkLoopback) !== 0,
    mtu: found.mtu ?? 0,
  };
}

function addressIn(from: Buffer, { start, end }: Message): LinkAddress | undefined {
  const family = from.readUInt8(start);
  const found = addressAttributes.read(from, start + addressHeaderLength, end);
  // On a point-to-point link `address` is the other end; IPv6 has no `local`.
  const address: Bytes | undefined = found?.local ?? found?.address;
  if (address === undefined || (family !== IPV4 && family !== IPV6)) return undefined;
  return {
    family: family === IPV4 ? "ipv4" : "ipv6",
    address: addressOf(address),
    prefixLength: from.readUInt8(start + 1),
    link: hostU32(from, start + 4),
    scope: scopeOf(from.readUInt8(start + 3)),
  };
}

function scopeOf(number: number): LinkAddress["scope"] {
  if (number < 200) return "global";
  if (number < 253) return "site";
  return number === 253 ? "link" : number === 254 ? "host" : "nowhere";
}

function dumpRequest(messageType: number, headerLength: number): Uint8Array {
  const out = new Writer(64);
  const at = beginMessage(out, messageType, flag.request | flag.dump, 1);
  out.zeros(headerLength);
  endMessage(out, at);
  return out.bytes();
}

function linkRequest(
  messageType: number,
  flags: number,
  linkFlags: number,
  write: (out: Writer) => void,
): Uint8Array {
  const out = new Writer(256);
  const at = beginMessage(out, messageType, flag.request | flag.acknowledge | flags, 1);
  out.zeros(8);
  out.u32(linkFlags);
  out.u32(linkFlags);
  write(out);
  endMessage(out, at);
  return out.bytes();
}
