// `turnout render`: what a Mode would put on a node, or the Routes behind it, without touching anything.
import { type Family, families } from "../model/address.ts";
import { compile as compileIptables } from "../modes/iptables/compile.ts";
import { compile as compileIpvs, type IpvsOptions, optionsOf } from "../modes/ipvs/compile.ts";
import { compile as compileNftables } from "../modes/nftables/compile.ts";
import { chainsOf } from "../plan/iptables/plan.ts";
import { print as printIptables } from "../plan/iptables/print.ts";
import { type IptablesPlan, tableNames } from "../plan/iptables/types.ts";
import { print as printIpvs } from "../plan/ipvs/print.ts";
import type { IpvsPlan } from "../plan/ipvs/types.ts";
import { unfold } from "../plan/nftables/plan.ts";
import { print as printNftables } from "../plan/nftables/print.ts";
import type { NftTable } from "../plan/nftables/types.ts";
import { printRoutes } from "../routing/print.ts";
import type { Routes } from "../routing/routes.ts";
import type { CommandWorld } from "./command.ts";
import { lookAt, lookFlags, lookFrom, lookHelp, plannedMode } from "./look.ts";
import { Mistake, withMistakes } from "./mistake.ts";
import { splitOwnFlags } from "./own-flags.ts";

export const renderHelp = `turnout render: what would be on a node, without touching anything

Usage: turnout render --source=files:DIR --node=NAME [-o routes|json|nftables|iptables|ipvs] [--mode=MODE]

${lookHelp}  -o          routes (default): who is sent where; json: the same as data;
              nftables: the table in nft's own syntax, which nft -f would load;
              iptables: the tables as iptables-save and ip6tables-save would list them;
              ipvs: what ipvsadm, ip, ipset and iptables-save would list
              with --mode, -o json prints the Plan of that mode

Example:
  turnout render --source=files:examples/shop --node=node-a -o nftables
`;

export function render(argv: readonly string[], world: CommandWorld, signal: AbortSignal): Promise<number> {
  return withMistakes("render", world, async () => {
    const { given, rest } = splitOwnFlags(argv, lookFlags);
    if (rest.includes("--help") || rest.includes("-h")) {
      world.stdout(renderHelp);
      return 0;
    }
    const wanted = given.o ?? given.output ?? given.mode ?? "routes";
    checkArguments(wanted, rest);
    const mode = wanted === "iptables" || wanted === "ipvs" ? wanted : given.mode;
    const look = await lookFrom(mode === undefined ? given : { ...given, mode }, world.version);
    if (wanted === "json" && given.mode !== undefined) plannedMode(look);
    const { routes, snapshot } = await lookAt(look, signal);
    world.stdout(printAs(wanted, routes, given.mode, optionsOf(look.config)));
    for (const { object, field, message } of snapshot.problems) {
      world.stderr(`! ${object}${field === "" ? "" : ` ${field}`}: ${message}\n`);
    }
    return 0;
  });
}

function checkArguments(output: string, rest: readonly string[]): void {
  if (rest.length > 0)
    throw new Mistake(`cannot use ${JSON.stringify(rest[0])}; --help shows what can be said`);
  if (!["routes", "json", "nftables", "iptables", "ipvs"].includes(output))
    throw new Mistake(`-o must be routes, json, nftables, iptables or ipvs, not ${JSON.stringify(output)}`);
}

function printAs(
  output: string,
  routes: Readonly<Record<Family, Routes>>,
  mode: string | undefined,
  ipvs: IpvsOptions,
): string {
  if (output === "routes") {
    const told = new Set<string>();
    return families.map((family) => `# ${family}\n${printRoutes(routes[family], told)}`).join("\n");
  }
  if (output === "iptables") {
    return families.map((family) => `# ${family}\n${printIptables(iptablesPlan(routes[family]))}`).join("\n");
  }
  if (output === "ipvs") {
    return families
      .map((family) => `# ${family}\n${printIpvs(compileIpvs(null, routes[family], ipvs))}`)
      .join("\n");
  }
  const tables = families.map((family) => unfold(compileNftables(null, routes[family])));
  if (output === "nftables") return tables.map(printNftables).join("\n");
  const data =
    mode === undefined
      ? families.map((family) => [family, jsonRoutes(routes[family])])
      : mode === "iptables"
        ? families.map((family) => [family, jsonChains(iptablesPlan(routes[family]))])
        : mode === "ipvs"
          ? families.map((family) => [family, jsonIpvs(compileIpvs(null, routes[family], ipvs))])
          : tables.map((table) => [table.family, jsonTable(table)]);
  return `${JSON.stringify(Object.fromEntries(data), null, 2)}\n`;
}

function jsonRoutes(routes: Routes): unknown {
  return Object.fromEntries(
    [...routes.ports.entries()]
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, { port, routes: each, lost }]) => [
        key,
        { service: port.service, portName: port.portName, routes: each, lost },
      ]),
  );
}

/** With the packet counters that most kernels have. */
function iptablesPlan(routes: Routes): IptablesPlan {
  return compileIptables(null, routes, { invalidDropped: true, localhostNodePorts: true });
}

function jsonIpvs(plan: IpvsPlan): unknown {
  const servers = [...plan.servers.entries()].map(([key, claims]) => {
    const { owner, server } = claims[0]!;
    return [key, { owner, ...server, destinations: [...server.destinations.keys()] }] as const;
  });
  return {
    servers: Object.fromEntries(servers.sort(([a], [b]) => (a < b ? -1 : 1))),
    addresses: [...plan.addresses.keys()].sort(),
    sets: plan.sets,
    entries: [...plan.entries.keys()].sort(),
    ...(jsonChains(plan.tables) as object),
  };
}

function jsonChains(plan: IptablesPlan): unknown {
  const chains = tableNames.map((table) => [table, chainsOf(plan, table)] as const);
  return { jumps: plan.foundation.jumps, ...Object.fromEntries(chains) };
}

function jsonTable(table: NftTable): unknown {
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
