// What a table that is not the wanted one may hold besides: a kernel that is not up to date has other shared chains.
import type { FamilySettings } from "../../config/resolve/settings.ts";
import type { NftTable } from "../../plan/nftables/types.ts";
import { pickersAmong } from "./pickers.ts";
import { sourceChecksAmong } from "./sources.ts";

/** The wanted table, and those shared chains and sets whose names show what they hold. */
export function withChainsNamed(
  table: NftTable,
  names: readonly string[],
  settings: FamilySettings,
): NftTable {
  const checks = sourceChecksAmong(names, settings);
  const chains = [...pickersAmong(names, settings), ...checks.map(({ chain }) => chain)];
  return {
    ...table,
    chains: new Map([...chains.map((chain) => [chain.name, chain] as const), ...table.chains]),
    sets: new Map([...checks.map(({ set }) => [set.name, set] as const), ...table.sets]),
  };
}
