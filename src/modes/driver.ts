// What the sync loop needs of a running mode: apply Routes to the host and report what that took.
import type { CountGap } from "../model/count-gaps.ts";
import type { Problem } from "../model/problem.ts";
import type { PortKey } from "../model/snapshot.ts";
import type { PortRoutes, Routes } from "../routing/routes.ts";
import type { OpenRelays } from "./userspace/relays.ts";

/** A mode running for one IP family of one host. It holds the state applied last, or that the state is unknown. */
export type Driver = {
  /**
   * Applies the Routes, which must derive from the previous ones. Refused objects are left out, and retried when they
   * change or when `retryRefused` is true; throws HostError if nothing could be applied. A change that takes several
   * transactions may be left `unfinished` once `isSuperseded` returns true: a newer Snapshot waits.
   */
  sync(
    routes: Routes,
    signal: AbortSignal,
    retryRefused?: boolean,
    isSuperseded?: () => boolean,
  ): Promise<Applied>;
  /**
   * Receives the Routes of each slice of a large change before the `sync` with all of it. Changes the host only where it
   * has nothing to lose: a mode whose table does not exist yet may add to it. What fails is left to `sync`.
   */
  prepare?(routes: Routes, signal: AbortSignal): Promise<void>;
  /** Compares the host with the state applied last and repairs differences. */
  verify(signal: AbortSignal): Promise<Verified>;
  /** Calls back when another process changed our objects, from the first Sync until the signal aborts. */
  watch(onForeignChange: (what: string) => void, signal: AbortSignal): Promise<void>;
  /** What the mode cannot serve of a ServicePort on any host. */
  unserved(routed: PortRoutes): readonly Problem[];
  /** The current state, for metrics, status and records; cheap enough for every Sync. */
  report(): DriverReport;
  /** Reads what the kernel has counted; absent: this mode does not count, or was not asked to. */
  readonly readCounts?: ((signal: AbortSignal) => Promise<Counted>) | undefined;
  /** Rules stay, in a form that any other program can take over. */
  close(): Promise<void>;
};

/** What is counted of ServicePorts. */
export type Counted = {
  readonly ports: ReadonlyMap<PortKey, PortCounts>;
  /** Between these moments counts were lost: another program deleted what counts. Oldest first; the latest few. */
  readonly gaps: readonly CountGap[];
};

/** Since the objects that count exist, also before this process. No number decreases while the driver is open. */
export type PortCounts = {
  readonly connections: number;
  /** Packets that were rejected or dropped because there was no endpoint; null: this mode does not count them. */
  readonly refused: number | null;
  /** Packets that were dropped because of their source; null: this mode does not count them. */
  readonly outOfRange: number | null;
  /** Connections by endpoint, `address:port`; null: not counted. */
  readonly endpoints: ReadonlyMap<string, number> | null;
};

export type DriverReport = {
  /** Whether the kernel rejects changes to our table by other processes; only nftables mode can own its table. */
  readonly tableOwned: boolean;
  /** How many deletions of unused objects failed; only nftables mode defers deletions. */
  readonly cleanupFailures: number;
  /** Rules per table that the last attempt wanted to hold and to write, whether or not it succeeded; only iptables mode. */
  readonly rules: readonly RuleCount[];
  /** Features that the host lacks and the mode works without; the same array until it changes. */
  readonly lacks: readonly Problem[];
  /** Lists the open relays, which takes time; null: the mode has none. */
  readonly relays: (() => OpenRelays) | null;
};

/** The same array for every driver, so that comparing by identity finds no change. */
export const noProblems: readonly Problem[] = [];

export const emptyReport: DriverReport = {
  tableOwned: false,
  cleanupFailures: 0,
  rules: [],
  lacks: noProblems,
  relays: null,
};

export type Applied = {
  /** Whether the host was read first, because what it held was not known. */
  readonly readBack: boolean;
  readonly operations: number;
  readonly bytes: number;
  /** Attempts that the host refused before this one. */
  readonly retries?: number;
  /** Objects the host refused; everything else is in place, and they will be tried again. */
  readonly refused: readonly Problem[];
  /** Newer Routes go first; the next sync continues with the rest. */
  readonly unfinished?: boolean;
};

export type Verified = {
  readonly differences: number;
  /** What it took to repair them; absent when nothing was written. */
  readonly repair?: Repair;
};

export type Repair = Pick<Applied, "operations" | "bytes"> & {
  /** Of modes that write rules. */
  readonly rules?: readonly RuleCount[];
};

/** How many rules we want to hold in a table, and how many of them a Sync wrote or tried to. */
export type RuleCount = { readonly table: string; readonly held: number; readonly written: number };
