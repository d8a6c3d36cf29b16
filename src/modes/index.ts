// The modes that can be at work: how each is checked, opened, paced and cleaned up. A new mode is a line here.
import { release } from "node:os";
import type { ValidConfig } from "../config/config.ts";
import type { ModeName } from "../config/modes.ts";
import type { FamilySettings } from "../config/resolve/settings.ts";
import { milliseconds } from "../config/units/duration.ts";
import { parsePortRange } from "../config/units/port-range.ts";
import { cleanUpNftables, nftablesFamilies, requireNftables } from "../host/nftables/support.ts";
import type { SysctlChange } from "../host/sysctl.ts";
import type { Family } from "../model/address.ts";
import type { Clock } from "../model/clock.ts";
import type { SysctlTarget } from "../model/sysctl.ts";
import type { RuleSelection } from "../plan/iptables/types.ts";
import { nftFamilyOf } from "../plan/nftables/types.ts";
import type { Driver } from "./driver.ts";
import { openIptables } from "./iptables/host/driver.ts";
import {
  cleanUpIptables,
  iptablesFamilies,
  prepareIptables,
  requireIptables,
} from "./iptables/host/setup.ts";
import { iptablesSysctls } from "./iptables/sysctls.ts";
import { optionsOf } from "./ipvs/compile.ts";
import { jumps, ownChains } from "./ipvs/foundation.ts";
import { openIpvs } from "./ipvs/host/driver.ts";
import { cleanUpIpvs, prepareIpvs, retreatFromIpvs } from "./ipvs/host/setup.ts";
import { ipvsSysctls } from "./ipvs/sysctls.ts";
import { openNftables } from "./nftables/host/driver.ts";
import { iptablesLeaves, ipvsLacks, ipvsLeaves, type ReadFile } from "./remarks.ts";
import type { Removed } from "./removed.ts";
import { openUserspace } from "./userspace/host/driver.ts";
import { bindAddressOf, cleanUpUserspace, mustNotBindLoopback } from "./userspace/host/setup.ts";

export type ModeOptions = {
  /** The configuration as of the start. */
  readonly config: ValidConfig;
  readonly families: readonly Family[];
  /** `syncPeriod` as it is now: it may change while the mode is at work. */
  readonly syncPeriodMs: () => number;
  /** The settings as of the start. */
  readonly settings: Readonly<Record<Family, FamilySettings>>;
  readonly clock: Clock;
  /** Network namespace to work in; ours when absent. */
  readonly netns?: string;
  /** nftables: nobody else may change the table. */
  readonly owned?: boolean;
  /** Told what went wrong on the way and does not stop us. */
  readonly tell?: (what: string) => void;
  /** Called for every kernel setting that was written. */
  readonly sysctlChanged?: (change: SysctlChange) => void;
};

export type Mode = {
  /** Families this machine can serve. */
  readonly families: () => Promise<readonly Family[]>;
  /** Throws HostError when this machine could not run the mode; changes nothing. */
  readonly requires: (place: Place) => Promise<unknown>;
  /** What this machine lacks that could be provided, in sentences. */
  readonly missing?: (read: ReadFile) => string[];
  /** What it leaves behind on this machine besides rules, in sentences. */
  readonly leftovers?: (read: ReadFile) => string[];
  /** Kernel settings that `prepare` brings about. */
  readonly sysctls?: (options: Pick<ModeOptions, "config" | "settings">) => readonly SysctlTarget[];
  /** Checks and privileged preparations; throws HostError when the mode cannot work here. */
  readonly prepare: (options: ModeOptions) => Promise<void>;
  readonly open: (family: Family, options: ModeOptions) => Promise<Driver>;
  /** Longest time between two Syncs. */
  readonly resyncMs: (config: ValidConfig) => number;
  /** Removes everything this mode ever put on the host, except what is spared, and counts it; safe to repeat. Throws HostError. */
  readonly cleanUp: (options: Place & { readonly spared?: RuleSelection }) => Promise<Removed>;
  /** What a client of a Service without endpoints meets. */
  readonly noEndpoints: "refused" | "closed";
  /** What is counted where it has endpoints, but none on this node: as kube-proxy counts in this mode. */
  readonly countsLocal: "ports" | "services";
  /** Where the gate asks for it, listeners of our own serve NodePorts on loopback. */
  readonly servesLoopback?: boolean;
  /** Cleans up behind another mode without ending connections; `waiting`: some go on, ask again later. */
  readonly release?: () => Promise<"done" | "waiting">;
  /** Flows end at sockets of the mode, which deletes those that lead to closed ones itself. */
  readonly ownsFlows?: boolean;
  /** What clean-up of other modes must spare while this one is at work. */
  readonly rules?: RuleSelection;
  /** Modes during which clean-up of this one must wait: its connections would not survive it. */
  readonly keepDuring?: readonly ModeName[];
  /** Said at every start, in the log and as an Event of the Node. */
  readonly deprecation?: { readonly reason: "IPVSDeprecation"; readonly text: string };
};

type Place = { readonly netns?: string };

const hour = 3_600_000;

/** As long as the kernel itself, unless told, keeps a UDP flow that was never answered. */
const defaultUdpIdleMs = 30_000;

export const modes: Readonly<Record<ModeName, Mode>> = {
  iptables: {
    families: () => iptablesFamilies("iptables"),
    requires: requireIptables,
    leftovers: iptablesLeaves,
    sysctls: ({ settings }) => iptablesSysctls(settings.ipv4),
    prepare: (options) => prepareIptables(options.settings.ipv4, options),
    open: (family, { syncPeriodMs, clock, netns }) =>
      openIptables({
        family,
        clock,
        canaryPeriodMs: syncPeriodMs,
        ...(netns === undefined ? {} : { netns }),
      }),
    resyncMs: (config) => Math.max(hour, milliseconds(config.minSyncPeriod)),
    cleanUp: cleanUpIptables,
    noEndpoints: "refused",
    countsLocal: "ports",
  },
  ipvs: {
    families: () => iptablesFamilies("ipvs"),
    requires: requireIptables,
    missing: ipvsLacks,
    leftovers: ipvsLeaves,
    sysctls: ({ config }) => ipvsSysctls(config.ipvs.strictARP, release()),
    prepare: ({ config, ...options }) => prepareIpvs(config, options),
    open: (family, { config, clock, netns }) =>
      openIpvs({ family, clock, ...optionsOf(config), ...(netns === undefined ? {} : { netns }) }),
    // Nothing tells when somebody changes IPVS or a set: they are compared with the host every period.
    resyncMs: (config) => Math.max(milliseconds(config.syncPeriod), milliseconds(config.minSyncPeriod)),
    cleanUp: cleanUpIpvs,
    noEndpoints: "refused",
    countsLocal: "services",
    release: () => retreatFromIpvs({}),
    rules: { jumps, chains: ownChains },
    keepDuring: ["iptables"],
    deprecation: {
      reason: "IPVSDeprecation",
      text: "The ipvs proxier has been deprecated and will be disabled by default in Kubernetes 1.40 and removed in Kubernetes 1.43. Migrate to the 'nftables' proxier instead.",
    },
  },
  nftables: {
    families: nftablesFamilies,
    requires: async (place) => requireNftables({ ...place, families: await nftablesFamilies() }),
    prepare: requireNftables,
    open: (family, { netns, owned }) =>
      openNftables({
        family: nftFamilyOf(family),
        ...(netns === undefined ? {} : { netns }),
        ...(owned === undefined ? {} : { owned }),
      }),
    resyncMs: (config) => Math.max(hour, milliseconds(config.minSyncPeriod)),
    cleanUp: async (place) => ({ tables: await cleanUpNftables(place) }),
    noEndpoints: "refused",
    countsLocal: "ports",
    servesLoopback: true,
  },
  userspace: {
    families: () => iptablesFamilies("userspace"),
    requires: requireIptables,
    prepare: async ({ config }) => mustNotBindLoopback(config.bindAddress),
    open: (family, { config, clock }) => {
      const range = parsePortRange(config.portRange);
      return openUserspace({
        family,
        clock,
        bind: bindAddressOf(family, config.bindAddress),
        portRange: range.ok ? range.value : null,
        udpIdleMs: milliseconds(config.conntrack.udpTimeout) || defaultUdpIdleMs,
      });
    },
    // Rules have no canary: they are compared with the host every period, as kube-proxy ensured them.
    resyncMs: (config) => Math.max(milliseconds(config.syncPeriod), milliseconds(config.minSyncPeriod)),
    cleanUp: cleanUpUserspace,
    noEndpoints: "closed",
    countsLocal: "ports",
    ownsFlows: true,
  },
};
