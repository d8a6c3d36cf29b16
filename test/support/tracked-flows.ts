// Conntrack entries for unit tests: `udp 10.0.1.9:4000 > 172.30.0.10:53 > 10.180.0.1:53` with everything ordinary filled in.
import { type Family, familyOf } from "../../src/model/address.ts";
import { type Flow, type FlowView, viewOfFlow } from "../../src/model/flow.ts";

const protocols: Readonly<Record<string, number>> = { icmp: 1, tcp: 6, udp: 17, sctp: 132 };

/** Client, destination, and where answers come from: the destination itself when the last part is absent. */
export function trackedFlow(text: string, more: Partial<Flow> = {}): Flow {
  const [name, from, , to, , via = to] = text.split(" ") as string[];
  const [client, destination, answerer] = [from!, to!, via!].map(placeOf);
  const family: Family = familyOf(client!.address);
  return {
    family,
    protocol: protocols[name!]!,
    original: {
      source: client!.address,
      sourcePort: client!.port,
      destination: destination!.address,
      destinationPort: destination!.port,
    },
    reply: {
      source: answerer!.address,
      sourcePort: answerer!.port,
      destination: client!.address,
      destinationPort: client!.port,
    },
    // SEEN_REPLY, ASSURED and CONFIRMED.
    status: 0xe,
    state: name === "tcp" || name === "sctp" ? "ESTABLISHED" : null,
    timeout: 120,
    mark: 0,
    zone: 0,
    id: 1,
    counters: null,
    startedAt: null,
    ...more,
  };
}

export function trackedView(text: string, more: Partial<Flow> = {}): FlowView {
  return viewOfFlow(trackedFlow(text, more));
}

function placeOf(text: string): { address: string; port: number } {
  const colon = text.lastIndexOf(":");
  return { address: text.slice(0, colon).replace(/^\[(.*)\]$/, "$1"), port: Number(text.slice(colon + 1)) };
}
