// How a host differs from what it should hold, a line for each difference; nothing is changed.
import type { ValidConfig } from "../config/config.ts";
import type { Mode } from "../config/modes.ts";
import { inUseHere } from "../host/iptables/back-end.ts";
import { starter } from "../host/iptables/command.ts";
import { openIptablesHost } from "../host/iptables/host.ts";
import { openIpvsHost } from "../host/ipvs/host.ts";
import { NftablesHost } from "../host/nftables/host.ts";
import { type Family, families } from "../model/address.ts";
import { compile as compileIptables } from "../modes/iptables/compile.ts";
import { compile as compileIpvs, optionsOf } from "../modes/ipvs/compile.ts";
import { compile as compileNftables } from "../modes/nftables/compile.ts";
import { compile as compileUserspace } from "../modes/userspace/compile.ts";
import {
  noRelays,
  type OpenRelays,
  relayDifferences,
  socketsIn,
  wantedRelays,
} from "../modes/userspace/relays.ts";
import { adopt } from "../plan/iptables/adopt.ts";
import { printPatch } from "../plan/iptables/print.ts";
import type { IptablesPlan } from "../plan/iptables/types.ts";
import { adopt as adoptIpvs } from "../plan/ipvs/adopt.ts";
import { printOperation } from "../plan/ipvs/print.ts";
import { diff, type Operation } from "../plan/nftables/diff.ts";
import { unfold } from "../plan/nftables/plan.ts";
import type { Routes } from "../routing/routes.ts";
import { existingCounters } from "./iptables-support.ts";
import { bindAddressOf } from "./userspace-support.ts";

type Place = { readonly netns?: string };

/** Which Plan a host should hold. */
export type Wanted = {
  readonly mode: Mode;
  readonly config: Pick<ValidConfig, "ipvs" | "bindAddress">;
  /** Asks the daemon of that host for its relays. */
  readonly relays: () => Promise<Readonly<Partial<Record<Family, OpenRelays>>>>;
};

export async function differences(
  routes: Readonly<Record<Family, Routes>>,
  wanted: Wanted,
  place: Place,
  signal: AbortSignal,
  served: readonly Family[] = families,
): Promise<string[]> {
  const lines: string[] = [];
  for (const family of served) {
    const found = await finders[wanted.mode](routes[family], place, signal, wanted);
    lines.push(...found.map((line) => `${family}: ${line}`));
  }
  return lines;
}

type Find = (routes: Routes, place: Place, signal: AbortSignal, wanted: Wanted) => Promise<string[]>;

const finders: Readonly<Record<Mode, Find>> = {
  nftables: nftablesDifferences,
  iptables: iptablesDifferences,
  ipvs: ipvsDifferences,
  userspace: userspaceDifferences,
};

async function iptablesDifferences(routes: Routes, place: Place, signal: AbortSignal): Promise<string[]> {
  return tableDifferences(compileIptables(null, routes, await existingCounters(place)), place, signal);
}

async function userspaceDifferences(
  routes: Routes,
  place: Place,
  signal: AbortSignal,
  { config, relays }: Wanted,
): Promise<string[]> {
  const { family } = routes.settings;
  const have = (await relays())[family] ?? noRelays;
  const bind = bindAddressOf(family, config.bindAddress);
  const plan = compileUserspace(null, routes, { bind, socketsOf: socketsIn(have) });
  return [...relayDifferences(have, wantedRelays(routes)), ...(await tableDifferences(plan, place, signal))];
}

async function tableDifferences(plan: IptablesPlan, place: Place, signal: AbortSignal): Promise<string[]> {
  const host = await openIptablesHost(plan.family, await inUseHere(starter(place)), signal);
  const patch = printPatch(adopt(await host.read(signal), plan));
  return patch.split("\n").filter((line) => /^[-:]/.test(line));
}

async function ipvsDifferences(
  routes: Routes,
  place: Place,
  signal: AbortSignal,
  { config }: Wanted,
): Promise<string[]> {
  const { family } = routes.settings;
  const plan = compileIpvs(null, routes, optionsOf(config));
  const host = await openIpvsHost({ family, ...place });
  try {
    const { patch } = adoptIpvs(await host.read(signal), plan);
    return [
      ...[...patch.grow, ...patch.shrink].map(printOperation),
      ...(await tableDifferences(plan.tables, place, signal)),
    ];
  } finally {
    await host.close();
  }
}

async function nftablesDifferences(routes: Routes, place: Place, signal: AbortSignal): Promise<string[]> {
  const want = unfold(compileNftables(null, routes));
  const host = await NftablesHost.open({ family: want.family, ...place });
  try {
    return diff(await host.read(want, signal), want).flatMap(operationLines);
  } finally {
    await host.close();
  }
}

function operationLines(operation: Operation): string[] {
  switch (operation.kind) {
    case "add table":
      return ["the whole table is missing"];
    case "delete table":
      return ["the table must be made anew"];
    case "add set":
      return [`missing set ${operation.set.name}`];
    case "delete set":
      return [`foreign set ${operation.name}`];
    case "add counter":
      return [`missing counter ${operation.name}`];
    case "delete counter":
      return [`foreign counter ${operation.name}`];
    case "add chain":
      return [`missing chain ${operation.chain.name}`];
    case "add rules":
      return [`missing rules in chain ${operation.chain.name}`];
    case "flush chain":
      return [`wrong rules in chain ${operation.name}`];
    case "delete chain":
      return [`foreign chain ${operation.name}`];
    case "add elements":
      return operation.items.map(({ key }) => `missing element ${key} in ${operation.set.name}`);
    case "delete elements":
      return operation.items.map(({ key }) => `foreign element ${key} in ${operation.set.name}`);
    case "remember clients":
      return [];
  }
}
