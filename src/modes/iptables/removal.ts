// Everything this mode ever wrote, taken out again; what belongs to others, or also to the kubelet, stays.
import { emptyStep, isEmpty } from "../../plan/iptables/diff.ts";
import { type Held, heldJumps, unreferenced } from "../../plan/iptables/removal.ts";
import { savedRule } from "../../plan/iptables/text.ts";
import {
  type ChainName,
  type HostTables,
  type IptablesPatch,
  isServiceChain,
  type PlacedRule,
  type RuleSelection,
  type TableName,
  tableNames,
} from "../../plan/iptables/types.ts";
import { canaryChain, jumps as jumpsOfNow, kubeletFirewall, ownChainNames, services } from "./foundation.ts";
import { comment, jump, rule, tracked } from "./rule.ts";

const portals = comment("kubernetes service portals");

/** Of kube-proxy up to v1.9; as long as one of them is there, its chain cannot be deleted. */
const olderJumps: readonly PlacedRule[] = [
  { table: "filter", chain: "INPUT", rule: rule(tracked("NEW"), portals, jump(services)) },
  { table: "filter", chain: "INPUT", rule: rule(portals, jump(services)) },
  { table: "filter", chain: "OUTPUT", rule: rule(portals, jump(services)) },
];

const jumps: readonly PlacedRule[] = [...jumpsOfNow, ...olderJumps];

/** The Patch that cleans up. A chain that a foreign rule still leads to is emptied of nothing and left alone. */
export function removal(have: HostTables, spared: RuleSelection | null = null): IptablesPatch {
  const steps = tableNames.map((table) => {
    const held: Held = have.tables.get(table) ?? new Map();
    const remove = heldJumps(held, jumpsToTakeOut(table, have.family, spared), have.family);
    const doom = unreferenced(held, chainsToTakeOut(held, table, spared), jumps);
    return { ...emptyStep(table), remove, doom };
  });
  return { family: have.family, steps: steps.filter((step) => !isEmpty(step)) };
}

function jumpsToTakeOut(
  table: TableName,
  family: HostTables["family"],
  spared: RuleSelection | null,
): readonly PlacedRule[] {
  return jumps.filter((jump) => {
    if (jump.table !== table || leadsTo(jump.rule) === kubeletFirewall) return false;
    const text = savedRule(jump.rule, family);
    const isKept = ({ table, chain, rule }: PlacedRule) =>
      table === jump.table && chain === jump.chain && savedRule(rule, family) === text;
    return !spared?.jumps.some(isKept);
  });
}

function leadsTo({ target }: (typeof jumps)[number]["rule"]): ChainName | null {
  return target.kind === "jump" ? target.chain : null;
}

function chainsToTakeOut(held: Held, table: TableName, spared: RuleSelection | null): ChainName[] {
  return [...held.keys()].filter(
    (name) =>
      // It also shows which back end is in use, for a mode without a canary of its own.
      (name === canaryChain && spared === null) ||
      (ownChainNames[table].includes(name) && !spared?.chains[table].includes(name)) ||
      (table === "nat" && isServiceChain(name)),
  );
}
