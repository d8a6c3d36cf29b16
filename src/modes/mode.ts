// The one value that describes a mode: what it does to packets, and how it is checked, opened and removed.

import type { ValidConfig } from "../config/config.ts";
import type { ModeName } from "../config/modes.ts";
import { writtenPeriod } from "../config/pace.ts";
import type { FamilySettings } from "../config/resolve/settings.ts";
import { milliseconds } from "../config/units/duration.ts";
import type { Address, Family } from "../model/address.ts";
import type { Clock } from "../model/clock.ts";
import type { ServicePort } from "../model/snapshot.ts";
import type { SysctlChange, SysctlTarget } from "../model/sysctl.ts";
import type { RuleSelection } from "../plan/iptables/types.ts";
import type { Behavior } from "../routing/behavior.ts";
import type { Packet } from "../routing/decide.ts";
import type { Routes } from "../routing/routes.ts";
import type { Driver } from "./driver.ts";
import type { ReadFile } from "./read-file.ts";
import type { Removed } from "./removed.ts";
import type { RelayedDecision } from "./userspace/decide.ts";
import type { OpenRelays } from "./userspace/relays.ts";
import type { RelayedWalk } from "./userspace/walk.ts";

export type Mode = {
  readonly name: ModeName;
  readonly behavior: Behavior;
  /**
   * How changes by other processes are found. watched: the kernel reports them, or a canary chain does. polled: the host
   * is compared with the Plan every `syncPeriod`.
   */
  readonly drift: "watched" | "polled";
  /** own: connections end at sockets of the mode, which deletes their stale conntrack entries itself. */
  readonly conntrack: "shared" | "own";
  /** Why `--traffic` does not count connections; null: it does. */
  readonly uncounted: string | null;
  /** Logged at every start, and recorded as an Event of the Node. */
  readonly deprecation: Deprecation | null;
  /** Kernel modules that it uses; a kernel may have them built in. */
  readonly modules: readonly string[];
  /** Rules that the cleanup of other modes must keep while this mode is running. */
  readonly keepRules: RuleSelection | null;
  /** Modes during which this one is not cleaned up, because its connections would break. */
  readonly keepDuring: readonly ModeName[];

  /** What happens to the first packet of a connection, and why. */
  decide(routes: Routes, packet: Packet): RelayedDecision;
  /** What the mode would write for these Routes, without a host. */
  preview(routes: Routes, config: ValidConfig): Preview;

  /** IP families that this host supports. */
  families(): Promise<readonly Family[]>;
  /** Throws HostError if the mode cannot run here; changes nothing. */
  check(at: Netns): Promise<void>;
  /** What this host lacks that an operator can provide. */
  missing(read: ReadFile): readonly string[];
  /** What the mode leaves on this host besides rules. */
  leftovers(read: ReadFile): readonly string[];
  /** Kernel settings that `prepare` writes. */
  sysctls(options: Pick<ModeOptions, "config" | "settings">): readonly SysctlTarget[];
  /** Checks and privileged preparations; throws HostError if the mode cannot run here. */
  prepare(options: ModeOptions): Promise<void>;
  open(family: Family, options: ModeOptions): Promise<Driver>;
  /** How the host differs from what it should hold, one line per difference; changes nothing. */
  differences(query: HostQuery): Promise<readonly string[]>;
  /** Every path a new packet can take through the Plan, and through what the host holds. */
  walkHost(query: HostQuery, packet: Packet): Promise<HostWalks>;
  /** Clients that the host keeps for the endpoints of a ServicePort with session affinity; absent: the mode does not report them. */
  readonly pinned?: (port: ServicePort, at: Netns, signal: AbortSignal) => Promise<readonly Pinned[]>;
  /** Removes everything the mode has put on the host, and counts it; safe to repeat. Throws HostError. */
  cleanup(options: CleanupOptions): Promise<Removed>;
  /** The same while another mode is running, without breaking connections; draining: some remain, call it again later. */
  release(options: CleanupOptions): Promise<Removed | "draining">;
};

/** Functions, because printing a large cluster takes time. */
export type Preview = { readonly text: () => string; readonly json: () => unknown };

/** The network namespace to use; the current one when absent. */
export type Netns = { readonly netns?: string };

/** A host to compare with the state it should hold. */
export type HostQuery = {
  readonly at: Netns;
  readonly family: Family;
  /** A function, so that the host can be read while the Routes are being made. */
  readonly routes: () => Promise<Routes>;
  readonly config: Pick<ValidConfig, "ipvs" | "bindAddress">;
  /** Reads the relays from the daemon of that host. */
  readonly relays: () => Promise<Readonly<Partial<Record<Family, OpenRelays>>>>;
  readonly signal: AbortSignal;
};

/** Both together, because the host is read with the help of the Plan. */
export type HostWalks = { readonly wanted: readonly Walk[]; readonly found: readonly Walk[] };

export type Walk = {
  readonly outcome: RelayedWalk["outcome"];
  /** The rules and elements that matched. */
  readonly steps: readonly string[];
};

/** Clients of one endpoint; `set`: where the host keeps them. */
export type Pinned = {
  readonly endpoint: string;
  readonly set: string;
  /** Each for so many seconds more, unless it connects again. */
  readonly clients: readonly { readonly address: Address; readonly seconds: number }[];
};

export type CleanupOptions = Netns & { readonly keep: RuleSelection | null };

type Deprecation = { readonly reason: "IPVSDeprecation"; readonly text: string };

export type ModeOptions = Netns & {
  /** The configuration at start. */
  readonly config: ValidConfig;
  readonly families: readonly Family[];
  /** The current `syncPeriod`: it may change while the mode is running. */
  readonly syncPeriodMs: () => number;
  /** The settings at start. */
  readonly settings: Readonly<Record<Family, FamilySettings>>;
  readonly clock: Clock;
  /** nftables: the kernel rejects changes of the table by other processes. */
  readonly owned?: boolean;
  /** Receives failures that do not stop the mode. */
  readonly warn?: (what: string) => void;
  /** Called for every kernel setting that was written. */
  readonly sysctlChanged?: (change: SysctlChange) => void;
};

const hourMs = 3_600_000;

/** The longest time between two Syncs. */
export function resyncPeriodMs({ drift }: Pick<Mode, "drift">, config: ValidConfig): number {
  const period = drift === "watched" ? hourMs : milliseconds(config.syncPeriod);
  return Math.max(period, milliseconds(writtenPeriod(config.pace)));
}
