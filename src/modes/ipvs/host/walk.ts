// The paths of a packet through the virtual servers, sets and rules of a host.
import { openIpvsHost } from "../../../host/ipvs/host.ts";
import type { Packet } from "../../../routing/decide.ts";
import { printWalk, readRuleset } from "../../iptables/host/walk.ts";
import type { HostQuery, HostWalks } from "../../mode.ts";
import { surroundingsOf } from "../../surroundings.ts";
import { compile, optionsOf } from "../compile.ts";
import { viewOfHost, viewOfPlan, walkIpvs } from "../walk.ts";

export async function walkIpvsHost(query: HostQuery, packet: Packet): Promise<HostWalks> {
  const { family, at, signal, config } = query;
  const routes = await query.routes();
  const plan = compile(null, routes, optionsOf(config));
  const rules = await readRuleset(query);
  const host = await openIpvsHost({ family, ...at });
  try {
    const held = viewOfHost(rules, await host.read(signal));
    const walk = (view: typeof held) =>
      walkIpvs(view, packet, surroundingsOf(routes.settings)).map(printWalk);
    return { wanted: walk(viewOfPlan(plan)), found: walk(held) };
  } finally {
    await host.close();
  }
}
