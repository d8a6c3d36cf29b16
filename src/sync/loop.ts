// Turns the crank: Snapshots in, Syncs out, no more often than asked, again after failures, and at once after drift.
import type { FamilySettings } from "../config/settings.ts";
import type { Family } from "../model/address.ts";
import type { Clock } from "../model/clock.ts";
import type { Snapshot } from "../model/snapshot.ts";
import { Bell } from "../sources/bell.ts";
import type { Driver } from "./driver.ts";
import { FamilySync } from "./family.ts";
import type { FinishedSync } from "./flows.ts";
import type { SyncRecord, Trigger } from "./record.ts";

/** All in milliseconds, measured from the end of a Sync. */
export type Pace = {
  /** No Sync starts earlier than this. */
  readonly minGapMs: number;
  /** After a failure the next one starts no later than this. */
  readonly retryMs: number;
  /** Without any reason, host and Plan are compared this often. */
  readonly resyncMs: number;
};

/** Who wants to know. */
export type LoopObserver = {
  started(family: Family): void;
  queued(family: Family): void;
  arrived(snapshot: Snapshot): void;
  synced(record: SyncRecord, snapshot: Snapshot): void;
  readBack(family: Family, differences: number, message: string): void;
};

export type LoopOptions = {
  readonly snapshots: AsyncIterable<Snapshot>;
  readonly drivers: ReadonlyMap<Family, Driver>;
  /** The settings as of a Snapshot; the same object as long as nothing changed. */
  readonly settings: (family: Family, snapshot: Snapshot) => FamilySettings;
  /** Asked anew for every turn. */
  readonly pace: () => Pace;
  readonly clock: Clock;
  readonly observer: LoopObserver;
  /** What wants to run behind each Sync, off its path. */
  readonly afterSync?: (sync: FinishedSync) => void;
};

export type Loop = {
  /** Runs until the signal aborts or the Snapshots end. */
  run(signal: AbortSignal): Promise<void>;
  /** Asks for a Sync although no Snapshot is new: settings changed. */
  wake(): void;
  readonly families: ReadonlyMap<Family, FamilySync>;
};

/** Repairs come at once, but not in a storm. */
const driftGapMs = 100;

export function openLoop(options: LoopOptions): Loop {
  const { clock } = options;
  const pace = options.pace();
  if (pace.resyncMs < pace.minGapMs) {
    throw new RangeError(
      `Cannot pace syncs: the longest interval ${pace.resyncMs} ms is below the shortest ${pace.minGapMs} ms`,
    );
  }
  const families = new Map(
    [...options.drivers].map(([family, driver]) => [
      family,
      new FamilySync(family, driver, () => clock.wall()),
    ]),
  );
  const wake = new Bell();
  return {
    families,
    wake: () => wake.ring(),
    run: (signal) => new Crank(options, families, wake, signal).run(),
  };
}

type Reason =
  | { readonly kind: "snapshot"; readonly snapshot: Snapshot }
  | { readonly kind: "ended" }
  | { readonly kind: "woken" }
  | { readonly kind: "drift" }
  | { readonly kind: "due"; readonly trigger: "retry" | "resync" };

class Crank {
  readonly #options: LoopOptions;
  readonly #families: ReadonlyMap<Family, FamilySync>;
  readonly #wake: Bell;
  readonly #signal: AbortSignal;
  readonly #drift = new Bell();
  readonly #drifted = new Map<Family, string>();
  readonly #failed = new Set<Family>();
  readonly #snapshots: AsyncIterator<Snapshot>;
  #pulled: Promise<Reason> | null = null;
  #last: Snapshot | null = null;
  #lastEnd: number;

  constructor(
    options: LoopOptions,
    families: ReadonlyMap<Family, FamilySync>,
    wake: Bell,
    signal: AbortSignal,
  ) {
    this.#options = options;
    this.#families = families;
    this.#wake = wake;
    this.#signal = signal;
    this.#snapshots = options.snapshots[Symbol.asyncIterator]();
    this.#lastEnd = Number.NEGATIVE_INFINITY;
  }

  async run(): Promise<void> {
    for (const [family, driver] of this.#options.drivers) {
      this.#options.observer.started(family);
      await driver.watch((what) => this.#foreignChange(family, what), this.#signal);
    }
    try {
      for (;;) {
        const reason = await this.#nextReason();
        if (reason.kind === "ended") return;
        await this.#turn(reason);
      }
    } catch (error) {
      if (!this.#signal.aborted) throw error;
    }
  }

  #foreignChange(family: Family, what: string): void {
    this.#drifted.set(family, what);
    this.#drift.ring();
  }

  /** Changes gather in the source while the gap lasts; a drift is not kept waiting. */
  async #nextReason(): Promise<Reason> {
    const stop = new AbortController();
    const signal = AbortSignal.any([this.#signal, stop.signal]);
    try {
      const drift = this.#drift.heard(signal).then((): Reason => ({ kind: "drift" }));
      const gap = this.#sleepUntil(this.#lastEnd + this.#options.pace().minGapMs, signal);
      const early = await Promise.race([drift, gap]);
      if (early !== undefined) {
        await this.#sleepUntil(this.#lastEnd + driftGapMs, signal);
        return early;
      }
      const woken = this.#wake.heard(signal).then((): Reason => ({ kind: "woken" }));
      return await Promise.race([drift, this.#pull(), woken, this.#due(signal)]);
    } finally {
      stop.abort();
    }
  }

  #pull(): Promise<Reason> {
    this.#pulled ??= this.#snapshots
      .next()
      .then(
        (next): Reason =>
          next.done === true ? { kind: "ended" } : { kind: "snapshot", snapshot: next.value },
      );
    return this.#pulled;
  }

  async #due(signal: AbortSignal): Promise<Reason> {
    const { retryMs, resyncMs } = this.#options.pace();
    const trigger = this.#failed.size > 0 ? "retry" : "resync";
    if (this.#last === null) return new Promise(() => {});
    await this.#sleepUntil(
      this.#lastEnd + (trigger === "retry" ? Math.min(retryMs, resyncMs) : resyncMs),
      signal,
    );
    return { kind: "due", trigger };
  }

  async #turn(reason: Exclude<Reason, { kind: "ended" }>): Promise<void> {
    const { observer } = this.#options;
    const isFirst = this.#last === null;
    if (reason.kind === "snapshot") {
      this.#pulled = null;
      this.#last = reason.snapshot;
      observer.arrived(reason.snapshot);
    }
    const snapshot = this.#last;
    if (snapshot === null) return;
    // To look again is not a change that waits: kube-proxy's health counts only those.
    if (reason.kind === "snapshot" || reason.kind === "woken") {
      for (const family of this.#families.keys()) observer.queued(family);
    }
    await Promise.all(
      [...this.#families.values()].map((family) => this.#turnFamily(family, snapshot, reason, isFirst)),
    );
    this.#lastEnd = this.#options.clock.steady();
  }

  async #turnFamily(sync: FamilySync, snapshot: Snapshot, reason: Reason, isFirst: boolean): Promise<void> {
    if (reason.kind === "drift" || (reason.kind === "due" && reason.trigger === "resync")) {
      await this.#verify(sync, reason.kind === "drift" ? "drift" : "resync");
    }
    const trigger: Trigger = isFirst
      ? "first"
      : reason.kind === "due"
        ? reason.trigger
        : reason.kind === "drift"
          ? "drift"
          : this.#failed.has(sync.family)
            ? "retry"
            : "change";
    // A turn without a new Snapshot repeats the last one: nothing in it is changed any more.
    const seen =
      reason.kind === "snapshot"
        ? snapshot[sync.family]
        : { ...snapshot[sync.family], changed: new Set<string>() };
    const settings = this.#options.settings(sync.family, snapshot);
    const record = await sync.turn(seen, settings, trigger, this.#signal);
    const isFine = record.outcome.kind === "ok" && record.outcome.refused.length === 0;
    if (isFine) this.#failed.delete(sync.family);
    else this.#failed.add(sync.family);
    this.#options.observer.synced(record, snapshot);
    this.#options.afterSync?.({ record, snapshot, routes: () => sync.routes! });
  }

  async #verify(sync: FamilySync, trigger: "drift" | "resync"): Promise<void> {
    const what = this.#drifted.get(sync.family) ?? "compared with the host";
    if (trigger === "drift" && !this.#drifted.delete(sync.family)) return;
    const found = await sync.verify(trigger, this.#signal);
    if ("failed" in found) this.#options.observer.readBack(sync.family, 1, found.failed);
    else this.#options.observer.readBack(sync.family, found.differences, what);
  }

  #sleepUntil(at: number, signal: AbortSignal): Promise<undefined> {
    const ms = at - this.#options.clock.steady();
    if (!(ms > 0)) return Promise.resolve(undefined);
    return new Promise((resolve) => {
      const cancel = this.#options.clock.after(ms, () => resolve(undefined));
      signal.addEventListener("abort", cancel, { once: true });
    });
  }
}
