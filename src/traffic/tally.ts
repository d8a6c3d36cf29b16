// Sums of tracked flows by ServicePort and endpoint; memory grows with the cluster, not with the number of flows.
import type { Address } from "../model/address.ts";
import type { FlowView } from "../model/flow.ts";
import { endpointKey, type PortKey, type ServicePort } from "../model/snapshot.ts";
import { activityOf } from "./activity.ts";
import type { Attribution, Destination } from "./attribute.ts";
import { TopCounts } from "./top-counts.ts";

/** Sums of some flows. */
export type FlowSums = {
  /** Entries that are not closed, by phase; see `Activity`. */
  opening: number;
  active: number;
  closing: number;
  /** Connections that have ended; the kernel keeps their entries for a while. */
  closed: number;
  /** Of the flows that the kernel counts, in both directions. */
  packets: number;
  bytes: number;
  /** Flows without counters: nf_conntrack_acct was 0 when they started. */
  uncounted: number;
};

export type PortTally = {
  readonly port: ServicePort;
  readonly sums: FlowSums;
  /** By `address:port`; with endpoints that are gone, `relay` and `untranslated`. */
  readonly endpoints: ReadonlyMap<string, EndpointTally>;
};

export type EndpointTally = {
  readonly to: Destination["kind"];
  /** Name of the node it runs on; empty when unknown. */
  readonly nodeName: string;
  readonly sums: FlowSums;
};

/** Most endpoints that are gone: their number depends on the flows, not on the cluster. */
const mostGone = 10_000;
/** Clients that are counted one by one. */
const mostClients = 4096;

export class FlowTally {
  readonly all = noSums();
  /** Flows to Services that no longer exist. */
  readonly deleted = noSums();
  /** Flows that do not belong to a Service. */
  readonly other = noSums();
  /** By IP protocol number and state: `6 ESTABLISHED`, `17`. */
  readonly states = new Map<string, number>();
  readonly clients = new TopCounts(mostClients);
  readonly #ports = new Map<PortKey, PortTally & { readonly endpoints: Map<string, EndpointTally> }>();
  #gone = 0;

  add(flow: FlowView, attribution: Attribution): void {
    addTo(this.all, flow);
    const state = flow.state === null ? `${flow.protocol}` : `${flow.protocol} ${flow.state}`;
    this.states.set(state, (this.states.get(state) ?? 0) + 1);
    this.clients.add(flow.source);
    if (attribution.kind === "service") {
      const tally = this.#tallyOf(attribution.routed.port);
      addTo(tally.sums, flow);
      addTo(this.#endpointOf(tally, attribution.to).sums, flow);
    } else addTo(attribution.kind === "deleted" ? this.deleted : this.other, flow);
  }

  get ports(): IterableIterator<PortTally> {
    return this.#ports.values();
  }

  #tallyOf(port: ServicePort): PortTally & { readonly endpoints: Map<string, EndpointTally> } {
    let tally = this.#ports.get(port.key);
    if (tally === undefined) {
      tally = { port, sums: noSums(), endpoints: new Map() };
      this.#ports.set(port.key, tally);
    }
    return tally;
  }

  #endpointOf({ endpoints }: { readonly endpoints: Map<string, EndpointTally> }, to: Destination) {
    let name = destinationName(to);
    let tally = endpoints.get(name);
    if (tally === undefined && to.kind === "gone" && this.#gone++ >= mostGone) {
      name = "other removed endpoints";
      tally = endpoints.get(name);
    }
    if (tally === undefined) {
      tally = {
        to: to.kind,
        nodeName: to.kind === "endpoint" ? to.endpoint.nodeName : "",
        sums: noSums(),
      };
      endpoints.set(name, tally);
    }
    return tally;
  }
}

/** `10.0.1.5:8080`, `relay` or `untranslated`. */
export function destinationName(to: Destination): Address {
  switch (to.kind) {
    case "endpoint":
      return endpointKey(to.endpoint);
    case "gone":
      return endpointKey(to);
    case "relay":
    case "untranslated":
      return to.kind;
  }
}

/** Connections that are not closed. */
export function openFlows({ opening, active, closing }: FlowSums): number {
  return opening + active + closing;
}

function noSums(): FlowSums {
  return { opening: 0, active: 0, closing: 0, closed: 0, packets: 0, bytes: 0, uncounted: 0 };
}

function addTo(sums: FlowSums, flow: FlowView): void {
  sums[activityOf(flow)]++;
  const { counters } = flow;
  if (counters === null) {
    sums.uncounted++;
    return;
  }
  sums.packets += counters.original.packets + counters.reply.packets;
  sums.bytes += counters.original.bytes + counters.reply.bytes;
}
