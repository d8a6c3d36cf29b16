// Everything this mode ever wrote, taken out again; what belongs to others, or also to the kubelet, stays.
import { type Draft, emptyStep, isEmpty } from "../../plan/iptables/diff.ts";
import { savedRule } from "../../plan/iptables/text.ts";
import {
  type ChainName,
  type HostTables,
  type IptablesPatch,
  isServiceChain,
  type PlacedRule,
  type Spared,
  type TableName,
  tableNames,
} from "../../plan/iptables/types.ts";
import { canaryChain, jumps, kubeletFirewall, ownChainNames } from "./foundation.ts";

/** The Patch that cleans up. A chain that a foreign rule still leads to is emptied of nothing and left alone. */
export function removal(have: HostTables, spared: Spared | null = null): IptablesPatch {
  const steps = tableNames.map((table) => {
    const held = have.tables.get(table) ?? new Map<ChainName, readonly string[]>();
    const step = emptyStep(table);
    takeOutJumps(held, have.family, step, spared);
    step.doom.push(...unreferenced(held, table, spared));
    return step;
  });
  return { family: have.family, steps: steps.filter((step) => !isEmpty(step)) };
}

type Held = ReadonlyMap<ChainName, readonly string[]>;

function takeOutJumps(held: Held, family: HostTables["family"], step: Draft, spared: Spared | null): void {
  for (const jump of jumps) {
    if (jump.table !== step.table || leadsTo(jump.rule) === kubeletFirewall) continue;
    const text = savedRule(jump.rule, family);
    const isSpared = ({ table, chain, rule }: PlacedRule) =>
      table === jump.table && chain === jump.chain && savedRule(rule, family) === text;
    if (spared?.jumps.some(isSpared)) continue;
    const found = held.get(jump.chain)?.filter((line) => line === text) ?? [];
    for (const _ of found) step.remove.push({ ...jump, owner: null });
  }
}

function leadsTo({ target }: (typeof jumps)[number]["rule"]): ChainName | null {
  return target.kind === "jump" ? target.chain : null;
}

function unreferenced(held: Held, table: TableName, spared: Spared | null): ChainName[] {
  const ours = new Set(
    [...held.keys()].filter(
      (name) =>
        // It also tells which back end is in use, which a mode without a canary of its own wants to know.
        (name === canaryChain && spared === null) ||
        (ownChainNames[table].includes(name) && !spared?.chains[table].includes(name)) ||
        (table === "nat" && isServiceChain(name)),
    ),
  );
  const isOurJump = (line: string) => jumps.some(({ rule }) => savedRule(rule, "ipv4") === line);
  // Taking one chain out of the list may leave a foreign rule's target with jumps into others of ours.
  const waiting = [...held].filter(([chain]) => !ours.has(chain));
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    for (const line of next[1]) {
      const target = / -[jg] (\S+)/.exec(` ${line}`)?.[1] ?? "";
      if (isOurJump(line) || !ours.delete(target)) continue;
      waiting.push([target, held.get(target)!]);
    }
  }
  return [...ours];
}
