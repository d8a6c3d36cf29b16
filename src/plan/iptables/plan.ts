// Putting Fragments together: a Plan changes one Fragment at a time, and unfolds into chains.
import type { Family } from "../../model/address.ts";
import { keyed } from "../../model/keyed.ts";
import type { PortKey } from "../../model/snapshot.ts";
import type { Chain, Foundation, Fragment, IptablesPlan, Rule, TableName, Totals } from "./types.ts";

export function emptyPlan(family: Family, foundation: Foundation): IptablesPlan {
  return { family, foundation, fragments: keyed<Fragment>(), totals: noTotals, changed: new Set() };
}

/** The Plan with other Fragments; `undefined` removes one. */
export function withFragments(
  plan: IptablesPlan,
  foundation: Foundation,
  changes: readonly (readonly [PortKey, Fragment | undefined])[],
): IptablesPlan {
  return {
    family: plan.family,
    foundation,
    fragments: plan.fragments.with(changes),
    totals: changes.reduce(
      (sum, [key, fragment]) => exchanged(sum, plan.fragments.get(key)?.totals, fragment?.totals),
      plan.totals,
    ),
    changed: new Set(changes.map(([key]) => key)),
  };
}

/** Every chain the Plan holds in a table, sorted by name, with all its rules; Fragments in the order of their keys. */
export function chainsOf(plan: IptablesPlan, table: TableName): Chain[] {
  const { present, fixed, shared } = plan.foundation;
  const fragments = sortedFragments(plan);
  const inTable = (chain: { readonly table: TableName }) => chain.table === table;
  return [
    ...present.filter(inTable).map((chain) => ({ ...chain, rules: [] })),
    ...fixed.filter(inTable),
    ...shared.filter(inTable).map((chain) => filledChain(chain, fragments)),
    ...fragments.flatMap(({ chains }) => chains.filter(inTable)),
  ].sort((a, b) => (a.name < b.name ? -1 : 1));
}

export function sortedFragments(plan: IptablesPlan): Fragment[] {
  return [...plan.fragments.values()].sort((a, b) => (a.key < b.key ? -1 : 1));
}

/** A shared chain with the rules of all Fragments, then its own. */
export function filledChain(shared: Chain, fragments: readonly Fragment[]): Chain {
  const rules: Rule[] = [];
  for (const { placed } of fragments)
    for (const { table, chain, rule } of placed)
      if (table === shared.table && chain === shared.name) rules.push(rule);
  for (const rule of shared.rules) rules.push(rule);
  return { ...shared, rules };
}

/** How many rules a Plan has in a table, without jumps from built-in chains: the number in metrics. */
export function ruleCount({ foundation, totals }: IptablesPlan, table: "filter" | "nat"): number {
  const constant = [...foundation.fixed, ...foundation.shared].filter((chain) => chain.table === table);
  const own = constant.reduce((sum, { rules }) => sum + rules.length, 0);
  return own + (table === "nat" ? totals.natRules : totals.filterRules);
}

const noTotals: Totals = { filterRules: 0, natRules: 0, endpoints: 0 };

function exchanged(sum: Totals, old: Totals = noTotals, now: Totals = noTotals): Totals {
  return {
    filterRules: sum.filterRules - old.filterRules + now.filterRules,
    natRules: sum.natRules - old.natRules + now.natRules,
    endpoints: sum.endpoints - old.endpoints + now.endpoints,
  };
}
