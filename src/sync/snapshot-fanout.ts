// One stream of Snapshots for families of different pace: those that arrive while a family is busy are merged for it.
import type { Family } from "../model/address.ts";
import { Notifier } from "../model/notifier.ts";
import type { Causes, Snapshot } from "../model/snapshot.ts";

type FanoutObserver = {
  arrived(snapshot: Snapshot): void;
  queued(family: Family): void;
};

export class SnapshotFanout {
  readonly #snapshots: AsyncIterable<Snapshot>;
  readonly #observer: FanoutObserver;
  readonly #inboxes: Inbox[] = [];
  readonly #wanted = new Notifier();

  constructor(snapshots: AsyncIterable<Snapshot>, observer: FanoutObserver) {
    this.#snapshots = snapshots;
    this.#observer = observer;
  }

  inboxOf(family: Family): Inbox {
    const inbox = new Inbox(family, () => this.#wanted.notify());
    this.#inboxes.push(inbox);
    return inbox;
  }

  /** Until the Snapshots end. They are requested only while a family waits for one, so that changes accumulate. */
  async run(signal: AbortSignal): Promise<void> {
    const snapshots = this.#snapshots[Symbol.asyncIterator]();
    for (;;) {
      await this.#wanted.notified(signal);
      const next = await snapshots.next();
      if (next.done === true) break;
      this.#observer.arrived(next.value);
      for (const inbox of this.#inboxes) if (inbox.put(next.value)) this.#observer.queued(inbox.family);
    }
    for (const inbox of this.#inboxes) inbox.end();
  }
}

/** What one family has not taken yet. */
export class Inbox {
  readonly family: Family;
  readonly #request: () => void;
  #content: Snapshot | null = null;
  #seen: Snapshot | null = null;
  #ended = false;
  /** Called when a Snapshot is put in, or no more will come. */
  onChange: () => void = () => {};
  /** Called with a Snapshot that changes nothing for this family and replaces the last one. */
  onUnchanged: (snapshot: Snapshot) => void = () => {};

  constructor(family: Family, request: () => void) {
    this.family = family;
    this.#request = request;
  }

  get isEmpty(): boolean {
    return this.#content === null;
  }

  get ended(): boolean {
    return this.#ended;
  }

  /** Requests a Snapshot as soon as there is one. */
  request(): void {
    if (this.isEmpty && !this.#ended) this.#request();
  }

  /** Whether there is anything in it for this family. */
  put(snapshot: Snapshot): boolean {
    const isChange = this.#seen === null || concerns(this.family, this.#seen, snapshot);
    this.#seen = snapshot;
    if (this.#content !== null) this.#content = merged(this.#content, snapshot, this.family);
    else if (isChange) this.#content = snapshot;
    else this.onUnchanged(snapshot);
    this.onChange();
    return isChange;
  }

  end(): void {
    this.#ended = true;
    this.onChange();
  }

  /** Keeps what is not applied yet, merged with what arrived since. */
  putBack(snapshot: Snapshot): void {
    this.#content = this.#content === null ? snapshot : merged(snapshot, this.#content, this.family);
    this.onChange();
  }

  take(): Snapshot | null {
    const content = this.#content;
    this.#content = null;
    return content;
  }
}

/** Other ServicePorts or ServiceCIDRs, rewritten slices, or another zone. */
function concerns(family: Family, before: Snapshot, now: Snapshot): boolean {
  if (now[family].changed.size > 0 || now.triggeredAt[family].length > 0) return true;
  return before[family].serviceCIDRs !== now[family].serviceCIDRs || before.node?.zone !== now.node?.zone;
}

/** Should a Sync hang, samples of latency must not fill the memory. */
const mostTriggers = 10_000;

/** The later one, for a family that has not taken the earlier one. */
function merged(earlier: Snapshot, later: Snapshot, family: Family): Snapshot {
  const triggers = [...earlier.triggeredAt[family], ...later.triggeredAt[family]];
  return {
    ...later,
    [family]: { ...later[family], changed: union(earlier[family].changed, later[family].changed) },
    triggeredAt: { ...later.triggeredAt, [family]: triggers.slice(0, mostTriggers) },
    causes: bothCauses(earlier.causes, later.causes),
  };
}

/** Objects that a merged Snapshot names; of more, only the number. */
const mostCauses = 100;

function bothCauses(earlier: Causes, later: Causes): Causes {
  const objects = [...earlier.objects, ...later.objects];
  const named = objects.slice(0, mostCauses);
  return { objects: named, more: earlier.more + later.more + objects.length - named.length };
}

function union<T>(some: ReadonlySet<T>, others: ReadonlySet<T>): ReadonlySet<T> {
  return others.size === 0 ? some : new Set([...some, ...others]);
}
