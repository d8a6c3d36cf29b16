// Which families this machine can serve with iptables.
import { type Family, families } from "../../model/address.ts";
import { kernelHasIPv6, type ReadFile } from "../ipv6.ts";
import { programs, run, type Start, waitForLock } from "./command.ts";

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
  if (family === "ipv6" && !kernelHasIPv6(readFile)) return "IPv6 is off in this kernel";
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
