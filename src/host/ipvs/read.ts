// Reads virtual servers with their real servers, and changes what holds for all of them.
import { type Family, familyOf } from "../../model/address.ts";
import { destinationKey, serverKey } from "../../plan/ipvs/names.ts";
import type {
  DestinationKey,
  HeldDestination,
  HeldServer,
  ServerId,
  ServerKey,
} from "../../plan/ipvs/types.ts";
import { HostError } from "../error.ts";
import { collect } from "../netlink/dump.ts";
import { type Contents, readContents, writeRequest } from "../netlink/ipvs.ts";
import { messageType } from "../netlink/message.ts";
import { refused, sendRequest } from "../netlink/socket.ts";
import { Writer } from "../netlink/writer.ts";
import { heldDestinationOf, serverOf, serviceKey } from "./codec.ts";
import type { Kernel } from "./kernel.ts";

export async function readServers(
  kernel: Kernel,
  family: Family,
  signal?: AbortSignal,
): Promise<ReadonlyMap<ServerKey, HeldServer>> {
  const listed = await collect(
    "generic",
    "read virtual servers",
    request(kernel, "getService", "dump"),
    (from, message) => {
      const service = readContents(from, message)?.service;
      return service === undefined ? undefined : (serverOf(service) ?? undefined);
    },
    kernel.place,
    signal,
  );
  const servers = new Map<ServerKey, HeldServer>();
  for (const server of listed) {
    if (familyOf(server.address) !== family) continue;
    servers.set(serverKey(server), { ...server, destinations: await destinationsOf(kernel, server, signal) });
  }
  return servers;
}

/** Servers that are gone are missing in the answer. */
export async function readDestinations(
  kernel: Kernel,
  servers: readonly ServerId[],
  signal?: AbortSignal,
): Promise<ReadonlyMap<ServerKey, Destinations>> {
  const found = new Map<ServerKey, Destinations>();
  for (const server of servers) {
    const destinations = await destinationsOf(kernel, server, signal);
    // For a server that is gone the kernel returns an empty list without an error.
    if (destinations.size > 0 || (await exists(kernel, server, signal)))
      found.set(serverKey(server), destinations);
  }
  return found;
}

type Destinations = HeldServer["destinations"];

/** On the socket that is open: there is one such dump for each virtual server. */
async function destinationsOf(kernel: Kernel, server: ServerId, signal?: AbortSignal): Promise<Destinations> {
  const family = familyOf(server.address);
  const found = new Map<DestinationKey, HeldDestination>();
  const dump = request(kernel, "getDestination", "dump", { service: serviceKey(server) });
  const { answers } = await kernel.ipvs.exchange(dump, signal, (from, message) => {
    if (message.type <= messageType.overrun) return;
    const read = readContents(from, message)?.destination;
    if (read === undefined) return;
    const destination = heldDestinationOf(read, family);
    found.set(destinationKey(destination), destination);
  });
  const refusal = answers.find(({ errno }) => errno !== 0);
  if (refusal !== undefined) throw refused(`read real servers of ${serverKey(server)}`, refusal);
  return found;
}

async function exists(kernel: Kernel, server: ServerId, signal?: AbortSignal): Promise<boolean> {
  const question = request(kernel, "getService", "acknowledged", { service: serviceKey(server) });
  try {
    await sendRequest(kernel.ipvs, `find virtual server ${serverKey(server)}`, question, signal);
    return true;
  } catch (error) {
    if (error instanceof HostError && error.errno === "ESRCH") return false;
    throw error;
  }
}

/** How long a connection without packets is kept, in whole seconds; 0: as it is. */
export type Timeouts = { readonly tcp: number; readonly tcpFin: number; readonly udp: number };

export function changeTimeouts(
  { ipvs, ipvsFamily }: Kernel,
  { tcp, tcpFin, udp }: Timeouts,
  signal?: AbortSignal,
): Promise<void> {
  const out = new Writer(64);
  const contents = { tcpTimeout: tcp, tcpFinTimeout: tcpFin, udpTimeout: udp };
  writeRequest(out, ipvsFamily, 1, "setConfig", contents);
  return sendRequest(ipvs, `set the IPVS timeouts to ${tcp}, ${tcpFin} and ${udp} s`, out.bytes(), signal);
}

/** A question about servers; `contents` names one of them. */
export function request(
  { ipvsFamily }: Kernel,
  verb: "getService" | "getDestination",
  kind: "dump" | "acknowledged",
  contents?: Contents,
): Uint8Array {
  const out = new Writer(128);
  writeRequest(out, ipvsFamily, 1, verb, contents, kind);
  return out.bytes();
}
