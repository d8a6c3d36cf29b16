// Limits of the machine and the process, and how much of each is used: read when a client asks.
import type { ProcessView } from "./metrics/process.ts";

export type LimitUse = {
  readonly name: "conntrack" | "memory" | "heap" | "open files";
  readonly unit: "entries" | "bytes" | "files";
  readonly used: number;
  /** null: there is none. */
  readonly limit: number | null;
};

/** From this share of a limit on, it needs attention; at the second it is nearly exhausted. */
export const fillingShare = 0.75;
export const fullShare = 0.95;

/** `120 of 262144 entries (0 %)`, `86 MiB of 128 MiB (67 %)`, `86 MiB, no limit`. */
export function limitText({ unit, used, limit }: Omit<LimitUse, "name">): string {
  const text = (value: number) => (unit === "bytes" ? `${Math.round(value / 2 ** 20)} MiB` : String(value));
  const noun = unit === "bytes" ? "" : ` ${unit}`;
  if (limit === null) return `${text(used)}${noun}, no limit`;
  return `${text(used)} of ${text(limit)}${noun} (${Math.floor((100 * used) / limit)} %)`;
}

/** What cannot be read on this machine is left out. */
export function readLimits(view: ProcessView): readonly LimitUse[] {
  return [
    attempt(() => conntrack(view)),
    attempt(() => memory(view)),
    attempt(() => heap(view)),
    attempt(() => files(view)),
  ].flatMap((found) => found ?? []);
}

function attempt(read: () => LimitUse): LimitUse | null {
  try {
    const found = read();
    return Number.isFinite(found.used) && (found.limit === null || found.limit > 0) ? found : null;
  } catch {
    return null;
  }
}

function conntrack({ readText }: ProcessView): LimitUse {
  const read = (name: string) => Number(readText(`/proc/sys/net/netfilter/nf_conntrack_${name}`));
  return { name: "conntrack", unit: "entries", used: read("count"), limit: read("max") };
}

function memory(view: ProcessView): LimitUse {
  return { name: "memory", unit: "bytes", used: view.residentBytes(), limit: cgroupLimit(view) };
}

/** That of the container or the service; null: none is set, or the machine has no cgroup version 2. */
function cgroupLimit({ readText }: ProcessView): number | null {
  try {
    const [, path = ""] = /^0::(.*)$/m.exec(readText("/proc/self/cgroup")) ?? [];
    const text = readText(`/sys/fs/cgroup${path === "/" ? "" : path}/memory.max`).trim();
    return text === "max" ? null : Number(text);
  } catch {
    return null;
  }
}

function heap(view: ProcessView): LimitUse {
  return { name: "heap", unit: "bytes", used: view.heapUsedBytes(), limit: view.heapLimitBytes() };
}

function files({ readText, countEntries }: ProcessView): LimitUse {
  const [, soft = ""] = /^Max open files\s+(\S+)/m.exec(readText("/proc/self/limits")) ?? [];
  const limit = soft === "unlimited" ? null : Number(soft);
  return { name: "open files", unit: "files", used: countEntries("/proc/self/fd"), limit };
}
