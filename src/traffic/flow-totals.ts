// Packets and bytes of Services: what ended flows had counted, and what current ones have; memory grows with the cluster.
import type { FlowFacts, FlowView } from "../model/flow.ts";
import { activityOf } from "./activity.ts";

/** In: from the client to the Service; out: back. */
export type FlowNumbers = {
  /** Flows that are not closed, at the last dump. */
  readonly active: number;
  readonly packetsIn: number;
  readonly bytesIn: number;
  readonly packetsOut: number;
  readonly bytesOut: number;
};

/** Of one dump: what the current flows of each name have counted. */
type Sums = { active: number; packetsIn: number; bytesIn: number; packetsOut: number; bytesOut: number };

const amounts = ["packetsIn", "bytesIn", "packetsOut", "bytesOut"] as const;

/**
 * Sums by name, such as that of a ServicePort. A sum is what ended flows had counted plus what current flows have, from the first dump
 * on; it grows by the difference to the dump before and never decreases.
 */
export class FlowTotals {
  /** Of flows that have ended. */
  readonly #ended = new Map<string, Sums>();
  /** Ended and current flows together, at the last dump. */
  #before = new Map<string, Sums>();
  #totals = new Map<string, Sums>();
  #isFirst = true;
  #dump: Dump | null = null;

  /** A flow has ended. `names`: what it counts for. */
  end(flow: Pick<FlowView, "id" | "sourcePort" | "counters">, names: readonly string[]): void {
    // It is in this dump already, or will not be any more.
    if (this.#dump?.ids.has(identityOf(flow))) this.#dump.ended.push({ counters: flow.counters, names });
    else for (const name of names) addTo(sumsOf(this.#ended, name), flow.counters);
  }

  /** A dump of the flows begins; one that was not finished is forgotten. */
  begin(): void {
    this.#dump = { ids: new Set(), sums: new Map(), ended: [] };
  }

  /** A current flow. */
  add(
    flow: Pick<FlowView, "id" | "sourcePort" | "counters" | "state" | "status">,
    names: readonly string[],
  ): void {
    const { ids, sums } = this.#dump!;
    // A table that is resized during a dump yields some flows twice.
    const identity = identityOf(flow);
    if (ids.has(identity)) return;
    ids.add(identity);
    for (const name of names) {
      const to = sumsOf(sums, name);
      addTo(to, flow.counters);
      if (activityOf(flow) !== "closed") to.active++;
    }
  }

  /**
   * The dump is complete. `lost`: events were lost since the last one, so nothing is added. Returns whether flows ended without an event:
   * then the sums lack what they counted last.
   */
  finish(isKnown: (name: string) => boolean, lost: boolean): boolean {
    const { sums: current, ended } = this.#dump!;
    this.#dump = null;
    let isIncomplete = false;
    const now = new Map<string, Sums>();
    const totals = new Map<string, Sums>();
    for (const name of new Set([...this.#ended.keys(), ...current.keys(), ...this.#totals.keys()])) {
      if (!isKnown(name)) {
        this.#ended.delete(name);
        continue;
      }
      const sums = both(this.#ended.get(name), current.get(name));
      const before = this.#before.get(name);
      const total = { ...(this.#totals.get(name) ?? noSums()), active: sums.active };
      if (!this.#isFirst && !lost) isIncomplete = grow(total, before, sums) || isIncomplete;
      now.set(name, sums);
      totals.set(name, total);
    }
    for (const { counters, names } of ended)
      for (const name of names) if (isKnown(name)) addTo(sumsOf(this.#ended, name), counters);
    // Those were current in this dump, and have ended since: they must not count twice in the next one.
    this.#before = now;
    this.#totals = totals;
    this.#isFirst = false;
    return isIncomplete;
  }

  of(name: string): FlowNumbers | null {
    return this.#totals.get(name) ?? null;
  }
}

type Dump = {
  /** Of all flows that were added. */
  readonly ids: Set<number>;
  readonly sums: Map<string, Sums>;
  /** Flows that ended after they were added. */
  readonly ended: { readonly counters: FlowFacts["counters"]; readonly names: readonly string[] }[];
};

/** Ids are hashes of 32 bits: among 60,000 flows two have the same one more often than not. */
function identityOf({ id, sourcePort }: Pick<FlowView, "id" | "sourcePort">): number {
  return id * 65_536 + sourcePort;
}

/** Adds the difference to the dump before; true: a sum has shrunk, which an ended flow that was counted cannot cause. */
function grow(total: Sums, before: Sums = noSums(), now: Sums): boolean {
  let hasShrunk = false;
  for (const amount of amounts) {
    const more = now[amount] - before[amount];
    if (more < 0) hasShrunk = true;
    else total[amount] += more;
  }
  return hasShrunk;
}

function both(a: Sums = noSums(), b: Sums = noSums()): Sums {
  const sums = { ...b };
  for (const amount of amounts) sums[amount] += a[amount];
  return sums;
}

function sumsOf(all: Map<string, Sums>, name: string): Sums {
  let sums = all.get(name);
  if (sums === undefined) {
    sums = noSums();
    all.set(name, sums);
  }
  return sums;
}

function addTo(sums: Sums, counters: FlowFacts["counters"]): void {
  if (counters === null) return;
  sums.packetsIn += counters.original.packets;
  sums.bytesIn += counters.original.bytes;
  sums.packetsOut += counters.reply.packets;
  sums.bytesOut += counters.reply.bytes;
}

function noSums(): Sums {
  return { active: 0, packetsIn: 0, bytesIn: 0, packetsOut: 0, bytesOut: 0 };
}
