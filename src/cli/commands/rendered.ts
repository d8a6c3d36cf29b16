// What each mode would put on a node, as text that its own tools know and as data.
import type { ValidConfig } from "../../config/config.ts";
import type { ModeName } from "../../config/modes.ts";
import { compile as compileIptables } from "../../modes/iptables/compile.ts";
import { compile as compileIpvs, optionsOf } from "../../modes/ipvs/compile.ts";
import { compileTable } from "../../modes/nftables/compile.ts";
import { bindAddressOf } from "../../modes/userspace/bind-address.ts";
import { compile as compileUserspace } from "../../modes/userspace/compile.ts";
import { socketsIn, wantedRelays } from "../../modes/userspace/relays.ts";
import { chainsOf } from "../../plan/iptables/plan.ts";
import { print as printIptables } from "../../plan/iptables/print.ts";
import { type IptablesPlan, tableNames } from "../../plan/iptables/types.ts";
import { print as printIpvs } from "../../plan/ipvs/print.ts";
import type { IpvsPlan } from "../../plan/ipvs/types.ts";
import { print as printNftables } from "../../plan/nftables/print.ts";
import type { NftTable } from "../../plan/nftables/types.ts";
import type { Routes } from "../../routing/routes.ts";

/** Made when asked for: of a large cluster each takes a while. */
type Rendered = { readonly text: () => string; readonly data: () => unknown };

export const renderedBy: Readonly<Record<ModeName, (routes: Routes, config: ValidConfig) => Rendered>> = {
  nftables: (routes) => {
    const table = compileTable(routes);
    return { text: () => printNftables(table), data: () => tableData(table) };
  },
  iptables: (routes) => {
    // With the packet counters that most kernels have.
    const plan = compileIptables(null, routes, { invalidDropped: true, localhostNodePorts: true });
    return { text: () => headed(routes, printIptables(plan)), data: () => chainData(plan) };
  },
  ipvs: (routes, config) => {
    const plan = compileIpvs(null, routes, optionsOf(config));
    return { text: () => headed(routes, printIpvs(plan)), data: () => ipvsData(plan) };
  },
  userspace: (routes, { bindAddress }) => {
    const bind = bindAddressOf(routes.settings.family, bindAddress);
    const plan = compileUserspace(null, routes, { bind, socketsOf: socketsIn(wantedRelays(routes)) });
    return {
      text: () => headed(routes, `${standInNote}\n${printIptables(plan)}`),
      data: () => chainData(plan),
    };
  },
};

function headed({ settings }: Routes, text: string): string {
  return `# ${settings.family}\n${text}`;
}

const standInNote =
  "# Ports of relays are stand-ins, numbered by Service: a daemon takes ports of portRange, or what the kernel gives it.";

function ipvsData(plan: IpvsPlan): unknown {
  const servers = [...plan.servers.entries()].map(([key, claims]) => {
    const { owner, server } = claims[0]!;
    return [key, { owner, ...server, destinations: [...server.destinations.keys()] }] as const;
  });
  return {
    servers: Object.fromEntries(servers.sort(([a], [b]) => (a < b ? -1 : 1))),
    addresses: [...plan.addresses.keys()].sort(),
    sets: plan.sets,
    entries: [...plan.entries.keys()].sort(),
    ...(chainData(plan.tables) as object),
  };
}

function chainData(plan: IptablesPlan): unknown {
  const { jumps, lastJumps = [] } = plan.foundation;
  const chains = tableNames.map((table) => [table, chainsOf(plan, table)] as const);
  return { jumps: [...jumps, ...lastJumps], ...Object.fromEntries(chains) };
}

function tableData(table: NftTable): unknown {
  const plain = <V>(maps: ReadonlyMap<string, ReadonlyMap<string, V>>) =>
    Object.fromEntries([...maps].map(([name, map]) => [name, [...map.values()]]));
  return {
    sets: [...table.sets.values()],
    chains: [...table.chains.values()],
    counters: [...table.counters],
    elements: plain(table.elements),
    spreads: plain(table.spreads),
  };
}
