// `turnout render`: what a Mode would put on a node, or the Routes behind it, without touching anything.
import { completeConfig } from "../config/complete.ts";
import { resolve } from "../config/resolve.ts";
import { type Family, families } from "../model/address.ts";
import type { Snapshot } from "../model/snapshot.ts";
import { compile as compileIptables } from "../modes/iptables/compile.ts";
import { compile as compileNftables } from "../modes/nftables/compile.ts";
import { systemClock } from "../observe/clock.ts";
import { chainsOf } from "../plan/iptables/plan.ts";
import { print as printIptables } from "../plan/iptables/print.ts";
import { type IptablesPlan, tableNames } from "../plan/iptables/types.ts";
import { unfold } from "../plan/nftables/plan.ts";
import { print as printNftables } from "../plan/nftables/print.ts";
import type { NftTable } from "../plan/nftables/types.ts";
import { printRoutes } from "../routing/print.ts";
import { type Routes, route } from "../routing/routes.ts";
import { openSource, parseSourceSpec, userAgentOf } from "../sources/index.ts";
import { realWorld } from "../sources/world.ts";
import type { CommandWorld } from "./command.ts";
import { splitOwnFlags } from "./own-flags.ts";

export const renderHelp = `turnout render: what would be on a node, without touching anything

Usage: turnout render --source=files:DIR --node=NAME [-o routes|json|nftables|iptables] [--mode=MODE]

  --source    files:PATH[,PATH…], kubeconfig:PATH, api, or a URL
  --node      the node to render for; its Node object gives addresses, pod networks and zone
  -o          routes (default): who is sent where; json: the same as data;
              nftables: the table in nft's own syntax, which nft -f would load;
              iptables: the tables as iptables-save and ip6tables-save would list them
  --mode      the mode whose Plan -o json prints: nftables or iptables
  --cluster-cidr  network of all pods; without it the Node's podCIDRs

Example:
  turnout render --source=files:examples/shop --node=node-a -o nftables
`;

export async function render(
  argv: readonly string[],
  world: CommandWorld,
  signal: AbortSignal,
): Promise<number> {
  const { given, rest } = splitOwnFlags(argv, ["source", "node", "o", "output", "mode", "cluster-cidr"]);
  if (rest.includes("--help") || rest.includes("-h")) {
    world.stdout(renderHelp);
    return 0;
  }
  const wanted = given.o ?? given.output ?? (given.mode === undefined ? "routes" : given.mode);
  const problem = mistake(given.source, given.node, wanted, rest);
  if (problem !== null) {
    world.stderr(`turnout render: ${problem}\n`);
    return 1;
  }
  const snapshot = await firstSnapshot(given.source!, given.node!, world.version, signal);
  const mode = wanted === "iptables" || given.mode === "iptables" ? "iptables" : "nftables";
  const routes = routesFor(snapshot, given.node!, given["cluster-cidr"] ?? "", mode);
  world.stdout(printAs(wanted, routes, given.mode));
  for (const { object, field, message } of snapshot.problems) {
    world.stderr(`! ${object}${field === "" ? "" : ` ${field}`}: ${message}\n`);
  }
  return 0;
}

function mistake(
  source: string | undefined,
  node: string | undefined,
  output: string,
  rest: readonly string[],
): string | null {
  if (rest.length > 0) return `cannot use ${JSON.stringify(rest[0])}; --help shows what can be said`;
  if (source === undefined) return "say where the cluster is, for example --source=files:examples/shop";
  if (node === undefined) return "say for which node, for example --node=node-a";
  if (!["routes", "json", "nftables", "iptables"].includes(output))
    return `-o must be routes, json, nftables or iptables, not ${JSON.stringify(output)}`;
  return null;
}

async function firstSnapshot(
  source: string,
  node: string,
  version: string,
  signal: AbortSignal,
): Promise<Snapshot> {
  const life = new AbortController();
  signal.addEventListener("abort", () => life.abort(), { once: true });
  try {
    const opened = await openSource(
      parseSourceSpec(source, userAgentOf(version)),
      node,
      realWorld(systemClock),
      life.signal,
    );
    for await (const snapshot of opened.snapshots(life.signal)) return snapshot;
    throw new Error(`Cannot read ${source}: it ended before it said anything`);
  } finally {
    life.abort();
  }
}

/** As a daemon in that mode with default settings would see it on that node. */
function routesFor(
  snapshot: Snapshot,
  nodeName: string,
  clusterCIDR: string,
  mode: "nftables" | "iptables",
): Readonly<Record<Family, Routes>> {
  const addresses = snapshot.node?.addresses ?? [];
  const detection =
    clusterCIDR === ""
      ? { "detect-local-mode": "NodeCIDR" }
      : { "detect-local-mode": "ClusterCIDR", "cluster-cidr": clusterCIDR };
  const completed = completeConfig({ "proxy-mode": mode, ...detection }, null);
  if (!completed.ok) throw new Error(completed.error);
  const { settings } = resolve(completed.config, {
    nodeName,
    nodeIPs: addresses,
    podCIDRs: snapshot.node?.podCIDRs ?? [],
    zone: snapshot.node?.zone ?? "",
    localAddresses: {
      ipv4: addresses.filter((address) => !address.includes(":")),
      ipv6: addresses.filter((address) => address.includes(":")),
    },
    tcpBeLiberal: false,
  });
  return { ipv4: route(null, snapshot.ipv4, settings.ipv4), ipv6: route(null, snapshot.ipv6, settings.ipv6) };
}

function printAs(output: string, routes: Readonly<Record<Family, Routes>>, mode: string | undefined): string {
  if (output === "routes")
    return families.map((family) => `# ${family}\n${printRoutes(routes[family])}`).join("\n");
  if (output === "iptables") {
    return families.map((family) => `# ${family}\n${printIptables(iptablesPlan(routes[family]))}`).join("\n");
  }
  const tables = families.map((family) => unfold(compileNftables(null, routes[family])));
  if (output === "nftables") return tables.map(printNftables).join("\n");
  const data =
    mode === undefined
      ? families.map((family) => [family, jsonRoutes(routes[family])])
      : mode === "iptables"
        ? families.map((family) => [family, jsonChains(iptablesPlan(routes[family]))])
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
