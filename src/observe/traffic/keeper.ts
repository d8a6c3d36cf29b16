// Reads the traffic of Services at an interval while it is counted, and keeps the result for metrics and the status socket.
import type { TrafficSetting } from "../../config/resolve/settings.ts";
import { HostError } from "../../host/error.ts";
import type { Family } from "../../model/address.ts";
import type { Clock } from "../../model/clock.ts";
import { mergedGaps } from "../../model/count-gaps.ts";
import type { Counted, Driver } from "../../modes/driver.ts";
import type { Routes } from "../../routing/routes.ts";
import type { LoopObserver } from "../../sync/loop.ts";
import type { Log } from "../log/log.ts";
import type { FlowAccounts } from "./flow-accounts.ts";
import { type Coverage, portsOf, type TrafficReport } from "./report.ts";

export type TrafficOptions = {
  readonly setting: TrafficSetting;
  readonly mode: string;
  readonly drivers: ReadonlyMap<Family, Pick<Driver, "readCounts">>;
  readonly flows: Pick<FlowAccounts, "watch" | "setRoutes" | "dump" | "of" | "gaps">;
  /** Why the kernel does not count packets and bytes of flows; null: it does. */
  readonly noFlows: string | null;
  /** Why the mode does not count connections; null: it does. */
  readonly uncounted: string | null;
  readonly clock: Clock;
  /** CPU time of this process and of programs it ran, in milliseconds: what reading costs, also on a busy machine where it takes longer. */
  readonly cpuMs: () => number;
  readonly log: Log;
};

export const readEveryMs = 10_000;
/** Reading uses at most this part of one core: a hundredth. */
const share = 100;
/** A scrape does not read again what was read a moment ago, and does not wait for long. */
const freshMs = 1_000;
const longestWaitMs = 1_000;
/** Without counters, flows are read while a client waits, and reading is not interrupted. */
const never = new AbortController().signal;
/** On demand, reading conntrack uses at most a tenth of one core. */
const dumpShare = 10;

export class TrafficKeeper {
  readonly #options: TrafficOptions;
  readonly #counted = new Map<Family, Counted>();
  readonly #routes = new Map<Family, () => Routes>();
  #at: number | null = null;
  #flowsAt: number | null = null;
  #readAt: number | null = null;
  #reading: Promise<void> | null = null;
  #dumping: Promise<void> | null = null;
  /** When the last dump of conntrack ended, or failed, and the CPU time that it used. */
  #dumpedAt: number | null = null;
  #dumpCostMs = 0;
  #signal: AbortSignal = AbortSignal.abort();
  /** What could not be read, and why, by what it is; each is logged when it begins. */
  readonly #failures = new Map<string, string>();
  /** Why ended flows are not reported; null: they are. */
  #unwatched: string | null = null;
  #synced = () => {};
  /** Every family has synced once: what is counted from then on can be read. */
  readonly #firstSyncs = new Promise<void>((resolve) => {
    this.#synced = resolve;
  });

  constructor(options: TrafficOptions) {
    this.#options = options;
  }

  readonly observer: Partial<LoopObserver> = {
    afterSync: ({ record, routes }) => {
      this.#routes.set(record.family, routes);
      if (this.#options.setting !== "off" && record.outcome.kind === "ok")
        this.#options.flows.setRoutes(routes());
      if (this.#routes.size === this.#options.drivers.size) this.#synced();
    },
  };

  /** Reads until the signal aborts. */
  async run(signal: AbortSignal): Promise<null> {
    if (this.#options.setting === "off") return null;
    await this.#startFlows(signal);
    const stopped = new Promise<void>((resolve) => {
      signal.addEventListener("abort", () => resolve(), { once: true });
    });
    await Promise.race([this.#firstSyncs, stopped]);
    this.#signal = signal;
    while (!signal.aborted) {
      const cost = this.#costOf();
      await this.#readAll(signal);
      await this.#pause(Math.max(readEveryMs, cost() * share), signal);
    }
    return null;
  }

  /** Reads the counters again, unless that was done a moment ago; waits for a second at most. */
  async refresh(): Promise<void> {
    const { clock } = this.#options;
    if (this.#signal.aborted) return;
    if (this.#readAt !== null && clock.steady() - this.#readAt < freshMs) return;
    let cancel = () => {};
    const late = new Promise<void>((resolve) => {
      cancel = clock.after(longestWaitMs, resolve);
    });
    await Promise.race([this.#readCounters(this.#signal), late]);
    cancel();
  }

  /** For a client that shows rates: also reads conntrack again, unless that was done a moment ago or takes long. */
  async refreshAll(): Promise<void> {
    await this.refresh();
    const { setting, clock } = this.#options;
    // Where traffic is counted, the first dump follows the first Syncs.
    if (setting !== "off" && this.#dumpedAt === null) return;
    const age = clock.steady() - (this.#dumpedAt ?? Number.NEGATIVE_INFINITY);
    if (age < Math.max(freshMs, this.#dumpCostMs * dumpShare)) return;
    await this.#readFlows(setting === "off" ? never : this.#signal);
    if (setting === "off") this.#at = this.#flowsAt;
  }

  report(): TrafficReport {
    const { setting, mode } = this.#options;
    return {
      setting,
      mode,
      at: this.#at,
      flowsAt: this.#flowsAt,
      counters: this.#coverage(),
      flows: this.#flowCoverage(),
      ports: this.#ports(),
    };
  }

  #ports(): TrafficReport["ports"] {
    return portsOf(
      [...this.#routes].map(([family, current]) => {
        const routes = current();
        return {
          portOf: (key) => routes.servicePorts.get(key),
          counts: this.#counted.get(family)?.ports ?? new Map(),
          flowsOf: (name) => this.#options.flows.of(family, name),
          keys: routes.ports.keys(),
        };
      }),
    );
  }

  #coverage(): Coverage {
    const { setting, uncounted } = this.#options;
    if (setting === "off") return { counted: false, because: "--traffic is off" };
    if (uncounted !== null) return { counted: false, because: uncounted };
    return { counted: true, gaps: mergedGaps([...this.#counted.values()].map(({ gaps }) => gaps)) };
  }

  #flowCoverage(): Coverage {
    const { setting, flows, noFlows } = this.#options;
    if (setting === "off") return { counted: false, because: "--traffic is off" };
    const because = noFlows ?? this.#unwatched ?? this.#failures.get("conntrack") ?? null;
    return because === null ? { counted: true, gaps: flows.gaps } : { counted: false, because };
  }

  async #startFlows(signal: AbortSignal): Promise<void> {
    const { flows, noFlows, log } = this.#options;
    if (noFlows !== null) return;
    await flows.watch(signal).catch((error: unknown) => {
      if (!(error instanceof HostError)) throw error;
      this.#unwatched = error.message;
      log.error(error, "Cannot watch conntrack: packets and bytes of Services are not counted");
    });
  }

  async #readAll(signal: AbortSignal): Promise<void> {
    await this.#readCounters(signal);
    await this.#readFlows(signal);
    this.#at = this.#options.clock.wall();
  }

  #readFlows(signal: AbortSignal): Promise<void> {
    const { clock, flows } = this.#options;
    this.#dumping ??= this.#attempt("conntrack", async () => {
      const cost = this.#costOf();
      for (const current of this.#routes.values()) flows.setRoutes(current());
      try {
        await flows.dump(signal);
        this.#flowsAt = clock.wall();
      } finally {
        this.#dumpedAt = clock.steady();
        this.#dumpCostMs = cost();
      }
    }).finally(() => {
      this.#dumping = null;
    });
    return this.#dumping;
  }

  #readCounters(signal: AbortSignal): Promise<void> {
    this.#reading ??= this.#attempt("counters", async () => {
      for (const [family, { readCounts }] of this.#options.drivers) {
        const counted = await readCounts?.(signal);
        if (counted !== undefined) this.#counted.set(family, counted);
      }
      this.#readAt = this.#options.clock.steady();
      if (this.#at !== null) this.#at = this.#options.clock.wall();
    }).finally(() => {
      this.#reading = null;
    });
    return this.#reading;
  }

  /** A failure is logged once until reading works again. */
  async #attempt(what: string, read: () => Promise<void>): Promise<void> {
    try {
      await read();
      this.#failures.delete(what);
    } catch (error) {
      if (this.#options.setting !== "off" && this.#signal.aborted) return;
      if (!(error instanceof HostError)) throw error;
      if (!this.#failures.has(what))
        this.#options.log.error(error, "Cannot read the traffic of Services; retrying", { from: what });
      this.#failures.set(what, error.message);
    }
  }

  /** Returns the CPU time from now on. Programs count when they end, with all that they used before: never more than the time that passed. */
  #costOf(): () => number {
    const { clock, cpuMs } = this.#options;
    const [cpu, start] = [cpuMs(), clock.steady()];
    return () => Math.min(cpuMs() - cpu, clock.steady() - start);
  }

  #pause(ms: number, signal: AbortSignal): Promise<void> {
    if (signal.aborted) return Promise.resolve();
    return new Promise((resolve) => {
      const end = (): void => {
        cancel();
        signal.removeEventListener("abort", end);
        resolve();
      };
      const cancel = this.#options.clock.after(ms, end);
      signal.addEventListener("abort", end);
    });
  }
}
