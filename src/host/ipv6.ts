// Whether the kernel can do IPv6 at all.
import { readFileSync } from "node:fs";

/** Reads a file of the machine; throws when it cannot. */
export type ReadFile = (file: string) => string;

/** It is there, and nobody switched it off; a switch that cannot be read is on, as for kube-proxy. */
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
