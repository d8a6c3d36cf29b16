// The paths of a packet through the packet-filter tables of a host.
import { detectBackEnd } from "../../../host/iptables/back-end.ts";
import { starter } from "../../../host/iptables/command.ts";
import { openIptablesHost } from "../../../host/iptables/host.ts";
import type { Packet } from "../../../routing/decide.ts";
import type { HostQuery, HostWalks, Walk } from "../../mode.ts";
import { surroundingsOf } from "../../surroundings.ts";
import type { RelayedWalk } from "../../userspace/walk.ts";
import { compile } from "../compile.ts";
import { defaultCounters } from "../preview.ts";
import { type IptablesWalk, type Ruleset, rulesetOf, rulesetOnHost, walkIptables } from "../walk.ts";

export async function walkIptablesHost(query: HostQuery, packet: Packet): Promise<HostWalks> {
  const routes = await query.routes();
  const plan = compile(null, routes, defaultCounters);
  const walk = (rules: Ruleset) =>
    walkIptables(rules, packet, surroundingsOf(routes.settings)).map(printWalk);
  return { wanted: walk(rulesetOf(plan)), found: walk(await readRuleset(query)) };
}

export async function readRuleset({ family, at, signal }: HostQuery): Promise<Ruleset> {
  const start = await detectBackEnd(starter(at));
  const host = await openIptablesHost(family, start, signal);
  return rulesetOnHost(await host.read(signal));
}

export function printWalk({ outcome, steps, ...walk }: IptablesWalk | RelayedWalk): Walk {
  const socket = "socket" in walk && walk.socket !== null ? [walk.socket] : [];
  return { outcome, steps: [...steps.map(({ table, rule }) => `${table}: ${rule}`), ...socket] };
}
