// Clients that the kernel keeps for each endpoint of a Service with session affinity.
import { readClients } from "../../../host/nftables/clients.ts";
import { endpointKey, type ServicePort } from "../../../model/snapshot.ts";
import { nftFamilyOf } from "../../../plan/nftables/types.ts";
import type { Netns, Pinned } from "../../mode.ts";
import { endpointName } from "../names.ts";

export async function nftablesPinned(
  port: ServicePort,
  at: Netns,
  signal: AbortSignal,
): Promise<readonly Pinned[]> {
  const pinned: Pinned[] = [];
  for (const endpoint of port.endpoints) {
    const set = endpointName("affinity", port, endpoint);
    const clients = await readClients(nftFamilyOf(port.family), set, at, signal);
    if (clients.length === 0) continue;
    pinned.push({
      endpoint: endpointKey(endpoint),
      set,
      clients: clients.map(({ address, milliseconds }) => ({
        address,
        seconds: Math.round(milliseconds / 1000),
      })),
    });
  }
  return pinned;
}
