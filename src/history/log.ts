// The bounded log of changes: the newest Snapshot, and for each change what undoes it, as text whose size is known.
import type { Family } from "../model/address.ts";
import type { Cause, Snapshot } from "../model/snapshot.ts";
import type { Change } from "./change.ts";
import type { Dropped, HistoryEntry, NoState, Written } from "./entry.ts";
import { Past } from "./past.ts";

/** On both clocks: `at` in milliseconds since 1970, `steadyAt` on the one that is never set. */
export type Moment = { readonly at: number; readonly steadyAt: number };

export type Limits = { readonly bytes: number; readonly ageMs: number };

/** A change as it is kept. */
export type Recorded = Pick<HistoryEntry, "origin" | "clockStepMs" | "moreCauses"> & {
  readonly causes: readonly Cause[];
  /** Names of the pods of Endpoints that changed, by address. */
  readonly pods?: Readonly<Record<string, string>>;
  /** What leads back to the state before. */
  readonly undo: Change;
};

export type Stored = Moment & {
  readonly seq: number;
  /** A `Recorded` as JSON in ASCII: a byte per character, and nothing of the cluster is kept alive. */
  readonly text: string;
  /** Filled in when the Syncs end. */
  readonly written: Partial<Record<Family, Written>>;
};

/** Objects around the text, and what was written. */
const bytesPerEntry = 600;

export class HistoryLog {
  readonly limits: Limits;
  #stored: Stored[] = [];
  #bytes = 0;
  #seq = 0;
  #latest: Snapshot | null = null;
  #beginsAt: number | null = null;
  #dropped: Dropped | null = null;

  constructor(limits: Limits) {
    this.limits = limits;
  }

  /** The state that the newest change led to; null: none is known yet. */
  get latest(): Snapshot | null {
    return this.#latest;
  }

  get bytes(): number {
    return this.#bytes;
  }

  get size(): number {
    return this.#stored.length;
  }

  /** Of the newest change; 0: there was none. */
  get lastSeq(): number {
    return this.#seq;
  }

  get beginsAt(): number | null {
    return this.#beginsAt;
  }

  get dropped(): Dropped | null {
    return this.#dropped;
  }

  /** Oldest first; a copy. */
  get stored(): readonly Stored[] {
    return [...this.#stored];
  }

  /** The state at the start. `earlier`: a saved history that ends with this state. */
  begin(latest: Snapshot, at: number, earlier: Earlier = nothingEarlier): void {
    this.#latest = latest;
    this.#stored = [...earlier.stored];
    this.#bytes = this.#stored.reduce((sum, each) => sum + bytesOf(each), 0);
    this.#seq = this.#stored.at(-1)?.seq ?? 0;
    this.#beginsAt = earlier.beginsAt ?? at;
    this.#dropped = earlier.dropped;
    this.#shrink();
  }

  /**
   * A change that led to `latest`; `written` may be filled in later. Returns what was kept; null: the change is larger than
   * the limit.
   */
  append(recorded: Recorded, now: Moment, latest: Snapshot, written: Stored["written"] = {}): Stored | null {
    const text = asciiText(recorded);
    const stored: Stored = { seq: ++this.#seq, ...now, text, written };
    this.#latest = latest;
    this.#stored.push(stored);
    this.#bytes += bytesOf(stored);
    const isTooLarge = bytesOf(stored) > this.limits.bytes;
    this.#shrink(isTooLarge ? "large" : "size");
    this.expire(now.steadyAt);
    return isTooLarge ? null : stored;
  }

  /** Drops what is older than the limit. */
  expire(steadyNow: number): void {
    for (let [first] = this.#stored; first !== undefined; [first] = this.#stored) {
      if (steadyNow - first.steadyAt <= this.limits.ageMs) return;
      this.#drop("age");
    }
  }

  #shrink(reason: "size" | "large" = "size"): void {
    while (this.#bytes > this.limits.bytes && this.#stored.length > 0) this.#drop(reason);
  }

  /** The oldest one: then the state that it led to is the first that is known. */
  #drop(reason: Dropped["reason"]): void {
    const oldest = this.#stored.shift()!;
    this.#bytes -= bytesOf(oldest);
    this.#beginsAt = oldest.at;
    this.#dropped = { reason, entries: (this.#dropped?.entries ?? 0) + 1 };
  }
}

/** A saved history. */
export type Earlier = {
  readonly stored: readonly Stored[];
  readonly beginsAt: number | null;
  readonly dropped: Dropped | null;
};

export const nothingEarlier: Earlier = { stored: [], beginsAt: null, dropped: null };

export function bytesOf({ text }: Pick<Stored, "text">): number {
  return text.length + bytesPerEntry;
}

export function recordedIn({ text }: Pick<Stored, "text">): Recorded {
  return JSON.parse(text) as Recorded;
}

/** The state at a moment: that of the last change, in their order, whose time is not after it. Pauses after each change. */
export function* stateAt(log: HistoryLog, at: number): Generator<void, Snapshot | NoState> {
  if (log.latest === null) return { kind: "unknown", reason: "the history has not begun yet" };
  const past = new Past(log.latest);
  const { beginsAt } = log;
  for (const stored of log.stored.toReversed()) {
    if (stored.at <= at) return past.snapshot();
    past.undo(recordedIn(stored).undo);
    yield;
  }
  if (at < beginsAt!) return { kind: "unknown", reason: beginning(beginsAt!, log.dropped) };
  return past.snapshot();
}

/** `history begins at 2026-01-02T03:04:05.000Z; older changes were dropped because of the size limit` */
export function beginning(beginsAt: number, dropped: Dropped | null, time = isoTime): string {
  const why = dropped === null ? "" : `; ${lossText(dropped)}`;
  return `history begins at ${time(beginsAt)}${why}`;
}

/** `older changes were dropped because of the size limit` */
export function lossText({ reason }: Dropped): string {
  return reasons[reason];
}

const reasons: Readonly<Record<Dropped["reason"], string>> = {
  size: "older changes were dropped because of the size limit",
  age: "older changes were dropped because of the age limit",
  large: "older changes were dropped because one change was larger than the size limit",
  unreadable: "the saved history could not be read",
};

function isoTime(ms: number): string {
  return new Date(ms).toISOString();
}

/** JSON in ASCII. */
export function asciiText(recorded: Recorded): string {
  return JSON.stringify(recorded).replace(
    /[^\0-\x7f]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}
