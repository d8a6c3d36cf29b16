// Deletes stale UDP flows after successful Syncs: in the background, one pass at a time; failed passes are repeated.
import { HostError } from "../host/error.ts";
import type { Cleaning, FlowQuery } from "../host/netlink/conntrack.ts";
import type { Family } from "../model/address.ts";
import type { Clock } from "../model/clock.ts";
import type { Snapshot } from "../model/snapshot.ts";
import { GoneFrontends, usesGoneFrontend } from "../routing/gone-frontends.ts";
import type { Routes } from "../routing/routes.ts";
import { isStale } from "../routing/staleflows.ts";
import type { SyncRecord } from "./record.ts";

/** A Sync that ended, whatever its outcome. */
export type FinishedSync = {
  readonly record: SyncRecord;
  readonly snapshot: Snapshot;
  /** The current Routes: later Syncs replace them. */
  readonly routes: () => Routes;
};

export type FlowSweepOptions = {
  readonly clean: (query: FlowQuery, signal: AbortSignal) => Promise<Cleaning>;
  readonly clock: Clock;
  readonly swept: (sweep: FlowSweep) => void;
};

/** One pass over the tracked flows of a family. */
export type FlowSweep = {
  readonly family: Family;
  readonly milliseconds: number;
  readonly outcome:
    | ({ readonly kind: "ok" } & Cleaning)
    | { readonly kind: "failed"; readonly message: string };
};

/** A pass that takes longer is aborted and repeated after the next Sync. */
const longestPassMs = 60_000;
const udp = 17;

/**
 * An observer of the loop. A pass is due once endpoints of a UDP Service change or a UDP Frontend is removed; it runs
 * after the next successful Sync. What becomes stale during a pass is removed by another one.
 */
export class FlowSweeper {
  readonly #options: FlowSweepOptions;
  readonly #signal: AbortSignal;
  readonly #seen = new Map<Family, Snapshot>();
  readonly #gone: Readonly<Record<Family, GoneFrontends>> = {
    ipv4: new GoneFrontends(),
    ipv6: new GoneFrontends(),
  };
  readonly #owed = new Set<Family>();
  readonly #due = new Map<Family, () => Routes>();
  readonly #passes = new Map<Family, Promise<void>>();

  constructor(options: FlowSweepOptions, signal: AbortSignal) {
    this.#options = options;
    this.#signal = signal;
  }

  readonly afterSync = ({ record, snapshot, routes }: FinishedSync): void => {
    const { family, outcome } = record;
    // A Sync without a change has the same Snapshot again.
    if (this.#seen.get(family) !== snapshot && snapshot.udpEndpointsChanged[family].size > 0)
      this.#owed.add(family);
    this.#seen.set(family, snapshot);
    this.#gone[family].note(routes());
    if (this.#gone[family].all.size > 0) this.#owed.add(family);
    if (outcome.kind !== "ok" || !this.#owed.delete(family)) return;
    this.#due.set(family, routes);
    if (!this.#passes.has(family)) this.#passes.set(family, this.#sweep(family));
  };

  /** Resolves when no pass is under way. */
  async idle(): Promise<void> {
    await Promise.all(this.#passes.values());
  }

  async #sweep(family: Family): Promise<void> {
    for (let routes = this.#take(family); routes !== undefined; routes = this.#take(family)) {
      const start = this.#options.clock.steady();
      const outcome = await this.#pass(family, routes);
      if (outcome.kind === "failed") this.#owed.add(family);
      this.#options.swept({ family, milliseconds: this.#options.clock.steady() - start, outcome });
    }
    this.#passes.delete(family);
  }

  #take(family: Family): (() => Routes) | undefined {
    const routes = this.#due.get(family);
    this.#due.delete(family);
    return routes;
  }

  async #pass(family: Family, routes: () => Routes): Promise<FlowSweep["outcome"]> {
    const limit = new AbortController();
    const cancel = this.#options.clock.after(longestPassMs, () => limit.abort());
    const signal = AbortSignal.any([this.#signal, limit.signal]);
    try {
      const gone = new Set(this.#gone[family].all);
      const select = (flow: Parameters<FlowQuery["select"]>[0]) =>
        isStale(flow, routes()) || usesGoneFrontend(flow, gone, routes());
      const cleaning = await this.#options.clean({ family, protocol: udp, select }, signal);
      if (cleaning.complete) this.#gone[family].forget(gone);
      return { kind: "ok", ...cleaning };
    } catch (error) {
      if (signal.aborted) {
        const why = this.#signal.aborted ? "we are stopping" : "it took too long";
        return { kind: "failed", message: `Cannot delete stale flows: ${why}` };
      }
      if (!(error instanceof HostError)) throw error;
      return { kind: "failed", message: error.message };
    } finally {
      cancel();
    }
  }
}
