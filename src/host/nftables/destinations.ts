// The destinations of tracked connections that were translated: which Services are in use.
import type { Family } from "../../model/address.ts";
import type { Protocol } from "../../model/snapshot.ts";
import { addressKey, type ElementKey, nodePortKey } from "../../plan/nftables/key.ts";
import { readFlows } from "../netlink/conntrack.ts";
import type { Place } from "../netlink/socket.ts";
import { protocolNumbers } from "./expressions.ts";

/** The rules of the whole node wait for this: connections beyond it are not read. */
const mostFlows = 50_000;

/** Keys of the maps that lead to Services: `address . protocol . port`, and `protocol . port` for NodePorts. */
export async function destinationsInUse(
  family: Family,
  place: Place,
  signal?: AbortSignal,
): Promise<ReadonlySet<ElementKey>> {
  const found = new Set<ElementKey>();
  let flows = 0;
  const select: Parameters<typeof readFlows>[0]["select"] = (flow) => {
    flows++;
    const protocol = protocolNames.get(flow.protocol);
    const { destination } = flow;
    if (protocol === undefined || destination === flow.replySource) return false;
    found.add(addressKey(destination, protocol, flow.destinationPort));
    found.add(nodePortKey(protocol, flow.destinationPort));
    // One that is reported, so that the loop below can end.
    return flows > mostFlows;
  };
  for await (const _ of readFlows({ family, select }, place, signal)) break;
  return found;
}

const protocolNames = new Map<number, Protocol>(
  Object.entries(protocolNumbers).map(([name, number]) => [number, name as Protocol]),
);
