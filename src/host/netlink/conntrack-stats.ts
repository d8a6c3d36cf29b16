// The kernel's counters of the conntrack table: how full it is, and what it refused or dropped since the start of the machine.
import { HostError } from "../error.ts";
import { attributes, optional, u32be } from "./attributes.ts";
import { collect } from "./dump.ts";
import { endMessage, flag, type Message, messageType } from "./message.ts";
import { beginNetfilter, netfilterHeaderLength, subsystem } from "./netfilter.ts";
import { type Place, sendRequest, withSocket } from "./socket.ts";
import { Writer } from "./writer.ts";

export type ConntrackStats = {
  readonly entries: number;
  /** null: kernels before 5.14 do not report it. */
  readonly maxEntries: number | null;
  /** New flows that found their tuple taken: the packet was dropped. */
  readonly insertFailed: number;
  /** New flows that found the table full and no entry to replace: the packet was dropped. */
  readonly drop: number;
  /** Entries that were removed to make room for new ones. */
  readonly earlyDrop: number;
};

const GET_STATS_CPU = (subsystem.conntrack << 8) | 4;
const GET_STATS = (subsystem.conntrack << 8) | 5;

const global = attributes({ entries: optional(1, u32be), maxEntries: optional(2, u32be) });
const perCpu = attributes({
  insertFailed: optional(9, u32be),
  drop: optional(10, u32be),
  earlyDrop: optional(11, u32be),
});

export async function readConntrackStats(place: Place = {}, signal?: AbortSignal): Promise<ConntrackStats> {
  const { entries = 0, maxEntries = null } = await readGlobal(place, signal);
  const task = "read the statistics of conntrack";
  const cpus = await collect(
    "netfilter",
    task,
    request(GET_STATS_CPU, flag.request | flag.dump),
    (from, { start, end }) => perCpu.read(from, start + netfilterHeaderLength, end),
    place,
    signal,
  );
  const sum = (name: keyof (typeof cpus)[number]) => cpus.reduce((all, cpu) => all + (cpu[name] ?? 0), 0);
  return {
    entries,
    maxEntries,
    insertFailed: sum("insertFailed"),
    drop: sum("drop"),
    earlyDrop: sum("earlyDrop"),
  };
}

async function readGlobal(
  place: Place,
  signal?: AbortSignal,
): Promise<{ readonly entries?: number; readonly maxEntries?: number }> {
  let found: { entries?: number; maxEntries?: number } = {};
  const visit = (from: Buffer, { type, start, end }: Message) => {
    if (type > messageType.overrun) found = global.read(from, start + netfilterHeaderLength, end) ?? {};
  };
  await withSocket("netfilter", place, (socket) =>
    sendRequest(
      socket,
      "read the size of conntrack",
      request(GET_STATS, flag.request | flag.acknowledge),
      signal,
      visit,
    ),
  ).catch(explained);
  return found;
}

function request(type: number, flags: number): Uint8Array {
  const out = new Writer(64);
  const at = beginNetfilter(out, type, flags, 1, null);
  endMessage(out, at);
  return out.bytes();
}

/** Without its module the kernel does not know the request at all. */
export function explained(error: unknown): never {
  if (!(error instanceof HostError)) throw error;
  if (error.errno === "EPERM")
    throw new HostError("unavailable", "Cannot read conntrack: permission denied", {
      cause: error,
      errno: error.errno,
    });
  if (error.errno !== "EINVAL" && error.errno !== "EOPNOTSUPP") throw error;
  throw new HostError(
    "unavailable",
    "Cannot read conntrack: the kernel has no nf_conntrack_netlink; load it with modprobe nf_conntrack_netlink",
    { cause: error, errno: error.errno },
  );
}
