// What the history reports: the JSON of the status socket and of `turnout history -o json`. Names are stable: docs/history.md.
import type { FrontendChange } from "../explain/compare.ts";
import type { Family } from "../model/address.ts";
import type { Cause } from "../model/snapshot.ts";

/** The history as a whole; the first line of an answer. Times are milliseconds since 1970. */
export type HistoryHead = {
  readonly kind: "history";
  readonly node: string;
  /** The first moment whose state is known; null: nothing is kept (yet). */
  readonly beginsAt: number | null;
  /** Why it does not begin earlier; null: nothing was dropped. */
  readonly dropped: Dropped | null;
  /** Changes that are kept, and their estimated size in memory. */
  readonly entries: number;
  readonly bytes: number;
  /** `seq` of the newest change; 0: there was none. */
  readonly lastSeq: number;
  /** Bytes 0: the history is off. */
  readonly limits: { readonly bytes: number; readonly ageMs: number };
  /** Where it is saved; null: in memory only. */
  readonly directory: string | null;
  /** Why it is not saved although a directory is set; null: it is. */
  readonly unsaved: string | null;
};

export type Dropped = {
  /** size, age: a limit. large: one change was larger than the limit. unreadable: the saved history could not be read. */
  readonly reason: "size" | "age" | "large" | "unreadable";
  /** Changes dropped since the daemon started. */
  readonly entries: number;
};

/** One change: everything that one Snapshot changed. */
export type HistoryEntry = {
  readonly kind: "change";
  /** Grows with every change, whatever the clock does. */
  readonly seq: number;
  /** When the daemon took the change, in milliseconds since 1970. */
  readonly at: number;
  /** restart: what changed while no daemon was running. */
  readonly origin: "watch" | "restart";
  /** By how much the clock was set since the change before; 0: it was not. */
  readonly clockStepMs: number;
  readonly causes: readonly Cause[];
  readonly moreCauses: number;
  readonly changes: readonly ServiceChange[];
  /** What changed about this Node and the ServiceCIDRs, in words. */
  readonly other: readonly string[];
  /** What was written to the kernel; absent: nothing (yet). */
  readonly written: Readonly<Partial<Record<Family, Written>>>;
};

/** What changed about one ServicePort. */
export type ServiceChange = {
  readonly family: Family;
  readonly kind: "added" | "removed" | "changed";
  /** `shop/web`. */
  readonly service: string;
  /** `shop/web:http`. */
  readonly port: string;
  readonly protocol: string;
  /** Each continues the name of the port: `lost endpoint 10.0.1.7:8080 (node-a): terminating`. */
  readonly words: readonly string[];
  /** Packets that are handled differently, as in `diff -o json`; only where the query asks for them. */
  readonly frontends?: readonly FrontendChange[];
};

/** The Sync of one IP family that wrote the change. */
export type Written = {
  /** When it ended, in milliseconds since 1970. */
  readonly at: number;
  /** From the first event of the change to the end of the Sync. */
  readonly latencyMs: number;
  readonly operations: number;
  /** Changes that this Sync wrote together, this one included. */
  readonly together: number;
  /** Objects that the kernel refused. */
  readonly refused: number;
  /** Why it failed; null: it did not. */
  readonly failed: string | null;
};

/** The answer to a question about a moment that the history does not cover. */
export type NoState = { readonly kind: "unknown"; readonly reason: string };
