// Sets kernel settings below /proc/sys and /sys, and this process's OOM score.

import { accessSync, constants, readFileSync, statSync, writeFileSync } from "node:fs";
import type { SysctlChange, SysctlTarget } from "../model/sysctl.ts";
import { HostError } from "./error.ts";

/** Files of the machine; both throw when they cannot. */
export type SettingFiles = {
  readonly read: (file: string) => string;
  readonly write: (file: string, text: string) => void;
};

export const systemFiles: SettingFiles = {
  read: (file) => readFileSync(file, "utf8"),
  write: (file, text) => writeFileSync(file, text),
};

/** Whether the kernel lets no process write it, including root. */
export function isReadOnly(file: string): boolean {
  return ((statSync(file, { throwIfNoEntry: false })?.mode ?? 0o200) & 0o222) === 0;
}

/** Applies in order and throws at the first refusal. */
export function applySysctls(targets: readonly SysctlTarget[], files: SettingFiles): SysctlChange[] {
  const changes: SysctlChange[] = [];
  for (const target of targets) {
    const from = isDue(target, files);
    if (from !== "no") changes.push(write(target, from, files));
  }
  return changes;
}

/** Targets that differ and may not be written, as in a container with a read-only /proc/sys. Changes nothing. */
export function unwritableSysctls(
  targets: readonly SysctlTarget[],
  read: SettingFiles["read"] = systemFiles.read,
  mayWrite: (file: string) => boolean = mayWriteFile,
): readonly SysctlTarget[] {
  return targets.filter(({ file, value, when }) => {
    const current = currentValue(() => read(file));
    const isMet = current !== null && (when === "differs" ? current === value : current >= value);
    return !isMet && !mayWrite(file);
  });
}

/** A file that does not exist may come with its kernel module: it counts as writable. */
function mayWriteFile(file: string): boolean {
  try {
    accessSync(file, constants.W_OK);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "ENOENT";
  }
}

/** The current value if the target must be written (null: unreadable), else "no". */
function isDue({ file, value, when }: SysctlTarget, files: SettingFiles): number | null | "no" {
  switch (when) {
    case "differs": {
      // A file that cannot be read may still be writable.
      const current = currentValue(() => files.read(file));
      return current === value ? "no" : current;
    }
    case "below": {
      const current = readOrThrow(file, files);
      return current < value ? current : "no";
    }
  }
}

function write(target: SysctlTarget, from: number | null, files: SettingFiles): SysctlChange {
  const { file, value, reason: why } = target;
  try {
    files.write(file, String(value));
    return { file, from, to: value, ...(why === undefined ? {} : { reason: why }) };
  } catch (cause) {
    throw new HostError("refused", `Cannot set ${file} to ${value}: ${reason(cause)}`, { cause });
  }
}

function readOrThrow(file: string, files: SettingFiles): number {
  try {
    return Number(files.read(file).trim());
  } catch (cause) {
    throw new HostError("unavailable", `Cannot read ${file}: ${reason(cause)}`, { cause });
  }
}

function currentValue(read: () => string): number | null {
  try {
    return Number(read().trim());
  } catch {
    return null;
  }
}

const oomFile = "/proc/self/oom_score_adj";
const oomAttempts = 2;
const oomPauseMs = 100;

/** Tries twice; a refusal is returned as a value, since the proxy works without. */
export async function setOomScore(
  score: number,
  files: SettingFiles,
  pause: (ms: number) => Promise<void>,
): Promise<HostError | null> {
  for (let attempt = 1; ; attempt++) {
    try {
      files.write(oomFile, String(score));
      return null;
    } catch (cause) {
      if (attempt === oomAttempts) {
        return new HostError("refused", `Cannot set ${oomFile} to ${score}: ${reason(cause)}`, { cause });
      }
      await pause(oomPauseMs);
    }
  }
}

function reason(cause: unknown): string {
  return cause instanceof Error ? cause.message : "unknown";
}

export const tcpLiberalFile = "/proc/sys/net/netfilter/nf_conntrack_tcp_be_liberal";

/** Any value but 0 counts; what cannot be read, and is empty then, does not. */
export function isTcpLiberal(read: (file: string) => string = readSysctl): boolean {
  return !["", "0"].includes(read(tcpLiberalFile));
}

/** Empty when it cannot be read. */
export function readSysctl(file: string): string {
  try {
    return systemFiles.read(file).trim();
  } catch {
    return "";
  }
}
