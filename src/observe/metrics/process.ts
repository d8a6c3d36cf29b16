// `process_*` as Prometheus' Go client reports them, read from /proc when they are scraped.
import type { Metrics } from "./metrics.ts";

/** What is read of the machine; each throws when it cannot. */
export type ProcessView = {
  readonly readText: (path: string) => string;
  readonly countEntries: (directory: string) => number;
  /** Seconds of CPU time, user and system. */
  readonly cpuSeconds: () => number;
  readonly residentBytes: () => number;
  readonly heapUsedBytes: () => number;
  readonly heapLimitBytes: () => number;
};

/** Linux counts in these on every platform Node.js runs on. */
const ticksPerSecond = 100;

export function reportProcess(metrics: Metrics, view: ProcessView): void {
  const limits = () => view.readText("/proc/self/limits");
  const started = startTime(view);
  metrics.cpu.from(() => one(view.cpuSeconds()));
  metrics.residentMemory.from(() => one(view.residentBytes()));
  metrics.heapUsed.from(() => one(view.heapUsedBytes()));
  metrics.startTime.from(() => (started === null ? [] : one(started)));
  metrics.openFds.from(() => one(view.countEntries("/proc/self/fd")));
  metrics.maxFds.from(() => one(limit(limits(), "Max open files")));
  metrics.virtualMemory.from(() => one(Number(statFields(view.readText("/proc/self/stat"))[20])));
  metrics.virtualMemoryMax.from(() => one(limit(limits(), "Max address space")));
  metrics.networkReceived.from(() => one(netstat(view, "InOctets")));
  metrics.networkSent.from(() => one(netstat(view, "OutOctets")));
}

/** Unix time in seconds at which the process started; null when /proc does not have it. */
export function startTime(view: Pick<ProcessView, "readText">): number | null {
  try {
    const boot = /^btime ([0-9]+)$/m.exec(view.readText("/proc/stat"));
    const ticks = Number(statFields(view.readText("/proc/self/stat"))[19]);
    return boot === null ? null : Number(boot[1]) + ticks / ticksPerSecond;
  } catch {
    return null;
  }
}

function one(value: number) {
  if (Number.isNaN(value)) throw new Error("not a number");
  return [{ labels: {}, value }];
}

/** Fields of /proc/self/stat after the command, which is in parentheses and may contain anything. */
function statFields(stat: string): readonly string[] {
  return stat.slice(stat.lastIndexOf(")") + 2).split(" ");
}

/** The soft limit; the Go client shows -1 as the largest unsigned number, which is less clear. */
function limit(limits: string, name: string): number {
  const line = limits.split("\n").find((text) => text.startsWith(name)) ?? "";
  const soft = /^\s*(\S+)/.exec(line.slice(name.length))?.[1];
  return soft === "unlimited" ? -1 : Number(soft);
}

function netstat(view: ProcessView, field: string): number {
  const [names = "", values = ""] = view
    .readText("/proc/self/net/netstat")
    .split("\n")
    .filter((line) => line.startsWith("IpExt:"));
  return Number(values.split(" ")[names.split(" ").indexOf(field)]);
}
