// Records every Snapshot's changes in the history, after they are in the kernel; an observer of the sync loop.

import type { Change } from "../../history/change.ts";
import { changeBetween } from "../../history/change.ts";
import type { HistoryHead, NoState, Written } from "../../history/entry.ts";
import { type HistoryLog, type Moment, type Stored, stateAt } from "../../history/log.ts";
import { clockStepBetween, keysIn, recordOf } from "../../history/record.ts";
import type { Family } from "../../model/address.ts";
import type { Clock } from "../../model/clock.ts";
import type { Snapshot } from "../../model/snapshot.ts";
import type { LoopObserver } from "../../sync/loop.ts";
import type { SyncRecord } from "../../sync/record.ts";
import { finishedInTurns } from "./turns.ts";

/** Where changes are saved. Failures are its own matter. */
export type HistoryStore = {
  readonly directory: string | null;
  /** Why nothing is saved; null: changes are. */
  readonly unsaved: () => string | null;
  /** Begins the log with what was saved, and what changed since. */
  readonly begin: (log: HistoryLog, first: Snapshot, now: Moment) => Promise<void>;
  readonly changed: (stored: Stored, redo: Change, log: HistoryLog) => void;
  readonly written: (seq: number, family: Family, written: Written) => void;
  readonly close: () => Promise<void>;
};

/** Nothing is saved. */
export const noStore: HistoryStore = {
  directory: null,
  unsaved: () => null,
  begin: async (log, first, { at }) => log.begin(first, at),
  changed: () => {},
  written: () => {},
  close: async () => {},
};

export type RecorderOptions = {
  readonly log: HistoryLog;
  readonly node: string;
  /** Those that Syncs write. */
  readonly families: readonly Family[];
  readonly clock: Clock;
  readonly store: HistoryStore;
};

/** A Snapshot that is not recorded yet. */
type Unrecorded = {
  readonly before: Snapshot;
  readonly now: Snapshot;
  readonly moment: Moment;
  readonly clockStepMs: number;
  readonly pending: Pending;
};

/** A change until all families have written it. */
type Pending = {
  /** When the first of its events was received. */
  readonly since: number;
  /** Families whose Sync has not written it. */
  readonly waits: Set<Family>;
  /** Those whose Sync has begun. */
  readonly taken: Set<Family>;
  readonly written: Partial<Record<Family, Written>>;
  stored: Stored | null;
};

/** A Sync that hangs does not delay the record for longer. */
const latestMs = 250;
/** A family that never syncs must not fill the memory. */
const mostOpen = 256;
/** A message of the kernel is a sentence. */
const mostMessage = 300;

export class HistoryRecorder implements Pick<LoopObserver, "arrived" | "taken" | "synced"> {
  readonly #options: RecorderOptions;
  #last: { readonly snapshot: Snapshot; readonly moment: Moment } | null = null;
  /** Not recorded yet, oldest first. */
  readonly #queue: Unrecorded[] = [];
  /** Not written by all families yet. */
  #open: Pending[] = [];
  #timer: (() => void) | null = null;
  #work: Promise<void> | null = null;
  /** Called with a bug. */
  onError: (error: unknown) => void = (error) => {
    throw error;
  };

  constructor(options: RecorderOptions) {
    this.#options = options;
  }

  /** Before the Sync: only references are kept. */
  readonly arrived = (now: Snapshot): void => {
    const moment = this.#moment();
    const last = this.#last;
    this.#last = { snapshot: now, moment };
    if (last === null) this.#begin(now, moment);
    else this.#enqueue(last.snapshot, last.moment, now, moment);
  };

  readonly taken = (family: Family): void => {
    for (const { waits, taken } of this.#open) if (waits.has(family)) taken.add(family);
  };

  readonly synced = (record: SyncRecord): void => {
    const { family, outcome } = record;
    const covered = this.#open.filter(({ waits, taken }) => waits.has(family) && taken.has(family));
    for (const pending of covered) {
      pending.written[family] = writtenBy(record, pending, covered.length);
      if (outcome.kind === "ok") pending.waits.delete(family);
      if (pending.stored !== null)
        this.#options.store.written(pending.stored.seq, family, pending.written[family]);
    }
    this.#open = this.#open.filter(({ waits }) => waits.size > 0);
    if (this.#queue.length > 0) this.#run();
  };

  head(): HistoryHead {
    const { log, node, clock, store } = this.#options;
    log.expire(clock.steady());
    return {
      kind: "history",
      node,
      beginsAt: log.beginsAt,
      dropped: log.dropped,
      entries: log.size,
      lastSeq: log.lastSeq,
      bytes: log.bytes,
      limits: log.limits,
      directory: store.directory,
      unsaved: store.unsaved(),
    };
  }

  /** Resolves when everything that arrived is recorded. */
  async idle(): Promise<void> {
    for (this.#run(); this.#work !== null; this.#run()) await this.#work;
  }

  /** Records what is left, and closes the store. */
  async close(): Promise<void> {
    await this.idle();
    await this.#options.store.close();
  }

  stateAt(at: number): Promise<Snapshot | NoState> {
    return finishedInTurns(stateAt(this.#options.log, at));
  }

  #moment(): Moment {
    const { clock } = this.#options;
    return { at: clock.wall(), steadyAt: clock.steady() };
  }

  #enqueue(before: Snapshot, lastMoment: Moment, now: Snapshot, moment: Moment): void {
    const pending: Pending = {
      since: firstEventOf(now, moment),
      waits: new Set(this.#options.families.filter((family) => concerns(family, before, now))),
      taken: new Set(),
      written: {},
      stored: null,
    };
    this.#queue.push({ before, now, moment, clockStepMs: clockStepBetween(lastMoment, moment), pending });
    if (pending.waits.size > 0) this.#open = [...this.#open, pending].slice(-mostOpen);
    this.#timer ??= this.#options.clock.after(latestMs, () => this.#run());
  }

  #begin(first: Snapshot, moment: Moment): void {
    const { store, log } = this.#options;
    this.#work = store.begin(log, first, moment).then(() => {
      this.#work = null;
      this.#run();
    });
    this.#work.catch((error: unknown) => this.onError(error));
  }

  #run(): void {
    this.#timer?.();
    this.#timer = null;
    if (this.#work !== null || this.#queue.length === 0) return;
    this.#work = this.#recordAll().finally(() => {
      this.#work = null;
    });
    this.#work.catch((error: unknown) => this.onError(error));
  }

  async #recordAll(): Promise<void> {
    for (let next = this.#queue.shift(); next !== undefined; next = this.#queue.shift())
      await this.#record(next);
  }

  async #record({ before, now, moment, clockStepMs, pending }: Unrecorded): Promise<void> {
    const { log, store } = this.#options;
    const recorded = await finishedInTurns(recordOf(before, now, clockStepMs));
    if (recorded === null) return;
    const stored = log.append(recorded, moment, now, pending.written);
    if (stored === null || store.directory === null) return;
    const redo = await finishedInTurns(changeBetween(before, now, keysIn(recorded.undo)));
    pending.stored = stored;
    store.changed(stored, redo!, log);
  }
}

/** Whether a Sync of this family follows. */
function concerns(family: Family, before: Snapshot, now: Snapshot): boolean {
  return (
    now[family].changed.size > 0 ||
    before[family].serviceCIDRs !== now[family].serviceCIDRs ||
    before.node?.zone !== now.node?.zone
  );
}

function firstEventOf({ causes }: Snapshot, { at }: Moment): number {
  let first = at;
  for (const { receivedAt } of causes.objects) if (receivedAt !== 0 && receivedAt < first) first = receivedAt;
  return first;
}

function writtenBy(record: SyncRecord, { since }: Pending, together: number): Written {
  const { finishedAt, operations, outcome } = record;
  const failed = outcome.kind === "failed" ? outcome.message.slice(0, mostMessage) : null;
  return {
    at: finishedAt,
    latencyMs: Math.max(0, finishedAt - since),
    operations,
    together,
    refused: outcome.kind === "ok" ? outcome.refused.length : 0,
    failed,
  };
}
