// Deletes stale flows after successful Syncs: in the background, at most once a second; failed passes are repeated.
import { HostError } from "../host/error.ts";
import type { Cleaning, FlowQuery } from "../host/netlink/conntrack.ts";
import type { Family } from "../model/address.ts";
import type { Clock } from "../model/clock.ts";
import type { PortKey } from "../model/snapshot.ts";
import type { Routes } from "../routing/routes.ts";
import { type StaleFlows, staleUdp } from "../routing/stale-flows-of.ts";
import type { SyncRecord } from "./record.ts";

/** A Sync that ended, whatever its outcome. */
export type FinishedSync = {
  readonly record: SyncRecord;
  /** ServicePorts whose Routes were visited since the last Sync that ended. */
  readonly changed: ReadonlySet<PortKey>;
  /** The current Routes: later Syncs replace them. */
  readonly routes: () => Routes;
};

export type FlowSweepOptions = {
  readonly clean: (query: FlowQuery, signal: AbortSignal) => Promise<Cleaning>;
  readonly clock: Clock;
  readonly swept: (sweep: FlowSweep) => void;
  /** Which flows are stale; UDP when absent. */
  readonly stale?: () => StaleFlows;
};

/** One pass over the tracked flows of a family. */
export type FlowSweep = {
  readonly family: Family;
  readonly milliseconds: number;
  readonly outcome:
    | ({ readonly kind: "ok" } & Cleaning)
    | { readonly kind: "failed"; readonly message: string };
};

/** Shortest time between the starts of two passes over a family: the kernel reads its whole table for each. */
const passGapMs = 1000;
/** A pass that takes longer is aborted and repeated after the next Sync. */
const longestPassMs = 60_000;

/**
 * An observer of the loop. A pass is due after a first Sync with the protocol, and once an endpoint, address or Service with it is gone; it
 * runs after the next successful Sync, which does not wait for it. What becomes stale during a pass is removed by another one.
 */
export class FlowSweeper {
  readonly #options: FlowSweepOptions;
  readonly #signal: AbortSignal;
  readonly #stale: Readonly<Record<Family, StaleFlows>>;
  /** Also by the first Sync, if it has the protocol: every address is then new. */
  readonly #owed = new Set<Family>();
  readonly #due = new Map<Family, () => Routes>();
  readonly #passes = new Map<Family, Promise<void>>();
  readonly #lastStart = new Map<Family, number>();

  constructor(options: FlowSweepOptions, signal: AbortSignal) {
    const { stale = staleUdp } = options;
    this.#options = options;
    this.#signal = signal;
    this.#stale = { ipv4: stale(), ipv6: stale() };
  }

  readonly afterSync = ({ record, changed, routes }: FinishedSync): void => {
    const { family, outcome } = record;
    if (this.#stale[family].note(routes(), changed)) this.#owed.add(family);
    if (outcome.kind !== "ok" || !this.#owed.delete(family)) return;
    this.#due.set(family, routes);
    if (!this.#passes.has(family)) this.#passes.set(family, this.#sweep(family));
  };

  /** Resolves when no pass is under way. */
  async idle(): Promise<void> {
    await Promise.all(this.#passes.values());
  }

  async #sweep(family: Family): Promise<void> {
    while (this.#due.has(family)) {
      await this.#rest(family);
      const routes = this.#take(family)!;
      const start = this.#options.clock.steady();
      this.#lastStart.set(family, start);
      const outcome = await this.#pass(family, routes);
      if (outcome.kind === "failed" || !outcome.complete) this.#owed.add(family);
      this.#options.swept({ family, milliseconds: this.#options.clock.steady() - start, outcome });
    }
    this.#passes.delete(family);
  }

  /** Until a pass over this family may start, or we are stopping. */
  #rest(family: Family): Promise<void> {
    const { clock } = this.#options;
    const ms = (this.#lastStart.get(family) ?? Number.NEGATIVE_INFINITY) + passGapMs - clock.steady();
    if (ms <= 0 || this.#signal.aborted) return Promise.resolve();
    return new Promise((resolve) => {
      const done = () => {
        cancel();
        this.#signal.removeEventListener("abort", done);
        resolve();
      };
      const cancel = clock.after(Math.ceil(ms), done);
      this.#signal.addEventListener("abort", done, { once: true });
    });
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
    const { protocol } = this.#stale[family];
    const { suspects, select, ended } = this.#stale[family].begin(routes);
    let isComplete = false;
    try {
      const among = suspects === null ? {} : { among: suspects };
      const cleaning = await this.#options.clean({ family, protocol, ...among, select }, signal);
      isComplete = cleaning.complete;
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
      ended(isComplete);
    }
  }
}
