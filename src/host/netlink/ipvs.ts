// IPVS messages over generic netlink, as tables of fields: virtual servers, real servers, timeouts, statistics.
import {
  attributes,
  type Codec,
  field,
  hostU32,
  optional,
  raw,
  text,
  u8,
  u16,
  u16be,
  u32,
  u64,
  type Values,
} from "./attributes.ts";
import { beginGeneric, genericHeaderLength } from "./generic.ts";
import { endMessage, flag, type Message } from "./message.ts";
import type { Writer } from "./writer.ts";

export const ipvsFamilyName = "IPVS";
const version = 1;

/** What a request returns; `dump` returns everything of its kind. */
export const command = {
  newService: 1,
  setService: 2,
  delService: 3,
  getService: 4,
  newDestination: 5,
  setDestination: 6,
  delDestination: 7,
  getDestination: 8,
  setConfig: 12,
  getConfig: 13,
  getInfo: 15,
  flush: 17,
} as const;

export type Command = keyof typeof command;

/** New flags are `(old & ~mask) | (flags & mask)`; the kernel always adds `hashed`. */
type MaskedFlags = { readonly flags: number; readonly mask: number };

const maskedFlags: Codec<MaskedFlags> = {
  write(out, { flags, mask }) {
    out.u32(flags);
    out.u32(mask);
  },
  read: (from, start, end) =>
    end - start >= 8 ? { flags: hostU32(from, start), mask: hostU32(from, start + 4) } : undefined,
};

const counters = <Count>(count: Codec<Count>) =>
  attributes({
    connections: optional(1, count),
    packetsIn: optional(2, count),
    packetsOut: optional(3, count),
    bytesIn: optional(4, u64),
    bytesOut: optional(5, u64),
    connectionsPerSecond: optional(6, count),
    packetsInPerSecond: optional(7, count),
    packetsOutPerSecond: optional(8, count),
    bytesInPerSecond: optional(9, count),
    bytesOutPerSecond: optional(10, count),
  });

const serviceFields = {
  /** 2 or 10. */
  family: field(1, u16),
  /** IP protocol number; servers of a firewall mark have neither protocol nor address nor port. */
  protocol: optional(2, u16),
  /** 4 or 16 bytes; the kernel always sends 16. */
  address: optional(3, raw),
  port: optional(4, u16be),
  mark: optional(5, u32),
  scheduler: optional(6, text),
  flags: optional(7, maskedFlags),
  /** Seconds of persistence. */
  timeout: optional(8, u32),
  /** IPv4: the mask as it lies in memory; IPv6: the prefix length. */
  netmask: optional(9, u32),
  statistics: optional(10, counters(u32)),
  persistenceEngine: optional(11, text),
  statistics64: optional(12, counters(u64)),
};

const destinationFields = {
  address: field(1, raw),
  port: field(2, u16be),
  /** 0: masquerade. */
  forwarding: optional(3, u32),
  weight: optional(4, u32),
  upperThreshold: optional(5, u32),
  lowerThreshold: optional(6, u32),
  active: optional(7, u32),
  inactive: optional(8, u32),
  persistent: optional(9, u32),
  statistics: optional(10, counters(u32)),
  /** Absent before Linux 3.18: then it is the service's. */
  family: optional(11, u16),
  statistics64: optional(12, counters(u64)),
  tunnelType: optional(13, u8),
  tunnelPort: optional(14, u16be),
  tunnelFlags: optional(15, u16),
};

const contents = attributes({
  service: optional(1, attributes(serviceFields)),
  destination: optional(2, attributes(destinationFields)),
  /** In seconds; when set, 0 or absent leaves a timeout as it is. */
  tcpTimeout: optional(4, u32),
  tcpFinTimeout: optional(5, u32),
  udpTimeout: optional(6, u32),
});

/** Of an answer to `getInfo`, whose numbers mean something else. */
const information = attributes({ version: field(1, u32), connectionTableSize: field(2, u32) });

export type ServiceMessage = Values<typeof serviceFields>;
export type DestinationMessage = Values<typeof destinationFields>;
export type Contents = typeof contents extends Codec<infer T> ? T : never;
export type Information = typeof information extends Codec<infer T> ? T : never;

/** Writes a request for an acknowledgement or a dump. */
export function writeRequest(
  out: Writer,
  family: number,
  sequence: number,
  verb: Command,
  of: Contents = {},
  kind: "dump" | "acknowledged" = "acknowledged",
): void {
  const flags = flag.request | (kind === "dump" ? flag.dump : flag.acknowledge);
  const at = beginGeneric(out, family, flags, sequence, command[verb], version);
  contents.write(out, of);
  endMessage(out, at);
}

/** Undefined when the message holds something else. */
export function readContents(from: Buffer, { start, end }: Message): Contents | undefined {
  return contents.read(from, start + genericHeaderLength, end);
}

export function readInformation(from: Buffer, { start, end }: Message): Information | undefined {
  return information.read(from, start + genericHeaderLength, end);
}
