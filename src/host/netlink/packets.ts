// What elements of nf_tables sets have counted, read by key.
import { HostError } from "../error.ts";
import { dumpedElements, type Element } from "./elements.ts";
import { flag } from "./message.ts";
import { errnoName } from "./native.ts";
import type { NfFamily } from "./netfilter.ts";
import { codecs } from "./nftables.ts";
import { copiedLists, elementRequest, getRequest } from "./ruleset.ts";
import { mustKnow, type NetlinkSocket, refused } from "./socket.ts";

/** Elements of one request: their answers fit the receive buffer, and other requests wait for less than a millisecond. */
const elementsPerRequest = 128;

/**
 * What the counter of each of these elements has counted; null where there is no such element or it has no counter. By key and
 * in slices: the kernel reads a set from its beginning for every part of a dump.
 */
export async function readPackets(
  socket: NetlinkSocket,
  family: NfFamily,
  {
    table,
    set,
    elements,
  }: { readonly table: string; readonly set: string; readonly elements: readonly Element[] },
  signal?: AbortSignal,
): Promise<(number | null)[]> {
  const packets: (number | null)[] = [];
  while (packets.length < elements.length) {
    const some = elements.slice(packets.length, packets.length + elementsPerRequest);
    const found: (number | null)[] = [];
    const request = elementRequest(family, { table, set }, some);
    const reply = await socket.exchange(request, signal, (from, message) => {
      for (const element of dumpedElements(copiedLists(from, message)).all())
        found.push(element.packets ?? null);
    });
    packets.push(...found);
    const refusal = reply.answers.find(({ errno }) => errno !== 0);
    if (refusal === undefined) {
      mustKnow(`read ${some.length} elements of ${set}`, reply);
      if (found.length < some.length) throw new HostError("lost", `Cannot read elements of ${set}: too few`);
    } else {
      // The kernel stops at the first key that it does not have.
      if (errnoName(refusal.errno) !== "ENOENT") throw refused(`read elements of ${set}`, refusal);
      if (found.length === 0 && !(await hasSet(socket, family, { table, name: set }, signal)))
        return elements.map((_, i) => packets[i] ?? null);
      packets.push(null);
    }
  }
  return packets;
}

async function hasSet(
  socket: NetlinkSocket,
  family: NfFamily,
  set: { readonly table: string; readonly name: string },
  signal: AbortSignal | undefined,
): Promise<boolean> {
  const { answers } = await socket.exchange(
    getRequest("getSet", flag.acknowledge, family, codecs.set, set),
    signal,
  );
  return answers.every(({ errno }) => errno === 0);
}
