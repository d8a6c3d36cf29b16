// Everything userspace mode ever wrote, taken out again, whoever wrote it; what belongs to others stays.
import { emptyStep, isEmpty } from "../../plan/iptables/diff.ts";
import { savedRule } from "../../plan/iptables/text.ts";
import {
  type ChainName,
  type HostTables,
  type IptablesPatch,
  type TableName,
  tableNames,
} from "../../plan/iptables/types.ts";
import { allJumps, ownChains } from "./foundation.ts";

/** The Patch that cleans up. A chain that a foreign rule leads to stays as it is, or nothing could be removed. */
export function removal(have: HostTables): IptablesPatch {
  const steps = tableNames.map((table) => {
    const held = have.tables.get(table) ?? new Map<ChainName, readonly string[]>();
    const step = emptyStep(table);
    for (const jump of allJumps.filter((each) => each.table === table)) {
      const text = savedRule(jump.rule, have.family);
      const found = held.get(jump.chain)?.filter((line) => line === text) ?? [];
      for (const _ of found) step.remove.push({ ...jump, owner: null });
    }
    step.doom.push(...ownNames(table).filter((name) => held.has(name) && !isUsedByOthers(name, held)));
    return step;
  });
  return { family: have.family, steps: steps.filter((step) => !isEmpty(step)) };
}

function ownNames(table: TableName): readonly ChainName[] {
  return ownChains.filter((chain) => chain.table === table).map(({ name }) => name);
}

function isUsedByOthers(name: ChainName, held: ReadonlyMap<ChainName, readonly string[]>): boolean {
  const ours = allJumps.map(({ chain, rule }) => `${chain} ${savedRule(rule, "ipv4")}`);
  return [...held].some(([chain, lines]) =>
    lines.some((line) => / -[jg] (\S+)/.exec(` ${line}`)?.[1] === name && !ours.includes(`${chain} ${line}`)),
  );
}
