// Which families this machine can serve with iptables.
import { type Family, families } from "../../model/address.ts";
import { programs, run, type Start, waitForLock } from "./command.ts";

/** Reads a file of the machine; throws when it cannot. */
export type ReadFile = (file: string) => string;

/** Whether a family can be served, and if not, why. */
export type Usable = { readonly family: Family; readonly reason: string | null };

export async function usableFamilies(
  start: Start,
  readFile: ReadFile,
  signal?: AbortSignal,
): Promise<Usable[]> {
  const answers = families.map(async (family) => ({
    family,
    reason: await reasonAgainst(family, start, readFile, signal),
  }));
  return Promise.all(answers);
}

async function reasonAgainst(
  family: Family,
  start: Start,
  readFile: ReadFile,
  signal?: AbortSignal,
): Promise<string | null> {
  if (family === "ipv6" && !hasIPv6(readFile)) return "IPv6 is off in this kernel";
  const { edit } = programs[family];
  try {
    const { code, stderr } = await run(
      start,
      edit,
      [...waitForLock, "-S", "POSTROUTING", "-t", "nat"],
      "",
      signal,
    );
    return code === 0 ? null : `${edit} exited with ${code}: ${stderr.trim()}`;
  } catch (error) {
    return (error as Error).message;
  }
}

function hasIPv6(readFile: ReadFile): boolean {
  try {
    readFile("/proc/net/if_inet6");
    return readFile("/proc/sys/net/ipv6/conf/all/disable_ipv6").trim() !== "1";
  } catch {
    return false;
  }
}
