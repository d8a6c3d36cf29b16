// From the current state of a host to a Plan: correct rules stay untouched, no matter which program wrote them.
import type { Family } from "../../model/address.ts";
import { type Draft, emptyStep, isEmpty } from "./diff.ts";
import { parseRule } from "./parse-rule.ts";
import { filledChain, sortedFragments } from "./plan.ts";
import { savedRule } from "./text.ts";
import {
  type Chain,
  type ChainName,
  type Fragment,
  type HostTables,
  type IptablesPatch,
  type IptablesPlan,
  isServiceChain,
  type PlacedRule,
  type Rule,
  type TableName,
  tableNames,
} from "./types.ts";

/** What is missing, different, or left over from an earlier run. Chains of other programs are never touched. */
export function adopt(have: HostTables, want: IptablesPlan): IptablesPatch {
  const fragments = sortedFragments(want);
  const steps = tableNames.map((table) => {
    const held = have.tables.get(table) ?? new Map<ChainName, readonly string[]>();
    const step = emptyStep(table);
    createMissing(held, want, step);
    rewriteDifferent(held, want, fragments, step);
    placeJumps(held, want, step);
    if (table === "nat") doomLeftovers(held, fragments, step);
    return step;
  });
  return { family: want.family, steps: steps.filter((step) => !isEmpty(step)) };
}

type Held = ReadonlyMap<ChainName, readonly string[]>;

function createMissing(held: Held, { foundation }: IptablesPlan, step: Draft): void {
  for (const { table, name } of foundation.present) {
    if (table === step.table && !held.has(name)) step.write.push({ table, name, rules: [], owner: null });
  }
}

function rewriteDifferent(
  held: Held,
  { foundation, family }: IptablesPlan,
  fragments: readonly Fragment[],
  step: Draft,
): void {
  for (const chain of ofTable(foundation.fixed, step.table)) {
    if (!holdsExactly(held.get(chain.name), chain.rules, family)) step.write.push({ ...chain, owner: null });
  }
  for (const chain of ofTable(foundation.shared, step.table)) {
    if (holdsInAnyOrder(held.get(chain.name), chain, fragments, family)) continue;
    step.write.push({ ...filledChain(chain, fragments), owner: null });
  }
  for (const { key, chains } of fragments) {
    for (const chain of chains) {
      if (chain.table !== step.table || holdsExactly(held.get(chain.name), chain.rules, family)) continue;
      step.write.push({ table: chain.table, name: chain.name, rules: chain.rules, owner: key });
    }
  }
}

function ofTable(chains: readonly Chain[], table: TableName): Chain[] {
  return chains.filter((chain) => chain.table === table);
}

/** A jump that exists stays where it is, even if another program moved it. */
function placeJumps(held: Held, { foundation, family }: IptablesPlan, step: Draft): void {
  const isMissing = ({ table, chain, rule }: PlacedRule) => {
    const text = savedRule(rule, family);
    return table === step.table && held.get(chain)?.some((line) => isRule(line, text, family)) !== true;
  };
  const asOurs = (jump: PlacedRule) => ({ ...jump, owner: null });
  step.prepend.push(...foundation.jumps.filter(isMissing).map(asOurs));
  step.append.push(...(foundation.lastJumps ?? []).filter(isMissing).map(asOurs));
}

/** Chains of deleted Services; one that a foreign rule still refers to cannot be deleted, and would fail the whole restore. */
function doomLeftovers(held: Held, fragments: readonly Fragment[], step: Draft): void {
  const doomed = new Set([...held.keys()].filter(isServiceChain));
  for (const { chains } of fragments) for (const { name } of chains) doomed.delete(name);
  if (doomed.size === 0) return;
  const renewed = new Set(step.write.map(({ name }) => name));
  // One that stays may lead to others, which then stay too.
  const staying = [...held].filter(([chain]) => !doomed.has(chain) && !renewed.has(chain));
  for (let next = staying.pop(); next !== undefined; next = staying.pop()) {
    for (const line of next[1]) {
      const target = / -[jg] (\S+)/.exec(` ${line}`)?.[1] ?? "";
      if (doomed.delete(target)) staying.push([target, held.get(target)!]);
    }
  }
  for (const name of doomed) step.doom.push(name);
}

function holdsExactly(lines: readonly string[] | undefined, rules: readonly Rule[], family: Family): boolean {
  return (
    lines !== undefined &&
    lines.length === rules.length &&
    rules.every((rule, i) => isRule(lines[i]!, savedRule(rule, family), family))
  );
}

/** Fragments may be in any order; the rules of one keep theirs, and the chain's own rules are last. */
function holdsInAnyOrder(
  lines: readonly string[] | undefined,
  chain: Chain,
  fragments: readonly Fragment[],
  family: Family,
): boolean {
  const own = lines?.slice(lines.length - chain.rules.length);
  if (lines === undefined || !holdsExactly(own, chain.rules, family)) return false;
  const groups: string[][] = [];
  for (const { placed } of fragments) {
    const inChain = placed.filter((each) => each.table === chain.table && each.chain === chain.name);
    if (inChain.length > 0) groups.push(inChain.map(({ rule }) => savedRule(rule, family)));
  }
  return areGroups(lines.slice(0, lines.length - chain.rules.length), groups, family);
}

/** Whether the lines are these groups, mixed, with the lines of each group in its order. */
function areGroups(
  lines: readonly string[],
  groups: readonly (readonly string[])[],
  family: Family,
): boolean {
  if (lines.length !== groups.reduce((sum, { length }) => sum + length, 0)) return false;
  const waiting = new Map<string, { readonly group: readonly string[]; readonly at: number }[]>();
  const wait = (group: readonly string[], at: number) => {
    const text = group[at];
    if (text !== undefined) waiting.set(text, [...(waiting.get(text) ?? []), { group, at }]);
  };
  for (const group of groups) wait(group, 0);
  for (const line of lines) {
    const next = (waiting.get(line) ?? waiting.get(canonical(line, family)))?.pop();
    if (next === undefined) return false;
    wait(next.group, next.at + 1);
  }
  return true;
}

/** Other versions of the tool print the same rule differently: what is not equal as text is read and printed again. */
export function isRule(line: string, text: string, family: Family): boolean {
  return line === text || canonical(line, family) === text;
}

function canonical(line: string, family: Family): string {
  const rule = parseRule(line);
  return rule === null ? line : savedRule(rule, family);
}
