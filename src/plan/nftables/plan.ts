// Putting Fragments together: an NftPlan changes one Fragment at a time, and unfolds into a table.
import { keyed } from "../../model/keyed.ts";
import type { PortKey } from "../../model/snapshot.ts";
import { arrange } from "./diff.ts";
import type {
  BackendSlots,
  Chain,
  Element,
  FilledSet,
  Foundation,
  Fragment,
  NftPlan,
  NftSet,
  NftTable,
} from "./types.ts";

export function emptyPlan(foundation: Foundation): NftPlan {
  return { foundation, fragments: keyed<Fragment>(), uses: keyed<number>(), changed: new Set() };
}

/** The Plan with other Fragments; `undefined` removes one. */
export function withFragments(
  plan: NftPlan,
  foundation: Foundation,
  changes: readonly (readonly [PortKey, Fragment | undefined])[],
): NftPlan {
  const uses = new Map<string, number>();
  const count = (fragment: Fragment | undefined, by: number) => {
    for (const id of fragment === undefined ? [] : sharedIds(fragment)) {
      uses.set(id, (uses.get(id) ?? plan.uses.get(id) ?? 0) + by);
    }
  };
  for (const [key, fragment] of changes) {
    count(plan.fragments.get(key), -1);
    count(fragment, 1);
  }
  return {
    foundation,
    fragments: plan.fragments.with(changes),
    uses: plan.uses.with([...uses].map(([id, n]) => [id, n === 0 ? undefined : n] as const)),
    changed: new Set(changes.map(([key]) => key)),
  };
}

/** The whole table of a Plan. */
export function unfold(plan: NftPlan): NftTable {
  return tableOf(plan.foundation, plan.fragments.values());
}

/**
 * What two Plans have of the given keys, each as a small table: all that can differ between them when only those
 * Fragments do. What other Fragments still use is in both.
 */
export function unfoldChanged(
  have: NftPlan,
  want: NftPlan,
  keys: Iterable<PortKey>,
): { have: NftTable; want: NftTable } {
  const old: Fragment[] = [];
  const now: Fragment[] = [];
  for (const key of keys) {
    const before = have.fragments.get(key);
    const after = want.fragments.get(key);
    if (before !== undefined) old.push(before);
    if (after !== undefined) now.push(after);
  }
  const tables = { have: tableOf(have.foundation, old), want: tableOf(want.foundation, now) };
  keepShared(have, now, tables.have);
  keepShared(want, old, tables.want);
  return tables;
}

/** The Plan before, with what is wanted of the given keys. */
export function onto(before: NftPlan, want: NftPlan, keys: Iterable<PortKey>): NftPlan {
  const changes = [...keys].map((key) => [key, want.fragments.get(key)] as const);
  return withFragments(before, want.foundation, changes);
}

/**
 * The state of a host after the Patch from `table` to a Plan: the slots of the given Fragments are as `diff`
 * arranged them. `table` null: the Patch built everything.
 */
export function settled(plan: NftPlan, keys: Iterable<PortKey>, table: NftTable | null): NftPlan {
  if (table === null) return plan;
  const changes: [PortKey, Fragment][] = [];
  for (const key of keys) {
    const fragment = plan.fragments.get(key);
    const now = fragment === undefined ? undefined : settledFragment(fragment, table);
    if (now !== undefined && now !== fragment) changes.push([key, now]);
  }
  return changes.length === 0 ? plan : { ...plan, fragments: plan.fragments.with(changes) };
}

function settledFragment(fragment: Fragment, table: NftTable): Fragment {
  const spreads = fragment.spreads.map((slots) => settledSlots(slots, table));
  return spreads.every((slots, i) => slots === fragment.spreads[i]) ? fragment : { ...fragment, spreads };
}

function settledSlots(slots: Fragment["spreads"][number], have: NftTable): Fragment["spreads"][number] {
  const old = have.spreads.get(slots.map)?.get(slots.key);
  if (old === undefined) return slots;
  const backends = arrange(old.backends, slots.backends);
  return backends.every((backend, slot) => backend === slots.backends[slot]) ? slots : { ...slots, backends };
}

type MutableTable = {
  family: NftTable["family"];
  sets: Map<string, NftSet>;
  counters: Set<string>;
  chains: Map<string, Chain>;
  elements: Map<string, ReadonlyMap<string, Element>>;
  spreads: Map<string, Map<string, BackendSlots>>;
};

/** Foundation and Fragments in one table. */
export function tableOf(foundation: Foundation, fragments: Iterable<Fragment>): MutableTable {
  const table: MutableTable = {
    family: foundation.family,
    sets: new Map(foundation.sets.map((set) => [set.name, set])),
    counters: new Set(foundation.counters),
    chains: new Map(foundation.chains.map((chain) => [chain.name, chain])),
    elements: new Map(),
    spreads: new Map(),
  };
  for (const element of foundation.elements) put(table.elements, element.set, element);
  for (const fragment of fragments) {
    for (const set of fragment.sets) table.sets.set(set.name, set);
    for (const filled of fragment.filled) putFilled(table, filled);
    for (const chain of fragment.shared) table.chains.set(chain.name, chain);
    for (const chain of fragment.chains) table.chains.set(chain.name, chain);
    for (const element of fragment.elements) put(table.elements, element.set, element);
    for (const slots of fragment.spreads) put(table.spreads, slots.map, slots);
  }
  return table;
}

/** Adds to a partial table what the other side's Fragments share with Fragments that are not read. */
function keepShared(plan: NftPlan, others: readonly Fragment[], table: MutableTable): void {
  for (const fragment of others) {
    for (const chain of fragment.shared) {
      if (plan.uses.has(chainId(chain))) table.chains.set(chain.name, chain);
    }
    for (const filled of fragment.filled) if (plan.uses.has(setId(filled))) putFilled(table, filled);
    for (const element of fragment.elements) {
      if (isSharable(element) && plan.uses.has(elementId(element))) put(table.elements, element.set, element);
    }
  }
}

function sharedIds(fragment: Fragment): string[] {
  return [
    ...fragment.shared.map(chainId),
    ...fragment.filled.map(setId),
    ...fragment.elements.filter(isSharable).map(elementId),
  ];
}

/** Elements of plain sets state a fact that several ServicePorts may share; a map's key has one holder. */
function isSharable(element: Element): boolean {
  return element.data === null;
}

function chainId(chain: Chain): string {
  return `chain ${chain.name}`;
}

function setId({ set }: FilledSet): string {
  return `set ${set.name}`;
}

function elementId(element: Element & { readonly set: string }): string {
  return `${element.set} ${element.key}`;
}

/** Its elements are not copied: where two tables hold the same set, `diff` need not compare them. */
function putFilled(table: MutableTable, { set, elements }: FilledSet): void {
  if (table.sets.has(set.name)) return;
  table.sets.set(set.name, set);
  table.elements.set(set.name, elements);
}

function put<V extends { readonly key: string }>(
  into: Map<string, ReadonlyMap<string, V>>,
  name: string,
  value: V,
): void {
  // Elements of filled sets never come this way.
  let inner = into.get(name) as Map<string, V> | undefined;
  if (inner === undefined) {
    inner = new Map();
    into.set(name, inner);
  }
  inner.set(value.key, value);
}
