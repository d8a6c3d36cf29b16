// Records new conntrack entries during a request: a packet that a rule rejects has none.

import { setImmediate as turn } from "node:timers/promises";
import { HostError } from "../../src/host/error.ts";
import { type Flow, FlowCursor } from "../../src/host/netlink/flow.ts";
import { listen } from "../../src/host/netlink/listen.ts";
import { familyAt, netfilterHeaderLength, subsystem } from "../../src/host/netlink/netfilter.ts";
import { namespaceName, namespacePath } from "../../src/inspect/playgrounds.ts";
import { familyOf, joinHostPort } from "../../src/model/address.ts";
import { nodePlaces } from "./layout.ts";
import type { Destination } from "./send.ts";

/** By node. */
export type Tracked = ReadonlyMap<string, readonly Flow[]>;

export type Tracking = {
  /** What has been tracked so far. */
  readonly flows: () => Promise<Tracked>;
  readonly stop: () => void;
};

const NEW_FLOW = subsystem.conntrack << 8;
/** NFNLGRP_CONNTRACK_NEW. */
const newFlowGroup = 1;

/** Watches conntrack events on every node; a reset removes the entry before the table could be read. */
export async function trackFlows({ address }: Destination): Promise<Tracking> {
  const life = new AbortController();
  const cursor = new FlowCursor(familyOf(address));
  const wanted = familyOf(address) === "ipv4" ? "ip" : "ip6";
  const found = new Map<string, Flow[]>(nodePlaces.map(({ name }) => [name, []]));
  for (const { name } of nodePlaces) {
    const listener = {
      visit: (from: Buffer, { type, start, end }: { type: number; start: number; end: number }) => {
        if (type !== NEW_FLOW || familyAt(from, start) !== wanted) return;
        if (cursor.read(from, start + netfilterHeaderLength, end)) found.get(name)!.push(cursor.flow());
      },
      lost: () => {},
    };
    const netns = namespacePath(namespaceName(name));
    // Without conntrack events a refusal cannot be attributed.
    await listen("netfilter", [newFlowGroup], listener, life.signal, { netns }).catch((error: unknown) => {
      if (!(error instanceof HostError)) throw error;
    });
  }
  return {
    async flows() {
      // The event precedes the reply, but may be read in a later turn of the event loop.
      for (let i = 0; i < 3; i++) await turn();
      return found;
    },
    stop: () => life.abort(),
  };
}

export type Refuser =
  | { readonly kind: "proxy"; readonly node: string }
  | { readonly kind: "listener"; readonly endpoint: string };

/** Who refused a request that `first` was the first node to handle. */
export function refuserOf(to: Destination, first: string, tracked: Tracked): Refuser {
  const flow = tracked.get(first)?.find((each) => isTo(each, to));
  if (flow === undefined) return { kind: "proxy", node: first };
  const { source: address, sourcePort: port } = flow.reply;
  const next = nodePlaces.find(({ addresses }) => Object.values(addresses).includes(address));
  // Another node's port: that node decides.
  if (next !== undefined && next.name !== first)
    return refuserOf({ ...to, address, port }, next.name, tracked);
  return { kind: "listener", endpoint: joinHostPort(address, port) };
}

const protocols = { tcp: 6, udp: 17 } as const;

function isTo({ protocol, original }: Flow, to: Destination): boolean {
  return (
    protocol === protocols[to.protocol] &&
    original.destinationPort === to.port &&
    original.destination === to.address
  );
}
