// Turns one family: no more often than asked, again after failures, now and then without reason, at once after drift.
import type { Family } from "../model/address.ts";
import { Notifier } from "../model/notifier.ts";
import type { Snapshot } from "../model/snapshot.ts";
import type { Driver } from "../modes/driver.ts";
import { FamilySync } from "./family-sync.ts";
import type { LoopObserver, LoopOptions } from "./loop.ts";
import type { Trigger } from "./record.ts";
import type { Inbox } from "./snapshot-fanout.ts";

/** Repairs come at once, but not in a storm. */
const driftGapMs = 100;

type Reason = "drift" | "news" | "retry" | "resync";

export class FamilyLoop {
  readonly #options: LoopOptions;
  readonly #observer: LoopObserver;
  readonly #family: Family;
  readonly #driver: Driver;
  readonly #inbox: Inbox;
  readonly #sync: FamilySync;
  /** Rings when there may be a reason to turn. */
  readonly #notifier = new Notifier();
  /** What somebody else changed on the host; null: nothing that we know of. */
  #drifted: string | null = null;
  /** A host that could not be read is left alone until then, unless it is changed again. */
  #readableAt = Number.NEGATIVE_INFINITY;
  #woken = false;
  #last: Snapshot | null = null;
  #lastEnd = Number.NEGATIVE_INFINITY;
  /** The same without repairs, and of repairs alone: each has a pace of its own. */
  #lastPacedEnd = Number.NEGATIVE_INFINITY;
  #lastRepairEnd = Number.NEGATIVE_INFINITY;

  constructor(family: Family, driver: Driver, inbox: Inbox, options: LoopOptions, observer: LoopObserver) {
    this.#options = options;
    this.#observer = observer;
    this.#family = family;
    this.#driver = driver;
    this.#inbox = inbox;
    this.#sync = new FamilySync(family, driver, () => options.clock.wall());
    inbox.onNews = () => this.#notifier.notify();
    inbox.onQuiet = (snapshot) => {
      this.#last = snapshot;
    };
  }

  /** Begins to listen to the host. */
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

  /** Turns even though no Snapshot is new. */
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
      else await this.#turn(reason, signal);
    }
  }

  /** What comes next if nothing happens, and when; asks for news once they would be welcome. */
  #next(): readonly [at: number, reason: Reason] {
    const newsAt = this.#sync.unfinished
      ? Number.NEGATIVE_INFINITY
      : this.#lastPacedEnd + this.#options.pace().minGapMs;
    const hasNews = !this.#inbox.isEmpty || this.#woken;
    const isTimeForNews = newsAt <= this.#options.clock.steady();
    if (isTimeForNews && !hasNews) this.#inbox.ask();
    const turn = isTimeForNews && !hasNews ? this.#nextWithoutNews() : ([newsAt, "news"] as const);
    if (this.#drifted === null || this.#last === null) return turn;
    // The longest due comes first: neither constant news nor constant changes by others keep the other waiting.
    const repairAt = Math.max(this.#lastRepairEnd + driftGapMs, this.#readableAt);
    return repairAt < turn[0] ? [repairAt, "drift"] : turn;
  }

  #nextWithoutNews(): readonly [at: number, reason: Reason] {
    if (this.#last === null) return [Number.POSITIVE_INFINITY, "news"];
    if (this.#sync.incomplete) return [this.#lastEnd + this.#retryMs(), "retry"];
    return [this.#lastEnd + this.#options.pace().resyncMs, "resync"];
  }

  #retryMs(): number {
    const { retryMs, resyncMs } = this.#options.pace();
    return Math.min(retryMs, resyncMs);
  }

  /** Until that moment, or until there may be a better reason. */
  async #rest(until: number, signal: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    const ms = until - clock.steady();
    const cancel = Number.isFinite(ms) ? clock.after(ms, () => this.#notifier.notify()) : () => {};
    await this.#notifier.notified(signal).finally(cancel);
  }

  async #turn(reason: Reason, signal: AbortSignal): Promise<void> {
    if (reason === "drift" || reason === "resync") await this.#verify(reason, signal);
    const isFirst = this.#last === null;
    const news = reason === "news" ? this.#inbox.take() : null;
    if (reason === "news") this.#woken = false;
    if (news !== null) {
      this.#last = news;
      this.#observer.taken(this.#family, news);
    }
    if (this.#last !== null)
      await this.#syncOnce(this.#last, news !== null, this.#trigger(reason, isFirst), signal);
    this.#lastEnd = this.#options.clock.steady();
    if (reason === "drift") this.#lastRepairEnd = this.#lastEnd;
    else this.#lastPacedEnd = this.#lastEnd;
  }

  #trigger(reason: Reason, isFirst: boolean): Trigger {
    if (isFirst) return "first";
    if (reason !== "news") return reason;
    return this.#sync.incomplete ? "retry" : "change";
  }

  async #syncOnce(snapshot: Snapshot, isNew: boolean, trigger: Trigger, signal: AbortSignal): Promise<void> {
    const observer = this.#observer;
    const { settings } = this.#options;
    const seen = snapshot[this.#family];
    // A turn without a new Snapshot repeats the last one: nothing in it is changed any more.
    const wanted = isNew ? seen : { ...seen, changed: new Set<string>() };
    const { conflicts } = this.#sync;
    const record = await this.#sync.turn(wanted, settings(this.#family, snapshot), trigger, signal, () =>
      this.#hasNews(),
    );
    if (this.#sync.conflicts !== conflicts) observer.conflicts(this.#family, this.#sync.conflicts);
    if (this.#sync.unfinished) {
      this.#inbox.putBack(begun(snapshot, this.#family));
      return;
    }
    observer.synced(record, snapshot);
    observer.afterSync({ record, snapshot, routes: () => this.#sync.routes! });
  }

  /** Asked in the middle of a long Sync. */
  #hasNews(): boolean {
    this.#inbox.ask();
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

/** A Snapshot whose changes are routed and reported already, but not all brought about. */
function begun(snapshot: Snapshot, family: Family): Snapshot {
  return {
    ...snapshot,
    [family]: { ...snapshot[family], changed: new Set<string>() },
    triggeredAt: { ...snapshot.triggeredAt, [family]: [] },
  };
}
