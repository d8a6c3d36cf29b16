// Tables with an owner process: no other can change or flush them, and they persist after it exits.
import type { FoundTable, NftFamily } from "../../plan/nftables/types.ts";
import { tableName } from "../../plan/nftables/types.ts";
import { HostError } from "../error.ts";
import { type Table, tableFlag } from "../netlink/nftables.ts";
import type { NetlinkSocket } from "../netlink/socket.ts";
import { transact } from "../netlink/transaction.ts";

export const ownedFlags = tableFlag.owner | tableFlag.persist;

/** Whether a table can be owned and outlive us here (Linux 6.9 and later). */
export async function canOwn(socket: NetlinkSocket, family: NftFamily): Promise<boolean> {
  return (await tableRefusal(socket, family, ownedFlags)) === null;
}

/** Why the kernel refuses a table of this family; null: it accepts one. Changes nothing. */
export async function tableRefusal(
  socket: NetlinkSocket,
  family: NftFamily,
  flags = 0,
): Promise<string | null> {
  const name = `${tableName}-probe-${socket.portId}`;
  try {
    await transact(socket, [
      { kind: "addTable", table: { family, name, flags } },
      // There is none of this name: it makes the kernel undo the whole transaction.
      { kind: "deleteTable", table: { family, name: `${name}-absent` } },
    ]);
    return "it deletes what is not there";
  } catch (error) {
    if (!(error instanceof HostError) || error.refusals.length === 0) throw error;
    return error.refusals.find(({ operation }) => operation === 0)?.errno ?? null;
  }
}

/** The owner of a table, relative to the socket that would change it. */
export function ownershipOf(
  { flags, owner }: Pick<Table, "flags" | "owner">,
  portId: number,
): FoundTable["ownership"] {
  if ((flags & tableFlag.owner) !== 0) return owner === portId ? "ours" : "theirs";
  return (flags & tableFlag.persist) !== 0 ? "orphan" : "plain";
}
