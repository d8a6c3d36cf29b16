// The keys of set elements: the only place that joins their parts and splits them again.
import {
  type Address,
  addressBytes,
  bytesAsWritten,
  type Cidr,
  contains,
  familyOf,
  formatAddress,
  networkAddress,
  prefixLength,
} from "../../model/address.ts";
import { flatText } from "../../model/flat-text.ts";
import type { Protocol } from "../../model/snapshot.ts";

/**
 * The parts of a key as nft lists them: `172.30.0.1 . tcp . 80`. Text, because it indexes a hundred thousand elements;
 * equal keys are equal strings. No part is empty or contains the separator.
 */
export type ElementKey = string;

const separator = " . ";

/** The element that matches every key no other one does. Turnout writes none, but another program may. */
export const catchAllKey: ElementKey = "*";

/** A key of no parts is empty: the slot map of a single pool has it. */
export function joinKey(parts: readonly string[]): ElementKey {
  return parts.join(separator);
}

/** The inverse of `joinKey`. */
export function splitKey(key: ElementKey): string[] {
  return key === "" ? [] : key.split(separator);
}

export function addressKey(address: Address, protocol: Protocol, port: number): ElementKey {
  return flatText(separator, address, protocol, port);
}

export function nodePortKey(protocol: Protocol, port: number): ElementKey {
  return `${protocol} . ${port}`;
}

/** A connection of an endpoint to itself. */
export function hairpinKey(address: Address, protocol: Protocol, port: number): ElementKey {
  return `${address} . ${address} . ${protocol} . ${port}`;
}

/** The whole key of one slot. */
export function slotKey(key: ElementKey, slot: number): ElementKey {
  return key === "" ? String(slot) : `${key} . ${slot}`;
}

/** One name for an element among all sets of a table. */
export function elementId(set: string, key: ElementKey): string {
  return `${set} ${key}`;
}

/** The key of a network in an interval set: nft leaves out a prefix that covers one address. */
export function networkKey(network: Cidr): ElementKey {
  return prefixLength(network) === addressBits(network) ? networkAddress(network) : network;
}

/** The key of a range in an interval set: that of a network where the range is one, else `first-last`. */
export function rangeKey(first: Address, last: Address): ElementKey {
  if (first === last) return first;
  const [a, b] = [bytesAsWritten(first)!, bytesAsWritten(last)!];
  let bits = 0;
  while (bits < a.length * 8 && bit(a, bits) === bit(b, bits)) bits++;
  for (let i = bits; i < a.length * 8; i++) if (bit(a, i) !== 0 || bit(b, i) !== 1) return `${first}-${last}`;
  return `${first}/${bits}`;
}

/** The inverse of `rangeKey`, also for what `networkKey` returns. */
export function rangeOf(key: ElementKey): { readonly first: Address; readonly last: Address } {
  if (key.includes("/")) return { first: networkAddress(key), last: lastAddress(key) };
  const dash = key.indexOf("-");
  return dash < 0 ? { first: key, last: key } : { first: key.slice(0, dash), last: key.slice(dash + 1) };
}

/** Whether a key of an interval set contains an address. */
export function isInRange(key: ElementKey, address: Address): boolean {
  if (key.includes("/")) return contains(key, address);
  const { first, last } = rangeOf(key);
  if (first === last) return first === address;
  const [a, b, at] = [bytesAsWritten(first), bytesAsWritten(last), addressBytes(address)];
  return a!.length === at!.length && Buffer.compare(a!, at!) <= 0 && Buffer.compare(at!, b!) <= 0;
}

function lastAddress(network: Cidr): Address {
  const bits = prefixLength(network);
  return formatAddress(
    addressBytes(networkAddress(network))!.map(
      (byte, i) => byte | (255 >> Math.min(8, Math.max(0, bits - 8 * i))),
    ),
  );
}

function addressBits(network: Cidr): number {
  return familyOf(network) === "ipv4" ? 32 : 128;
}

function bit(bytes: Uint8Array, index: number): number {
  return (bytes[index >> 3]! >> (7 - (index & 7))) & 1;
}
