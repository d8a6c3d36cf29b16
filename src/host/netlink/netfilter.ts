// The header that nf_tables and conntrack messages share, and their address families.
import { type Codec, u32be } from "./attributes.ts";
import { beginMessage } from "./message.ts";
import type { Writer } from "./writer.ts";

export type NfFamily = "inet" | "ip" | "arp" | "netdev" | "bridge" | "ip6";

const familyNumbers: Readonly<Record<NfFamily, number>> = {
  inet: 1,
  ip: 2,
  arp: 3,
  netdev: 5,
  bridge: 7,
  ip6: 10,
};
const familyNames = new Map(Object.entries(familyNumbers).map(([name, n]) => [n, name as NfFamily]));

export const subsystem = { conntrack: 1, nftables: 10 } as const;

export const netfilterHeaderLength = 4;

export const nfFamily: Codec<NfFamily> = {
  write: (out, family) => out.u32be(familyNumbers[family]),
  read: (from, start, end) => familyNames.get(u32be.read(from, start, end) ?? -1),
};

/** Opens a message; `family` null requests all. */
export function beginNetfilter(
  out: Writer,
  type: number,
  flags: number,
  sequence: number,
  family: NfFamily | null,
  resource = 0,
): number {
  const at = beginMessage(out, type, flags, sequence);
  out.u8(family === null ? 0 : familyNumbers[family]);
  out.u8(0);
  out.u16be(resource);
  return at;
}

/** The family in a received header; undefined for an unknown one. */
export function familyAt(buffer: Buffer, start: number): NfFamily | undefined {
  return familyNames.get(buffer.readUInt8(start));
}
