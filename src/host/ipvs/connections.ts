// Reads how many connections virtual servers have scheduled, and to which real servers: what `ipvsadm --stats` prints.
import { type Family, familyOf } from "../../model/address.ts";
import { destinationKey, serverKey } from "../../plan/ipvs/names.ts";
import type { DestinationKey, ServerConnections, ServerId, ServerKey } from "../../plan/ipvs/types.ts";
import { HostError } from "../error.ts";
import { collect } from "../netlink/dump.ts";
import { type DestinationMessage, readContents, type ServiceMessage } from "../netlink/ipvs.ts";
import { type Message, messageType } from "../netlink/message.ts";
import { refused, sendRequest } from "../netlink/socket.ts";
import { heldDestinationOf, serverOf, serviceKey } from "./codec.ts";
import type { Kernel } from "./kernel.ts";
import { request } from "./read.ts";

/** Of all virtual servers of a family, by one dump; with `destinations`, and one more for each of them. */
export async function readConnections(
  kernel: Kernel,
  family: Family,
  destinations: boolean,
  signal?: AbortSignal,
): Promise<ReadonlyMap<ServerKey, ServerConnections>> {
  const listed = await collect(
    "generic",
    "read the statistics of virtual servers",
    request(kernel, "getService", "dump"),
    (from, message) => {
      const service = readContents(from, message)?.service;
      const server = service === undefined ? null : serverOf(service);
      return server === null ? undefined : { server, connections: countOf(service!) };
    },
    kernel.place,
    signal,
  );
  const found = new Map<ServerKey, ServerConnections>();
  for (const { server, connections } of listed) {
    if (familyOf(server.address) !== family) continue;
    const inside = destinations ? await destinationsOf(kernel, server, signal) : null;
    found.set(serverKey(server), { connections, destinations: inside });
  }
  return found;
}

/** null: there is no such server. */
export async function readConnectionsOf(
  kernel: Kernel,
  server: ServerId,
  signal?: AbortSignal,
): Promise<number | null> {
  const question = request(kernel, "getService", "acknowledged", { service: serviceKey(server) });
  let connections: number | null = null;
  const visit = (from: Buffer, message: Message) => {
    if (message.type <= messageType.overrun) return;
    const service = readContents(from, message)?.service;
    if (service !== undefined) connections = countOf(service);
  };
  try {
    await sendRequest(kernel.ipvs, `read the statistics of ${serverKey(server)}`, question, signal, visit);
    return connections;
  } catch (error) {
    if (error instanceof HostError && error.errno === "ESRCH") return null;
    throw error;
  }
}

async function destinationsOf(
  kernel: Kernel,
  server: ServerId,
  signal?: AbortSignal,
): Promise<ReadonlyMap<DestinationKey, number>> {
  const family = familyOf(server.address);
  const found = new Map<DestinationKey, number>();
  const dump = request(kernel, "getDestination", "dump", { service: serviceKey(server) });
  const { answers } = await kernel.ipvs.exchange(dump, signal, (from, message) => {
    if (message.type <= messageType.overrun) return;
    const read = readContents(from, message)?.destination;
    if (read !== undefined) found.set(destinationKey(heldDestinationOf(read, family)), countOf(read));
  });
  const refusal = answers.find(({ errno }) => errno !== 0);
  if (refusal !== undefined) throw refused(`read the statistics of ${serverKey(server)}`, refusal);
  return found;
}

/** Before Linux 4.1 there are only numbers of 32 bits. */
function countOf({
  statistics,
  statistics64,
}: Pick<ServiceMessage & DestinationMessage, "statistics" | "statistics64">): number {
  return Number(statistics64?.connections ?? statistics?.connections ?? 0);
}
