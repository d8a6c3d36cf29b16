// What iptables mode needs of a machine before it starts, and how every trace of it is removed.

import { readFileSync } from "node:fs";
import type { ModeName } from "../../../config/modes.ts";
import type { FamilySettings } from "../../../config/resolve/settings.ts";
import { HostError } from "../../../host/error.ts";
import { detectBackEnd } from "../../../host/iptables/back-end.ts";
import { type ChainPlace, chainState } from "../../../host/iptables/chain-state.ts";
import { type Start, starter } from "../../../host/iptables/command.ts";
import { readCounter } from "../../../host/iptables/counters.ts";
import { missingGuard } from "../../../host/iptables/guards.ts";
import { openIptablesHost } from "../../../host/iptables/host.ts";
import { usableFamilies } from "../../../host/iptables/probe.ts";
import { type Family, families } from "../../../model/address.ts";
import type { SysctlChange } from "../../../model/sysctl.ts";
import type { HostTables, IptablesPatch } from "../../../plan/iptables/types.ts";
import type { CleanupOptions } from "../../mode.ts";
import { type Removed, removedRules, sumRemoved } from "../../removed.ts";
import { setSysctls } from "../../sysctls.ts";
import { type Counters, counterNames, loopbackGuarding, loopbackGuards } from "../foundation.ts";
import { removal } from "../removal.ts";
import { iptablesSysctls } from "../sysctls.ts";

type Place = { readonly netns?: string };

/** Families whose tables can be listed, which the mode needs; throws when there is none. */
export async function iptablesFamilies(mode: ModeName): Promise<readonly Family[]> {
  const start = await detectBackEnd(starter());
  const answers = await usableFamilies(start, (file) => readFileSync(file, "utf8"));
  const usable = answers.filter(({ reason }) => reason === null).map(({ family }) => family);
  if (usable.length > 0) return usable;
  const reasons = answers.map(({ family, reason }) => `${family}: ${reason}`).join("; ");
  throw new HostError("unavailable", `Cannot use ${mode} mode: ${reasons}`);
}

/** Throws when the tables of IPv4 cannot be used. */
export async function requireIptables(place: Place): Promise<void> {
  await openIptablesHost("ipv4", await detectBackEnd(starter(place)));
}

export type IptablesPreparation = Place & {
  /** Families that are served. */
  readonly families: readonly Family[];
  /** Receives failures that do not stop the mode. */
  readonly warn?: (what: string) => void;
  readonly sysctlChanged?: (change: SysctlChange) => void;
};

/** Opens loopback addresses for NodePorts where they are to answer there; not without the guard that keeps neighbours out. */
export async function prepareIptables(settings: FamilySettings, options: IptablesPreparation): Promise<void> {
  const { netns, families, warn, sysctlChanged } = options;
  const targets = families.includes("ipv4") ? iptablesSysctls(settings) : [];
  if (targets.length === 0) return;
  try {
    await guardLoopback(netns === undefined ? {} : { netns });
  } catch (error) {
    if (!(error instanceof HostError)) throw error;
    warn?.(`NodePorts do not answer on loopback addresses until the next start: ${error.message}`);
    return;
  }
  await setSysctls(targets, netns, sysctlChanged);
}

async function guardLoopback(place: Place): Promise<void> {
  const start = await detectBackEnd(starter(place));
  const host = await openIptablesHost("ipv4", start);
  const signal = new AbortController().signal;
  if ((await missingGuard(loopbackGuards, "ipv4", start, signal)) === null) return;
  await host.apply(loopbackGuarding(await host.read()));
}

/** Takes out every rule and chain of ours in every family that has tables; safe to repeat. */
export async function cleanUpIptables({ keep, ...place }: CleanupOptions): Promise<Removed> {
  return removeRules(place, (tables) => removal(tables, keep));
}

export type RemovalOptions = Place & {
  /** Without any of these chains there is nothing to remove, and the tables are not read; absent: they are always read. */
  readonly onlyWith?: readonly ChainPlace[];
  /** How programs are started; on this machine by default. */
  readonly start?: Start;
};

/** Applies what `removal` finds to remove in each family that has tables. */
export async function removeRules(
  { onlyWith, start: given, ...place }: RemovalOptions,
  removalOf: (tables: HostTables) => IptablesPatch,
): Promise<Removed> {
  const start = await detectBackEnd(given ?? starter(place));
  const parts: Removed[] = [];
  for (const family of families) {
    if (onlyWith !== undefined && (await areGone(onlyWith, family, start))) continue;
    parts.push(await removeFromFamily(family, start, removalOf));
  }
  return sumRemoved(parts);
}

async function areGone(chains: readonly ChainPlace[], family: Family, start: Start): Promise<boolean> {
  for (const chain of chains) if ((await chainState(chain, family, start)) !== "gone") return false;
  return true;
}

async function removeFromFamily(
  family: Family,
  start: Start,
  removalOf: (tables: HostTables) => IptablesPatch,
): Promise<Removed> {
  const host = await openIptablesHost(family, start).catch((error: unknown) => {
    // Without the program there was never a rule of it.
    if (error instanceof HostError && error.kind === "unavailable") return null;
    throw error;
  });
  if (host === null) return {};
  const patch = removalOf(await host.read());
  await host.apply(patch);
  return removedRules(patch);
}

/** Which packet counters there are, without making any. */
export async function existingCounters(place: Place): Promise<Counters> {
  const exists = async (counter: keyof Counters) =>
    (await readCounter(counterNames[counter], place).catch(() => null)) !== null;
  return {
    invalidDropped: await exists("invalidDropped"),
    localhostNodePorts: await exists("localhostNodePorts"),
  };
}
