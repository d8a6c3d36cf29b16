// Snapshots in, Syncs out: each IP family runs at its own pace, and none waits for another.
import type { FamilySettings } from "../config/resolve/settings.ts";
import type { Family } from "../model/address.ts";
import type { Clock } from "../model/clock.ts";
import type { Problem } from "../model/problem.ts";
import type { Snapshot } from "../model/snapshot.ts";
import type { Driver } from "../modes/driver.ts";
import { FamilyLoop } from "./family-loop.ts";
import type { FinishedSync } from "./flows.ts";
import { type Budget, fullBudget, type Gap, type PaceReport } from "./pace.ts";
import type { SyncRecord } from "./record.ts";
import { SnapshotFanout } from "./snapshot-fanout.ts";

/** All in milliseconds, measured from the end of a Sync. */
export type Pace = {
  /** No Sync starts earlier than this gap allows. */
  readonly gap: Gap;
  /** After a failure the next one starts no later than this. */
  readonly retryMs: number;
  /** Host and Plan are compared at least this often. */
  readonly resyncMs: number;
};

/** Notified of what the loop does; the members that matter to it are enough. */
export type LoopObserver = {
  started(family: Family): void;
  queued(family: Family): void;
  arrived(snapshot: Snapshot): void;
  /** A family starts to sync what is new to it: one Snapshot, or several that arrived while it was busy. */
  taken(family: Family, snapshot: Snapshot): void;
  /** Services of a family that request what another one holds or the mode cannot serve: the full list, when it changed. */
  conflicts(family: Family, problems: readonly Problem[]): void;
  synced(record: SyncRecord, snapshot: Snapshot): void;
  /** Another program changed what is ours on the host; a comparison follows. */
  drifted(family: Family, message: string): void;
  /** The host was compared with what it should hold; null: it could not be read. */
  readBack(family: Family, differences: number | null, message: string): void;
  /** After `synced`, with the Routes that the Sync applied. */
  afterSync(sync: FinishedSync): void;
  /** After every Sync but repairs: what the gap before the next change follows from. */
  paced(family: Family, pace: PaceReport): void;
};

/** One budget for all families. */
export type SharedBudget = {
  current: Budget;
  /** Until where on the counter of work it is charged: families that sync at the same time are not charged twice. */
  chargedMs: number;
};

export type LoopOptions = {
  readonly snapshots: AsyncIterable<Snapshot>;
  readonly drivers: ReadonlyMap<Family, Driver>;
  /** The settings as of a Snapshot; the same object as long as nothing changed. */
  readonly settings: (family: Family, snapshot: Snapshot) => FamilySettings;
  /** Called before every Sync. */
  readonly pace: () => Pace;
  readonly clock: Clock;
  /** A counter of CPU time, of this process and the programs it starts: what Syncs cost. */
  readonly cpuMs: () => number;
  /** Notified in this order. */
  readonly observers: readonly Partial<LoopObserver>[];
};

export type Loop = {
  /** Runs until the signal aborts or the Snapshots end. */
  run(signal: AbortSignal): Promise<void>;
  /** Requests a Sync although no Snapshot is new: settings changed. */
  wake(): void;
};

export function openLoop(options: LoopOptions): Loop {
  const { gap, resyncMs } = options.pace();
  if (gap.kind === "period" && resyncMs < gap.ms) {
    throw new RangeError(
      `Cannot pace syncs: the longest interval ${resyncMs} ms is below the shortest ${gap.ms} ms`,
    );
  }
  const observer = notifyAll(options.observers);
  const fanout = new SnapshotFanout(options.snapshots, observer);
  const budget = { current: fullBudget, chargedMs: 0 };
  const loops = [...options.drivers].map(
    ([family, driver]) => new FamilyLoop(family, driver, fanout.inboxOf(family), budget, options, observer),
  );
  return {
    wake: () => {
      for (const loop of loops) loop.wake();
    },
    async run(signal) {
      for (const loop of loops) await loop.start(signal);
      // A bug rejects immediately; on abort all end first.
      const running = [fanout.run(signal), ...loops.map((loop) => loop.run(signal))];
      await Promise.all(
        running.map((each) =>
          each.catch((error: unknown) => {
            if (!signal.aborted) throw error;
          }),
        ),
      );
    },
  };
}

function notifyAll(observers: readonly Partial<LoopObserver>[]): LoopObserver {
  const all = (notify: (observer: Partial<LoopObserver>) => void) => {
    for (const each of observers) notify(each);
  };
  return {
    started: (family) => all((each) => each.started?.(family)),
    queued: (family) => all((each) => each.queued?.(family)),
    arrived: (snapshot) => all((each) => each.arrived?.(snapshot)),
    taken: (family, snapshot) => all((each) => each.taken?.(family, snapshot)),
    conflicts: (family, problems) => all((each) => each.conflicts?.(family, problems)),
    synced: (record, snapshot) => all((each) => each.synced?.(record, snapshot)),
    drifted: (family, message) => all((each) => each.drifted?.(family, message)),
    readBack: (family, differences, message) => all((each) => each.readBack?.(family, differences, message)),
    afterSync: (sync) => all((each) => each.afterSync?.(sync)),
    paced: (family, pace) => all((each) => each.paced?.(family, pace)),
  };
}
