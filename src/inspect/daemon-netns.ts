// The network namespace of a daemon: the same as ours, one that we may enter, or one that needs nsenter.

import { readdirSync, readFileSync, readlinkSync, statSync } from "node:fs";
import { join } from "node:path";
import { networkNamespace, type Status } from "../observe/status/status.ts";
import { UsageError } from "./usage-error.ts";

/** Its path; absent when it is ours. Throws Mistake when it is another one that we cannot enter. */
export function daemonNetns({ pid, networkNamespace: its }: Status): { readonly netns?: string } {
  // Daemons of earlier versions do not report theirs.
  if (its === undefined || its === networkNamespace()) return {};
  const netns = pathOf(its, pid);
  if (netns !== null && maySetNamespace()) return { netns };
  const enter = netns === null ? `nsenter --target=${pid} --net` : `nsenter --net=${netns}`;
  throw new UsageError(
    `the daemon runs in another network namespace (${its}), which this process cannot enter; run: ${enter} turnout …`,
  );
}

/** By its process, or by name where that has another number here, as in a container. */
function pathOf(wanted: string, pid: number): string | null {
  const ofProcess = `/proc/${pid}/ns/net`;
  try {
    if (readlinkSync(ofProcess) === wanted) return ofProcess;
  } catch {
    // There is no such process here, or we may not inspect it.
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
