// How a host differs from what it should hold, a line for each difference; nothing is changed.
import type { ValidConfig } from "../config/config.ts";
import type { ModeName } from "../config/modes.ts";
import { inUseHere } from "../host/iptables/back-end.ts";
import { starter } from "../host/iptables/command.ts";
import { openIptablesHost } from "../host/iptables/host.ts";
import { openIpvsHost } from "../host/ipvs/host.ts";
import { NftablesHost } from "../host/nftables/host.ts";
import { type Family, families } from "../model/address.ts";
import { adopt } from "../plan/iptables/adopt.ts";
import { printPatch } from "../plan/iptables/print.ts";
import type { IptablesPlan } from "../plan/iptables/types.ts";
import { adopt as adoptIpvs } from "../plan/ipvs/adopt.ts";
import { printOperation } from "../plan/ipvs/print.ts";
import { diff, type Operation } from "../plan/nftables/diff.ts";
import { nftFamilyOf } from "../plan/nftables/types.ts";
import type { Routes } from "../routing/routes.ts";
import { compile as compileIptables } from "./iptables/compile.ts";
import { existingCounters } from "./iptables/host/setup.ts";
import { compile as compileIpvs, optionsOf } from "./ipvs/compile.ts";
import { compileTable } from "./nftables/compile.ts";
import { compile as compileUserspace } from "./userspace/compile.ts";
import { bindAddressOf } from "./userspace/host/setup.ts";
import { noRelays, type OpenRelays, relayDifferences, socketsIn, wantedRelays } from "./userspace/relays.ts";

type Place = { readonly netns?: string };

/** Which Plan a host should hold. */
export type Wanted = {
  readonly mode: ModeName;
  readonly config: Pick<ValidConfig, "ipvs" | "bindAddress">;
  /** Asks the daemon of that host for its relays. */
  readonly relays: () => Promise<Readonly<Partial<Record<Family, OpenRelays>>>>;
};

/** `routes` gives those of a family; where the kernel can be read while they are made, it is. */
export async function differences(
  routes: (family: Family) => Promise<Routes>,
  wanted: Wanted,
  place: Place,
  signal: AbortSignal,
  served: readonly Family[] = families,
): Promise<string[]> {
  const found = served.map(async (family) => {
    const search = { family, routes: () => routes(family), place, signal, wanted };
    return (await finders[wanted.mode](search)).map((line) => `${family}: ${line}`);
  });
  return (await Promise.all(found)).flat();
}

type Search = {
  readonly family: Family;
  readonly routes: () => Promise<Routes>;
  readonly place: Place;
  readonly signal: AbortSignal;
  readonly wanted: Wanted;
};

const finders: Readonly<Record<ModeName, (search: Search) => Promise<string[]>>> = {
  nftables: nftablesDifferences,
  iptables: iptablesDifferences,
  ipvs: ipvsDifferences,
  userspace: userspaceDifferences,
};

async function iptablesDifferences(search: Search): Promise<string[]> {
  const plan = compileIptables(null, await search.routes(), await existingCounters(search.place));
  return tableDifferences(plan, search);
}

async function userspaceDifferences(search: Search): Promise<string[]> {
  const { family, wanted } = search;
  const routes = await search.routes();
  const have = (await wanted.relays())[family] ?? noRelays;
  const bind = bindAddressOf(family, wanted.config.bindAddress);
  const plan = compileUserspace(null, routes, { bind, socketsOf: socketsIn(have) });
  return [...relayDifferences(have, wantedRelays(routes)), ...(await tableDifferences(plan, search))];
}

async function tableDifferences(plan: IptablesPlan, { place, signal }: Search): Promise<string[]> {
  const host = await openIptablesHost(plan.family, await inUseHere(starter(place)), signal);
  const patch = printPatch(adopt(await host.read(signal), plan));
  return patch.split("\n").filter((line) => /^[-:]/.test(line));
}

async function ipvsDifferences(search: Search): Promise<string[]> {
  const { family, place, signal, wanted } = search;
  const plan = compileIpvs(null, await search.routes(), optionsOf(wanted.config));
  const host = await openIpvsHost({ family, ...place });
  try {
    const { patch } = adoptIpvs(await host.read(signal), plan);
    return [
      ...[...patch.grow, ...patch.shrink].map(printOperation),
      ...(await tableDifferences(plan.tables, search)),
    ];
  } finally {
    await host.close();
  }
}

async function nftablesDifferences({ family, routes, place, signal }: Search): Promise<string[]> {
  const host = await NftablesHost.open({ family: nftFamilyOf(family), ...place });
  try {
    const compiled = routes().then((made) => compileTable(made));
    const [have, want] = await Promise.all([host.read(compiled, signal), compiled]);
    return differenceLines(diff(have, want));
  } finally {
    await host.close();
  }
}

/** A table that is missing or must be recreated is one difference: everything in it follows from that. */
function differenceLines(operations: readonly Operation[]): string[] {
  const whole = operations.find(({ kind }) => kind === "delete table" || kind === "add table");
  return whole === undefined ? operations.flatMap(operationLines) : operationLines(whole);
}

function operationLines(operation: Operation): string[] {
  switch (operation.kind) {
    case "add table":
      return ["the whole table is missing"];
    case "delete table":
      return ["the table must be recreated"];
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
