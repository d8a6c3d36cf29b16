// Runs Syncs for one IP family: paced, retried on failure, repeated every resync period, immediate after drift.
import type { Family } from "../model/address.ts";
import { Notifier } from "../model/notifier.ts";
import type { Snapshot } from "../model/snapshot.ts";
import { nextTurn } from "../model/steps.ts";
import type { Driver } from "../modes/driver.ts";
import { FamilySync } from "./family-sync.ts";
import type { LoopObserver, LoopOptions, SharedBudget } from "./loop.ts";
import { changeAt, type LastSync, reportPace, spend } from "./pace.ts";
import type { Trigger } from "./record.ts";
import type { Inbox } from "./snapshot-fanout.ts";

/** Shortest time between two repairs. */
const driftGapMs = 100;

/** What observers do with so many ServicePorts takes milliseconds: other work goes in between. */
const largeSync = 1000;

type Reason = "drift" | "change" | "retry" | "resync";

export class FamilyLoop {
  readonly #options: LoopOptions;
  readonly #observer: LoopObserver;
  readonly #family: Family;
  readonly #driver: Driver;
  readonly #inbox: Inbox;
  readonly #budget: SharedBudget;
  readonly #sync: FamilySync;
  /** Notified when there may be a reason to sync. */
  readonly #notifier = new Notifier();
  /** What another program changed on the host; null: nothing that we know of. */
  #drifted: string | null = null;
  /** A host that could not be read is left alone until then, unless it is changed again. */
  #readableAt = Number.NEGATIVE_INFINITY;
  #woken = false;
  #last: Snapshot | null = null;
  #lastEnd = Number.NEGATIVE_INFINITY;
  /** When the host was last compared with what it should hold, or an attempt ended. */
  #lastCompared = Number.NEGATIVE_INFINITY;
  /** Without repairs, which have a pace of their own. */
  #lastPaced: LastSync = { end: Number.NEGATIVE_INFINITY, failed: false };
  #lastRepairEnd = Number.NEGATIVE_INFINITY;

  constructor(
    family: Family,
    driver: Driver,
    inbox: Inbox,
    budget: SharedBudget,
    options: LoopOptions,
    observer: LoopObserver,
  ) {
    this.#options = options;
    this.#observer = observer;
    this.#family = family;
    this.#driver = driver;
    this.#inbox = inbox;
    this.#budget = budget;
    this.#sync = new FamilySync(family, driver, () => options.clock.wall());
    inbox.onChange = () => this.#notifier.notify();
    inbox.onUnchanged = (snapshot) => {
      this.#last = snapshot;
    };
  }

  /** Starts to watch the host. */
  async start(signal: AbortSignal): Promise<void> {
    this.#observer.started(this.#family);
    const onForeignChange = (what: string) => {
      this.#observer.drifted(this.#family, what);
      this.#drifted = what;
      this.#readableAt = Number.NEGATIVE_INFINITY;
      this.#notifier.notify();
    };
    await this.#driver.watch(onForeignChange, signal);
  }

  /** Requests a Sync although no Snapshot is new. */
  wake(): void {
    if (this.#last === null) return;
    this.#observer.queued(this.#family);
    this.#woken = true;
    this.#notifier.notify();
  }

  /** Until the Snapshots end; rejects on abort. */
  async run(signal: AbortSignal): Promise<void> {
    while (!this.#inbox.ended || !this.#inbox.isEmpty) {
      const [at, reason] = this.#next();
      if (at > this.#options.clock.steady()) await this.#rest(at, signal);
      else await this.#runOnce(reason, signal);
    }
  }

  /** What is due next and when; requests a Snapshot once a change may be synced. */
  #next(): readonly [at: number, reason: Reason] {
    const at = this.#sync.unfinished
      ? Number.NEGATIVE_INFINITY
      : changeAt(this.#options.pace().gap, this.#budget.current, this.#lastPaced);
    const hasChange = !this.#inbox.isEmpty || this.#woken;
    const isChangeDue = at <= this.#options.clock.steady();
    if (isChangeDue && !hasChange) this.#inbox.request();
    const next = isChangeDue && !hasChange ? this.#nextWithoutChange() : ([at, "change"] as const);
    if (this.#last === null) return next;
    // The longest overdue comes first: neither constant changes in the cluster nor constant drift starves another.
    const compareAt = this.#lastCompared + this.#options.pace().resyncMs;
    const due = compareAt < next[0] ? ([compareAt, "resync"] as const) : next;
    if (this.#drifted === null) return due;
    const repairAt = Math.max(this.#lastRepairEnd + driftGapMs, this.#readableAt);
    return repairAt < due[0] ? [repairAt, "drift"] : due;
  }

  #nextWithoutChange(): readonly [at: number, reason: Reason] {
    if (this.#last === null || !this.#sync.incomplete) return [Number.POSITIVE_INFINITY, "change"];
    return [this.#lastEnd + this.#retryMs(), "retry"];
  }

  #retryMs(): number {
    const { retryMs, resyncMs } = this.#options.pace();
    return Math.min(retryMs, resyncMs);
  }

  /** Until that moment, or until notified. */
  async #rest(until: number, signal: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    // Timers have whole milliseconds: one that fires early would be set again.
    const ms = Math.ceil(until - clock.steady());
    const cancel = Number.isFinite(ms) ? clock.after(ms, () => this.#notifier.notify()) : () => {};
    await this.#notifier.notified(signal).finally(cancel);
  }

  async #runOnce(reason: Reason, signal: AbortSignal): Promise<void> {
    const startMs = this.#options.cpuMs();
    if (reason === "drift" || reason === "resync") await this.#verify(reason, signal);
    const isFirst = this.#last === null;
    const taken = reason === "change" ? this.#inbox.take() : null;
    if (reason === "change") this.#woken = false;
    if (taken !== null) {
      this.#last = taken;
      this.#observer.taken(this.#family, taken);
    }
    const hasRead =
      this.#last !== null &&
      (await this.#syncOnce(this.#last, taken !== null, this.#trigger(reason, isFirst), signal));
    this.#lastEnd = this.#options.clock.steady();
    // The first Sync reads the host, and so does the one after a failure.
    if (hasRead || isFirst || this.#sync.failed || reason === "drift" || reason === "resync")
      this.#lastCompared = this.#lastEnd;
    if (reason === "drift") this.#lastRepairEnd = this.#lastEnd;
    else this.#pace(startMs, isFirst);
  }

  /** The first Sync costs the budget nothing: the changes that arrived during it follow immediately. */
  #pace(startMs: number, isFirst: boolean): void {
    const { cpuMs, pace } = this.#options;
    const budget = this.#budget;
    const endMs = cpuMs();
    const costMs = endMs - Math.max(startMs, budget.chargedMs);
    budget.chargedMs = endMs;
    if (!isFirst) budget.current = spend(budget.current, costMs, this.#lastEnd);
    this.#lastPaced = { end: this.#lastEnd, failed: this.#sync.failed };
    this.#observer.paced(this.#family, reportPace(pace().gap, budget.current, this.#lastPaced, costMs));
  }

  #trigger(reason: Reason, isFirst: boolean): Trigger {
    if (isFirst) return "first";
    if (reason !== "change") return reason;
    return this.#sync.incomplete ? "retry" : "change";
  }

  /** Whether the host was read. */
  async #syncOnce(
    snapshot: Snapshot,
    isNew: boolean,
    trigger: Trigger,
    signal: AbortSignal,
  ): Promise<boolean> {
    const observer = this.#observer;
    const { settings } = this.#options;
    const seen = snapshot[this.#family];
    // Without a new Snapshot the last one is synced again: nothing in it counts as changed.
    const wanted = isNew ? seen : { ...seen, changed: new Set<string>() };
    const { conflicts } = this.#sync;
    const record = await this.#sync.run(wanted, settings(this.#family, snapshot), trigger, signal, () =>
      this.#hasChange(),
    );
    if (this.#sync.conflicts !== conflicts) observer.conflicts(this.#family, this.#sync.conflicts);
    if (this.#sync.unfinished) {
      this.#inbox.putBack(begun(snapshot, this.#family));
      return record.readBack;
    }
    const isLarge = record.changedPorts >= largeSync;
    if (isLarge) await nextTurn();
    observer.synced(record, snapshot);
    if (isLarge) await nextTurn();
    observer.afterSync({ record, changed: this.#sync.changed, routes: () => this.#sync.routes! });
    return record.readBack;
  }

  /** Called in the middle of a long Sync. */
  #hasChange(): boolean {
    this.#inbox.request();
    return !this.#inbox.isEmpty;
  }

  async #verify(trigger: "drift" | "resync", signal: AbortSignal): Promise<void> {
    const what = this.#drifted ?? "compared with the host";
    this.#drifted = null;
    const found = await this.#sync.verify(trigger, signal);
    const observer = this.#observer;
    if ("failed" in found) {
      this.#drifted ??= what;
      this.#readableAt = this.#options.clock.steady() + this.#retryMs();
      observer.readBack(this.#family, null, found.failed);
    } else observer.readBack(this.#family, found.differences, what);
  }
}

/** A Snapshot whose changes are routed and reported already, but not all applied. */
function begun(snapshot: Snapshot, family: Family): Snapshot {
  return {
    ...snapshot,
    [family]: { ...snapshot[family], changed: new Set<string>() },
    triggeredAt: { ...snapshot.triggeredAt, [family]: [] },
  };
}
