// The paths of a packet through the rules of a host and the relays of its daemon.
import type { Packet } from "../../../routing/decide.ts";
import { printWalk, readRuleset } from "../../iptables/host/walk.ts";
import { type Ruleset, rulesetOf } from "../../iptables/walk.ts";
import type { HostQuery, HostWalks } from "../../mode.ts";
import { surroundingsOf } from "../../surroundings.ts";
import { bindAddressOf } from "../bind-address.ts";
import { compile } from "../compile.ts";
import { noRelays, type OpenRelays, socketsIn, wantedRelays } from "../relays.ts";
import { walkRelayed } from "../walk.ts";

export async function walkUserspaceHost(query: HostQuery, packet: Packet): Promise<HostWalks> {
  const { family, config } = query;
  const routes = await query.routes();
  const { settings } = routes;
  const [wanted, open] = [wantedRelays(routes), (await query.relays())[family] ?? noRelays];
  const bind = bindAddressOf(family, config.bindAddress);
  const plan = compile(null, routes, { bind, socketsOf: socketsIn(wanted) });
  const walk = (rules: Ruleset, relays: OpenRelays) =>
    walkRelayed(rules, relays, packet, surroundingsOf(settings), settings).map(printWalk);
  return { wanted: walk(rulesetOf(plan), wanted), found: walk(await readRuleset(query), open) };
}
