// What the kernel of a node would do with a packet, walked through the rules it really holds, and what it does already.

import { inUseHere } from "../host/iptables/back-end.ts";
import { starter } from "../host/iptables/command.ts";
import { openIptablesHost } from "../host/iptables/host.ts";
import { openIpvsHost } from "../host/ipvs/host.ts";
import { readFlows } from "../host/netlink/conntrack.ts";
import { NftablesHost } from "../host/nftables/host.ts";
import { familyOf, joinHostPort } from "../model/address.ts";
import { compile as compileIptables } from "../modes/iptables/compile.ts";
import {
  type IptablesWalk,
  type Ruleset,
  rulesetOf,
  rulesetOnHost,
  walkIptables,
} from "../modes/iptables/walk.ts";
import { compile as compileIpvs, optionsOf } from "../modes/ipvs/compile.ts";
import { viewOfHost, viewOfPlan, walkIpvs } from "../modes/ipvs/walk.ts";
import { compileTable } from "../modes/nftables/compile.ts";
import { withChainsNamed } from "../modes/nftables/recognised.ts";
import { walkNftables } from "../modes/nftables/walk.ts";
import { bindAddressOf } from "../modes/userspace/bind-address.ts";
import { compile as compileUserspace } from "../modes/userspace/compile.ts";
import { noRelays, type OpenRelays, socketsIn, wantedRelays } from "../modes/userspace/relays.ts";
import { type RelayedWalk, walkRelayed } from "../modes/userspace/walk.ts";
import type { Asked } from "../plan/nftables/types.ts";
import type { Packet } from "../routing/decide.ts";
import type { Routes } from "../routing/routes.ts";
import { askRelays, placeOf, type Target } from "./target.ts";

export type KernelView = {
  /** Whether every way through the rules the kernel holds is one we want, and the other way round. */
  readonly agrees: boolean;
  /** Ways that are wanted, and ways there are. */
  readonly wanted: readonly string[];
  readonly found: readonly string[];
  /** The rules and elements one of the ways goes by. */
  readonly steps: readonly string[];
  /** Connections to the same place that the kernel tracks now, the first few. */
  readonly flows: readonly string[];
};

const mostFlows = 8;

export async function lookAtKernel(
  look: Target,
  routes: Routes,
  packet: Packet,
  signal: AbortSignal,
): Promise<KernelView> {
  const around = {
    localAddresses: routes.settings.localAddresses,
    podInterface: podInterface(routes.settings),
  };
  const ways = { nftables: nftablesWays, iptables: iptablesWays, ipvs: ipvsWays, userspace: userspaceWays };
  const { want, have } = await ways[look.config.mode]();
  const texts = (walks: readonly Way[]) =>
    [...new Set(walks.map(({ outcome }) => outcomeText(outcome)))].sort();
  const [wanted, found] = [texts(want), texts(have)];
  return {
    agrees: JSON.stringify(wanted) === JSON.stringify(outcomesOf(found)),
    wanted,
    found,
    steps: have[0]?.steps ?? [],
    flows: await flowsTo(look, packet, signal),
  };

  async function nftablesWays(): Promise<{ want: Way[]; have: Way[] }> {
    const table = compileTable(routes);
    const host = await NftablesHost.open({ family: table.family, ...placeOf(look) });
    try {
      const ways = (from: typeof table, asked?: Asked): Way[] =>
        walkNftables(from, packet, around, asked).map(({ outcome, steps }) => ({
          outcome,
          steps: steps.map(
            ({ chain, rule, element }) => `${chain}: ${rule}${element === null ? "" : `  { ${element} }`}`,
          ),
        }));
      // Where the kernel lags behind, it picks among as many endpoints as there were.
      const wanted = (names: readonly string[]) => withChainsNamed(table, names, routes.settings);
      return { want: ways(table), have: (await host.glance(wanted, ways, signal)) ?? [] };
    } finally {
      await host.close();
    }
  }

  async function ipvsWays(): Promise<{ want: Way[]; have: Way[] }> {
    const { family } = routes.settings;
    const plan = compileIpvs(null, routes, optionsOf(look.config));
    const rules = await rulesHere();
    const host = await openIpvsHost({ family, ...placeOf(look) });
    try {
      const held = viewOfHost(rules, await host.read(signal));
      const walked = (view: typeof held) => walkIpvs(view, packet, around).map(asWay);
      return { want: walked(viewOfPlan(plan)), have: walked(held) };
    } finally {
      await host.close();
    }
  }

  async function iptablesWays(): Promise<{ want: Way[]; have: Way[] }> {
    const plan = compileIptables(null, routes, { invalidDropped: true, localhostNodePorts: true });
    const walked = (rules: Ruleset) => walkIptables(rules, packet, around).map(asWay);
    return { want: walked(rulesetOf(plan)), have: walked(await rulesHere()) };
  }

  async function userspaceWays(): Promise<{ want: Way[]; have: Way[] }> {
    const { settings } = routes;
    const [wanted, told] = [wantedRelays(routes), (await askRelays(look))[settings.family] ?? noRelays];
    const bind = bindAddressOf(settings.family, look.config.bindAddress);
    const plan = compileUserspace(null, routes, { bind, socketsOf: socketsIn(wanted) });
    const walked = (rules: Ruleset, relays: OpenRelays) =>
      walkRelayed(rules, relays, packet, around, settings).map(asWay);
    return { want: walked(rulesetOf(plan), wanted), have: walked(await rulesHere(), told) };
  }

  async function rulesHere(): Promise<Ruleset> {
    const start = await inUseHere(starter(placeOf(look)));
    const host = await openIptablesHost(routes.settings.family, start, signal);
    return rulesetOnHost(await host.read(signal));
  }
}

/** Where none of our rules are, packets pass. */
function outcomesOf(found: readonly string[]): readonly string[] {
  return found.length === 0 ? ["pass"] : found;
}

/** Some interface that a pod of this node may come in through. */
function podInterface({ detector }: Routes["settings"]): string {
  if (detector.kind === "interface") return detector.name;
  return detector.kind === "interfacePrefix" ? `${detector.prefix}0` : "pod0";
}

function asWay({ outcome, steps, ...walk }: IptablesWalk | RelayedWalk): Way {
  const socket = "socket" in walk && walk.socket !== null ? [walk.socket] : [];
  return { outcome, steps: [...steps.map(({ table, rule }) => `${table}: ${rule}`), ...socket] };
}

type Way = {
  readonly outcome: RelayedWalk["outcome"];
  readonly steps: readonly string[];
};

export function printKernel({ agrees, wanted, found, steps, flows }: KernelView): string {
  const verdict = agrees
    ? ["agrees: it does the same"]
    : [
        "!!! DOES OTHERWISE !!!",
        `wanted: ${wanted.join(", ") || "nothing"}`,
        `found:  ${found.join(", ") || "none of our rules"}`,
      ];
  const rows = [...verdict, ...steps.map((step) => `· ${step}`), ...flows.map((flow) => `tracked: ${flow}`)];
  return rows.map((row, i) => `${(i === 0 ? "kernel" : "").padEnd(9)} ${row}\n`).join("");
}

function outcomeText(outcome: Way["outcome"]): string {
  if (outcome.kind !== "forward") return outcome.kind;
  const { address, port } = outcome.backend;
  return `forward ${joinHostPort(address, port)}${outcome.masquerade ? " masquerade" : ""}`;
}

async function flowsTo(look: Target, { to }: Packet, signal: AbortSignal): Promise<string[]> {
  const family = familyOf(to.address);
  const select = (flow: { destination: string; destinationPort: number }) =>
    flow.destinationPort === to.port && flow.destination === to.address;
  const found: string[] = [];
  for await (const flows of readFlows({ family, select }, placeOf(look), signal)) {
    for (const { original, reply } of flows) {
      const answered = joinHostPort(reply.source, reply.sourcePort);
      found.push(`${joinHostPort(original.source, original.sourcePort)} → ${answered}`);
    }
    if (found.length >= mostFlows) break;
  }
  return found.slice(0, mostFlows);
}
