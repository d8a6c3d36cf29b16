// Watches conntrack: flows that start, change state and end, in one network namespace.
import type { Family } from "../../model/address.ts";
import { FlowCursor, type FlowView } from "./flow.ts";
import { listen } from "./listen.ts";
import { flag, type Message } from "./message.ts";
import { familyAt, type NfFamily, netfilterHeaderLength, subsystem } from "./netfilter.ts";
import type { Place } from "./socket.ts";

export type FlowEvent = "new" | "update" | "destroy";

export type FlowListener = {
  /** The view is valid only during the call. A destroyed flow has no timeout. */
  readonly visit: (event: FlowEvent, flow: FlowView) => void;
  /** The receive buffer was full, and the kernel dropped events. */
  readonly lost: () => void;
};

const NEW = subsystem.conntrack << 8;
const DELETE = (subsystem.conntrack << 8) | 2;
/** NFNLGRP_CONNTRACK_NEW, _UPDATE and _DESTROY. */
const groups: Readonly<Record<FlowEvent, number>> = { new: 1, update: 2, destroy: 3 };
const families: Readonly<Partial<Record<NfFamily, Family>>> = { ip: "ipv4", ip6: "ipv6" };

/**
 * Reports until the signal is aborted. With nf_conntrack_events=2, the default since Linux 5.19, the kernel reports only flows that
 * started after the first listener.
 */
export function watchFlows(
  listener: FlowListener,
  signal: AbortSignal,
  {
    events = ["new", "update", "destroy"],
    ...place
  }: Place & { readonly events?: readonly FlowEvent[] } = {},
): Promise<void> {
  const cursors = { ipv4: new FlowCursor("ipv4"), ipv6: new FlowCursor("ipv6") };
  const visit = (from: Buffer, message: Message) => {
    const event = eventOf(message);
    const nfFamily = familyAt(from, message.start);
    const family = nfFamily === undefined ? undefined : families[nfFamily];
    if (event === null || family === undefined) return;
    const cursor = cursors[family];
    if (cursor.read(from, message.start + netfilterHeaderLength, message.end)) listener.visit(event, cursor);
  };
  const wanted = events.map((event) => groups[event]);
  return listen("netfilter", wanted, { visit, lost: listener.lost }, signal, place);
}

/** Both new and changed flows have the type NEW; only new ones are marked as created. */
function eventOf({ type, flags }: Message): FlowEvent | null {
  if (type === DELETE) return "destroy";
  if (type !== NEW) return null;
  return (flags & flag.create) === 0 ? "update" : "new";
}
