// Whether the kernel can do IPv6 at all.
import { readFileSync } from "node:fs";

/** Reads a file of the machine; throws when it cannot. */
export type ReadFile = (file: string) => string;

/** It exists and is not disabled; a setting that cannot be read counts as enabled, as in kube-proxy. */
export function kernelHasIPv6(readFile: ReadFile = (file) => readFileSync(file, "utf8")): boolean {
  if (attempt(readFile, "/proc/net/if_inet6") === null) return false;
  return attempt(readFile, "/proc/sys/net/ipv6/conf/all/disable_ipv6")?.trim() !== "1";
}

function attempt(readFile: ReadFile, file: string): string | null {
  try {
    return readFile(file);
  } catch {
    return null;
  }
}
