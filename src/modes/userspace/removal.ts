// Everything userspace mode ever wrote, removed again, also what another program wrote; what belongs to other programs stays.
import { emptyStep, isEmpty } from "../../plan/iptables/diff.ts";
import { type Held, heldJumps } from "../../plan/iptables/removal.ts";
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
    const held: Held = have.tables.get(table) ?? new Map();
    const step = emptyStep(table);
    const own = allJumps.filter((jump) => jump.table === table);
    step.remove.push(...heldJumps(held, own, have.family));
    step.doom.push(...ownNames(table).filter((name) => held.has(name) && !isUsedByOthers(name, held)));
    return step;
  });
  return { family: have.family, steps: steps.filter((step) => !isEmpty(step)) };
}

function ownNames(table: TableName): readonly ChainName[] {
  return ownChains.filter((chain) => chain.table === table).map(({ name }) => name);
}

function isUsedByOthers(name: ChainName, held: Held): boolean {
  const ours = allJumps.map(({ chain, rule }) => `${chain} ${savedRule(rule, "ipv4")}`);
  return [...held].some(([chain, lines]) =>
    lines.some((line) => / -[jg] (\S+)/.exec(` ${line}`)?.[1] === name && !ours.includes(`${chain} ${line}`)),
  );
}
