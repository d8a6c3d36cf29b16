// The two sockets of ipvs mode, and many requests at a time on each.
import { HostError } from "../error.ts";
import { resolveFamily } from "../netlink/generic.ts";
import { ipvsFamilyName } from "../netlink/ipvs.ts";
import { errnoName } from "../netlink/native.ts";
import { type NetlinkSocket, openSocket, type Place } from "../netlink/socket.ts";
import { Writer } from "../netlink/writer.ts";
import type { Applied, Failure, Numbered } from "./applied.ts";

export type Kernel = {
  readonly place: Place;
  /** Generic netlink, and the number IPVS has there. */
  readonly ipvs: NetlinkSocket;
  readonly ipvsFamily: number;
  readonly route: NetlinkSocket;
  close(): Promise<void>;
};

export async function openKernel(place: Place): Promise<Kernel> {
  const ipvs = await openSocket("generic", place);
  try {
    const { id } = await resolveFamily(ipvs, ipvsFamilyName);
    const route = await openSocket("route", place);
    const close = async () => void (await Promise.all([ipvs.close(), route.close()]));
    return { place, ipvs, ipvsFamily: id, route, close };
  } catch (error) {
    await ipvs.close();
    throw error;
  }
}

/** This many acknowledgements fit the receive buffer easily. */
const atOnce = 1000;

/**
 * Sends a message for each Operation, also after errors, and calls `explain` for each that the kernel
 * refuses: null means no failure.
 */
export async function sendAll<T>(
  socket: NetlinkSocket,
  operations: readonly Numbered<T>[],
  write: (out: Writer, sequence: number, operation: T) => void,
  explain: (numbered: Numbered<T>, errno: string) => string | null,
): Promise<Applied> {
  const failures: Failure[] = [];
  let bytes = 0;
  for (let start = 0; start < operations.length; start += atOnce) {
    const batch = operations.slice(start, start + atOnce);
    const out = new Writer();
    for (const [i, { operation }] of batch.entries()) write(out, i + 1, operation);
    const { answers } = await socket.exchange(out.bytes());
    if (answers.length !== batch.length) throw lost(batch.length, answers.length);
    for (const { sequence, errno } of answers) {
      if (errno === 0) continue;
      const numbered = batch[sequence - 1]!;
      const why = explain(numbered, errnoName(errno));
      if (why !== null) failures.push(failed(numbered, errnoName(errno), why));
    }
    bytes += out.length;
  }
  return { messages: operations.length, bytes, failures };
}

/** The name of the error, and what it means where that is known. */
export function failed({ at }: Numbered<unknown>, errno: string, meaning: string): Failure {
  return { operation: at, errno, reason: meaning === "" ? errno : `${meaning} (${errno})` };
}

function lost(sent: number, answered: number): HostError {
  return new HostError("lost", `Cannot apply ${sent} operations: the kernel answered ${answered} of them`);
}
