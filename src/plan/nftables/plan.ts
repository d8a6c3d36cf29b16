// Putting Fragments together: an NftPlan changes one Fragment at a time, and unfolds into a table.
import { type Keyed, keyed } from "../../model/keyed.ts";
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
  return { foundation, fragments: keyed<Fragment>(), uses: keyed<Keyed<number>>(), changed: new Set() };
}

/** The Plan with other Fragments; `undefined` removes one. */
export function withFragments(
  plan: NftPlan,
  foundation: Foundation,
  changes: readonly (readonly [PortKey, Fragment | undefined])[],
): NftPlan {
  const uses = new UseCounts(plan.uses);
  for (const [key, fragment] of changes) {
    uses.add(plan.fragments.get(key), -1);
    uses.add(fragment, 1);
  }
  return {
    foundation,
    fragments: plan.fragments.with(changes),
    uses: uses.counted(),
    changed: new Set(changes.map(([key]) => key)),
  };
}

/** Whether Fragments of the Plan share this: a `chain`, a `filled set`, or an element of the named plain set. */
export function isInUse({ uses }: NftPlan, kind: string, name: string): boolean {
  return uses.get(kind)?.has(name) === true;
}

/** Counts by kind and name: no text is made for each of a hundred thousand Fragments. */
class UseCounts {
  readonly #before: NftPlan["uses"];
  readonly #changed = new Map<string, Map<string, number | undefined>>();

  constructor(before: NftPlan["uses"]) {
    this.#before = before;
  }

  add(fragment: Fragment | undefined, by: number): void {
    if (fragment === undefined) return;
    for (const { name } of fragment.shared) this.#count("chain", name, by);
    for (const { set } of fragment.filled) this.#count("filled set", set.name, by);
    for (const element of fragment.elements)
      if (isSharable(element)) this.#count(element.set, element.key, by);
  }

  counted(): NftPlan["uses"] {
    return this.#before.with(
      [...this.#changed].map(
        ([kind, counts]) => [kind, (this.#before.get(kind) ?? keyed<number>()).with(counts)] as const,
      ),
    );
  }

  #count(kind: string, name: string, by: number): void {
    let counts = this.#changed.get(kind);
    if (counts === undefined) {
      counts = new Map();
      this.#changed.set(kind, counts);
    }
    const before = counts.has(name) ? counts.get(name) : this.#before.get(kind)?.get(name);
    const now = (before ?? 0) + by;
    counts.set(name, now === 0 ? undefined : now);
  }
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

/** The same of all Fragments: `want` is the table of the Plan. */
export function settledAll(plan: NftPlan, want: NftTable, table: NftTable | null): NftPlan {
  const isAsWanted = [...want.spreads].every(([map, spreads]) => table?.spreads.get(map) === spreads);
  return isAsWanted ? plan : settled(plan, plan.fragments.keys(), table);
}

function settledFragment(fragment: Fragment, table: NftTable): Fragment {
  const spreads = fragment.spreads.map((slots) => settledSlots(slots, table));
  return spreads.every((slots, i) => slots === fragment.spreads[i]) ? fragment : { ...fragment, spreads };
}

function settledSlots(slots: Fragment["spreads"][number], have: NftTable): Fragment["spreads"][number] {
  const old = have.spreads.get(slots.map)?.get(slots.key);
  if (old === undefined || old.backends === slots.backends) return slots;
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
    for (const name of fragment.counters ?? []) table.counters.add(name);
  }
  return table;
}

/** Adds to a partial table what the other side's Fragments share with Fragments that are not read. */
function keepShared(plan: NftPlan, others: readonly Fragment[], table: MutableTable): void {
  for (const fragment of others) {
    for (const chain of fragment.shared) {
      if (isInUse(plan, "chain", chain.name)) table.chains.set(chain.name, chain);
    }
    for (const filled of fragment.filled)
      if (isInUse(plan, "filled set", filled.set.name)) putFilled(table, filled);
    for (const element of fragment.elements) {
      if (isSharable(element) && isInUse(plan, element.set, element.key))
        put(table.elements, element.set, element);
    }
  }
}

/** Elements of plain sets state a fact that several ServicePorts may share; a map's key has one holder. */
function isSharable(element: Element): boolean {
  return element.data === null;
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
