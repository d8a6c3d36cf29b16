// How virtual servers, sets, addresses and rules of a host differ from the Plan, one line per difference; changes nothing.
import { openIpvsHost } from "../../../host/ipvs/host.ts";
import { adopt } from "../../../plan/ipvs/adopt.ts";
import { printOperation } from "../../../plan/ipvs/print.ts";
import { tableDifferences } from "../../iptables/host/differences.ts";
import type { HostQuery } from "../../mode.ts";
import { compile, optionsOf } from "../compile.ts";

export async function ipvsDifferences(query: HostQuery): Promise<string[]> {
  const { family, at, signal, config } = query;
  const plan = compile(null, await query.routes(), optionsOf(config));
  const host = await openIpvsHost({ family, ...at });
  try {
    const { patch } = adopt(await host.read(signal), plan);
    return [
      ...[...patch.grow, ...patch.shrink].map(printOperation),
      ...(await tableDifferences(plan.tables, query)),
    ];
  } finally {
    await host.close();
  }
}
