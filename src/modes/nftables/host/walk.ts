// The paths of a packet through the nftables table of a host.
import { NftablesHost } from "../../../host/nftables/host.ts";
import type { NftTable, OnLookup } from "../../../plan/nftables/types.ts";
import type { Packet } from "../../../routing/decide.ts";
import type { HostQuery, HostWalks, Walk } from "../../mode.ts";
import { surroundingsOf } from "../../surroundings.ts";
import { compileTable } from "../compile.ts";
import { withChainsNamed } from "../recognised.ts";
import { walkNftables } from "../walk.ts";

export async function walkNftablesHost(query: HostQuery, packet: Packet): Promise<HostWalks> {
  const routes = await query.routes();
  const table = compileTable(routes);
  const host = await NftablesHost.open({ family: table.family, ...query.at });
  try {
    const walk = (from: NftTable, onLookup?: OnLookup) =>
      walkNftables(from, packet, surroundingsOf(routes.settings), onLookup).map(
        ({ outcome, steps }): Walk => ({
          outcome,
          steps: steps.map(
            ({ chain, rule, element }) => `${chain}: ${rule}${element === null ? "" : `  { ${element} }`}`,
          ),
        }),
      );
    // A kernel that is not up to date chooses among the previous number of endpoints.
    const known = (names: readonly string[]) => withChainsNamed(table, names, routes.settings);
    return { wanted: walk(table), found: (await host.walkLive(known, walk, query.signal)) ?? [] };
  } finally {
    await host.close();
  }
}
