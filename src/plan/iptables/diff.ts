// The minimal operations from one Plan to another; reads only ServicePorts that may differ between them.
import type { Family } from "../../model/address.ts";
import type { PortKey } from "../../model/snapshot.ts";
import { filledChain, sortedFragments } from "./plan.ts";
import { savedRule } from "./text.ts";
import type {
  Chain,
  Fragment,
  IptablesPatch,
  IptablesPlan,
  PlacedRule,
  Rule,
  Step,
  TableName,
} from "./types.ts";

/**
 * From one Plan to another when they differ in nothing but the given keys and the foundation. Refusals (filter) come before nat
 * stops forwarding, and are removed after it has begun: every packet is either forwarded or rejected.
 */
export function diff(have: IptablesPlan, want: IptablesPlan, keys: Iterable<PortKey>): IptablesPatch {
  const steps = { filter: emptyStep("filter"), nat: emptyStep("nat"), refusalsGone: emptyStep("filter") };
  if (have.foundation !== want.foundation) compareFoundations(have, want, steps);
  for (const key of keys) {
    const old = have.fragments.get(key);
    const now = want.fragments.get(key);
    if (old !== now) compareFragments(key, old, now, want.family, steps);
  }
  for (const step of [steps.nat, steps.refusalsGone]) rewriteCrowded(step, want);
  return { family: want.family, steps: Object.values(steps).filter((step) => !isEmpty(step)) };
}

export function isEmptyPatch(patch: IptablesPatch): boolean {
  return patch.steps.length === 0;
}

/** How many chains and rules a Patch touches. */
export function countOperations(patch: IptablesPatch): number {
  return patch.steps.reduce(
    (sum, { write, remove, prepend, append, doom }) =>
      sum +
      write.reduce((rules, chain) => rules + 1 + chain.rules.length, 0) +
      remove.length +
      prepend.length +
      append.length +
      doom.length,
    0,
  );
}

/** A Step under construction. */
export type Draft = {
  -readonly [field in keyof Step]: Step[field] extends readonly (infer T)[] ? T[] : Step[field];
};

export function emptyStep(table: TableName): Draft {
  return { table, write: [], remove: [], prepend: [], append: [], doom: [] };
}

export function isEmpty({ write, remove, prepend, append, doom }: Step): boolean {
  return write.length + remove.length + prepend.length + append.length + doom.length === 0;
}

type Drafts = { readonly filter: Draft; readonly nat: Draft; readonly refusalsGone: Draft };

/** Settings changed: rewrites every constant chain that differs. Shared chains are written with all that is in them. */
function compareFoundations(have: IptablesPlan, want: IptablesPlan, steps: Drafts): void {
  const old = new Map(have.foundation.fixed.map((chain) => [idOf(chain), chain]));
  for (const chain of want.foundation.fixed) {
    const before = old.get(idOf(chain));
    if (before === undefined || !sameRules(before.rules, chain.rules, want.family)) {
      steps[chain.table === "nat" ? "nat" : "filter"].write.push({ ...chain, owner: null });
    }
  }
  for (const [i, chain] of want.foundation.shared.entries()) {
    if (sameRules(have.foundation.shared[i]!.rules, chain.rules, want.family)) continue;
    steps.nat.write.push({ ...filledChain(chain, sortedFragments(have)), owner: null });
  }
}

function idOf({ table, name }: Pick<Chain, "table" | "name">): string {
  return `${table} ${name}`;
}

function compareFragments(
  key: PortKey,
  old: Fragment | undefined,
  now: Fragment | undefined,
  family: Family,
  steps: Drafts,
): void {
  const before = new Map(old?.chains.map((chain) => [chain.name, chain]));
  for (const chain of now?.chains ?? []) {
    const known = before.get(chain.name);
    before.delete(chain.name);
    if (known === undefined || !sameRules(known.rules, chain.rules, family)) {
      steps.nat.write.push({ ...chain, owner: key });
    }
  }
  // One by one here and below: as arguments of one call, a hundred thousand would not fit on the stack.
  for (const name of before.keys()) steps.nat.doom.push(name);
  comparePlaced(key, old?.placed ?? [], now?.placed ?? [], family, steps);
}

// One item at a time: a call with more than about 100,000 arguments, as `push(...list)` makes, ends in a RangeError.

/** Rules of one ServicePort in one shared chain stay together and in order, so a group is renewed as a whole. */
function comparePlaced(
  owner: PortKey,
  old: readonly PlacedRule[],
  now: readonly PlacedRule[],
  family: Family,
  steps: Drafts,
): void {
  const groups = new Set([...old, ...now].map(({ table, chain }) => `${table} ${chain}`));
  for (const group of groups) {
    const inGroup = ({ table, chain }: PlacedRule) => `${table} ${chain}` === group;
    const before = old.filter(inGroup);
    const after = now.filter(inGroup);
    const inNat = group.startsWith("nat ");
    const grow = inNat ? steps.nat : steps.filter;
    const shrink = inNat ? steps.nat : steps.refusalsGone;
    const texts = new Set(after.map(({ rule }) => savedRule(rule, family)));
    const [kept, gone]: [PlacedRule[], PlacedRule[]] = [[], []];
    for (const each of before) (texts.has(savedRule(each.rule, family)) ? kept : gone).push(each);
    if (!sameRules(rulesOf(kept), rulesOf(after), family)) {
      // Deleting takes the first rule of its kind, so the old ones go before the new ones come.
      for (const rule of kept) grow.remove.push({ ...rule, owner });
      for (const rule of after.toReversed()) grow.prepend.push({ ...rule, owner });
    }
    for (const rule of gone) shrink.remove.push({ ...rule, owner });
  }
}

/** To delete a rule the tool scans the whole chain: beyond some dozens it is faster to rewrite the chain. */
const manyRemovals = 40;

function rewriteCrowded(step: Draft, want: IptablesPlan): void {
  for (const shared of want.foundation.shared) {
    if (shared.table !== step.table) continue;
    const here = ({ chain }: PlacedRule) => chain === shared.name;
    if (step.remove.filter(here).length <= manyRemovals) continue;
    step.remove = step.remove.filter((rule) => !here(rule));
    step.prepend = step.prepend.filter((rule) => !here(rule));
    step.write = step.write.filter(({ name }) => name !== shared.name);
    step.write.push({ ...filledChain(shared, sortedFragments(want)), owner: null });
  }
}

function rulesOf(placed: readonly PlacedRule[]): Rule[] {
  return placed.map(({ rule }) => rule);
}

function sameRules(a: readonly Rule[], b: readonly Rule[], family: Family): boolean {
  return (
    a.length === b.length &&
    a.every((rule, i) => rule === b[i] || savedRule(rule, family) === savedRule(b[i]!, family))
  );
}
