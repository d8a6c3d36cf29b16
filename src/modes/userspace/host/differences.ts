// How relays and rules of a host differ from the Plan, one line per difference; changes nothing.
import { tableDifferences } from "../../iptables/host/differences.ts";
import type { HostQuery } from "../../mode.ts";
import { bindAddressOf } from "../bind-address.ts";
import { compile } from "../compile.ts";
import { noRelays, relayDifferences, socketsIn, wantedRelays } from "../relays.ts";

export async function userspaceDifferences(query: HostQuery): Promise<string[]> {
  const { family, config } = query;
  const routes = await query.routes();
  const have = (await query.relays())[family] ?? noRelays;
  const bind = bindAddressOf(family, config.bindAddress);
  const plan = compile(null, routes, { bind, socketsOf: socketsIn(have) });
  return [...relayDifferences(have, wantedRelays(routes)), ...(await tableDifferences(plan, query))];
}
