// What the loop asks of a Mode at work: bring the host to these Routes, and say what that took.
import type { Problem } from "../model/problem.ts";
import type { PortRoutes, Routes } from "../routing/routes.ts";
import type { OpenRelays } from "./userspace/relays.ts";

/** One Mode at work on one family of one host. It remembers what it has applied, or that it does not know. */
export type Driver = {
  /** Whether others are kept from changing what is ours; only nftables mode can. */
  readonly owned?: boolean;
  /** Of nftables mode: how often what was no longer used could not be deleted. */
  readonly cleanUpFailures?: number;
  /** Of modes that write rules: those it last set out to hold and to write, by table, whatever became of it. */
  readonly rules?: readonly RuleCount[];
  /**
   * Brings the host to the Routes, which must be made of those before. Refused objects are set aside, and tried again
   * when they change or when `retryRefused` says so; throws HostError if nothing could be done. A change that takes
   * several transactions may be left `unfinished` once `hasNews` returns true.
   */
  sync(
    routes: Routes,
    signal: AbortSignal,
    retryRefused?: boolean,
    hasNews?: () => boolean,
  ): Promise<Applied>;
  /** Compares the host with what was applied last and repairs what differs. */
  verify(signal: AbortSignal): Promise<Verified>;
  /** Calls back when somebody else changed what is ours, from the first Sync on until the signal aborts. */
  watch(onForeignChange: (what: string) => void, signal: AbortSignal): Promise<void>;
  /** What the machine lacks that the mode works without; the same list as long as nothing changed. */
  readonly lacks?: () => readonly Problem[];
  /** What this mode cannot serve of a ServicePort, whatever the host can do. */
  readonly unserved?: (routed: PortRoutes) => readonly Problem[];
  /** What it has besides rules: sockets of its own that take packets. */
  readonly relays?: () => OpenRelays;
  /** An orderly end: rules stay, in a form that any other program can take over. */
  close(): Promise<void>;
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
