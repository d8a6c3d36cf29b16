// The network namespace of a daemon: that of this process, one that it may enter, or one that requires nsenter.

import { readdirSync, readFileSync, readlinkSync, statSync } from "node:fs";
import { join } from "node:path";
import { networkNamespace, type Status } from "../observe/status/status.ts";
import { UsageError } from "./usage-error.ts";

/** Its path; absent when it is that of this process. Throws UsageError when this process cannot enter it. */
export function daemonNetns({ pid, networkNamespace: wanted }: Status): { readonly netns?: string } {
  // Daemons of earlier versions do not report it.
  if (wanted === undefined || wanted === networkNamespace()) return {};
  const netns = pathOf(wanted, pid);
  if (netns !== null && maySetNamespace()) return { netns };
  const enter = netns === null ? `nsenter --target=${pid} --net` : `nsenter --net=${netns}`;
  throw new UsageError(
    `the daemon runs in another network namespace (${wanted}), which this process cannot enter; run: ${enter} turnout …`,
  );
}

/** By process ID, else by name: in a container the process has another ID. */
function pathOf(wanted: string, pid: number): string | null {
  const ofProcess = `/proc/${pid}/ns/net`;
  try {
    if (readlinkSync(ofProcess) === wanted) return ofProcess;
  } catch {
    // No such process in this PID namespace, or no permission to inspect it.
  }
  const folder = "/run/netns";
  const names = readNames(folder).map((name) => join(folder, name));
  return names.find((path) => `net:[${statSync(path, { throwIfNoEntry: false })?.ino}]` === wanted) ?? null;
}

function readNames(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

/** CAP_SYS_ADMIN, which setns() requires. */
function maySetNamespace(): boolean {
  const [, effective = "0"] =
    /^CapEff:\s*([0-9a-f]+)$/m.exec(readFileSync("/proc/self/status", "utf8")) ?? [];
  return (BigInt(`0x${effective}`) & (1n << 21n)) !== 0n;
}
