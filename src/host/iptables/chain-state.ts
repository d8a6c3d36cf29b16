// Whether a chain exists, without reading the rest of its table.
import type { Family } from "../../model/address.ts";
import type { ChainName, TableName } from "../../plan/iptables/types.ts";
import { programs, run, type Start, waitForLock } from "./command.ts";

export type ChainPlace = { readonly table: TableName; readonly name: ChainName };

/** Exit status 1 means that the chain is gone; any other status, such as for a held lock, means nothing. */
export async function chainState(
  { table, name }: ChainPlace,
  family: Family,
  start: Start,
  signal?: AbortSignal,
): Promise<"there" | "gone" | "unknown"> {
  const args = [...waitForLock, "-S", name, "-t", table];
  const end = await run(start, programs[family].edit, args, "", signal).catch(() => ({ code: null }));
  return end.code === 0 ? "there" : end.code === 1 ? "gone" : "unknown";
}
