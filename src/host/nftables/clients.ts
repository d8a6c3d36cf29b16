// The clients in a set that rules fill: those that are pinned to an endpoint by session affinity.
import type { Client, NftFamily } from "../../plan/nftables/types.ts";
import { tableName } from "../../plan/nftables/types.ts";
import { HostError } from "../error.ts";
import { readSetElements } from "../netlink/ruleset.ts";
import type { Place } from "../netlink/socket.ts";
import { decodeClients } from "./elements.ts";

/** Empty also when there is no such set. */
export async function readClients(
  family: NftFamily,
  set: string,
  place: Place,
  signal: AbortSignal,
): Promise<readonly Client[]> {
  try {
    const elements = await readSetElements(family, tableName, set, place, signal);
    return decodeClients(elements.all());
  } catch (error) {
    if (error instanceof HostError && error.errno === "ENOENT") return [];
    throw error;
  }
}
