// The operations that add ServicePorts of which the host has nothing yet, straight from their Fragments.
import type { PortKey } from "../../model/snapshot.ts";
import { diff, type Operation } from "./diff.ts";
import { isInUse, tableOf } from "./plan.ts";
import type { BackendSlots, Chain, Element, FilledSet, Fragment, NftPlan, NftSet } from "./types.ts";

/** Whether the host has nothing of these ServicePorts, and all of them come with a Fragment. */
export function isGrowth(before: NftPlan | null, want: NftPlan, keys: readonly PortKey[]): boolean {
  if (before !== null && before.foundation !== want.foundation) return false;
  return keys.every((key) => want.fragments.has(key) && before?.fragments.has(key) !== true);
}

/**
 * The same operations as those of `diff`, in the same order of kinds: it grows only, so no tables have to be compared.
 * `before` null: there is no table yet. See docs/decisions/0010-first-load.md.
 */
export function growth(
  before: NftPlan | null,
  want: NftPlan,
  keys: readonly PortKey[],
): readonly Operation[] {
  const added = new Added(before);
  for (const key of keys) added.fragment(want.fragments.get(key)!);
  return [...(before === null ? diff(null, tableOf(want.foundation, [])) : []), ...added.operations(want)];
}

class Added {
  readonly #before: NftPlan | null;
  readonly #sets = new Map<string, NftSet>();
  readonly #chains = new Map<string, Chain>();
  readonly #elements = new Map<string, Element[]>();
  readonly #spreads = new Map<string, BackendSlots[]>();
  /** Elements that several ServicePorts share, by set. */
  readonly #shared = new Map<string, Set<string>>();

  constructor(before: NftPlan | null) {
    this.#before = before;
  }

  fragment({ shared, filled, chains, sets, elements, spreads }: Fragment): void {
    for (const chain of shared) if (!this.#isInUse("chain", chain.name)) this.#chains.set(chain.name, chain);
    for (const chain of chains) this.#chains.set(chain.name, chain);
    for (const set of sets) this.#sets.set(set.name, set);
    for (const each of filled) this.#filled(each);
    for (const element of elements) this.#element(element);
    for (const slots of spreads) listIn(this.#spreads, slots.map).push(slots);
  }

  operations({ foundation }: NftPlan): readonly Operation[] {
    const chains = [...this.#chains.values()];
    const known = new Map(foundation.sets.map((set) => [set.name, set]));
    const setNamed = (name: string) => known.get(name) ?? this.#sets.get(name)!;
    return [
      ...[...this.#sets.values()].map((set): Operation => ({ kind: "add set", set })),
      ...chains.map((chain): Operation => ({ kind: "add chain", chain })),
      ...chains
        .filter(({ rules }) => rules.length > 0)
        .map((chain): Operation => ({ kind: "add rules", chain })),
      ...[...this.#spreads].map(
        ([name, spreads]): Operation => ({ kind: "add slots", set: setNamed(name), spreads }),
      ),
      ...[...this.#elements].map(
        ([name, items]): Operation => ({ kind: "add elements", set: setNamed(name), items }),
      ),
    ];
  }

  #filled({ set, elements }: FilledSet): void {
    if (this.#sets.has(set.name) || this.#isInUse("filled set", set.name)) return;
    this.#sets.set(set.name, set);
    this.#elements.set(set.name, [...elements.values()]);
  }

  #element(element: Fragment["elements"][number]): void {
    if (element.data === null && this.#isThere(element)) return;
    listIn(this.#elements, element.set).push(element);
  }

  #isThere({ set, key }: Fragment["elements"][number]): boolean {
    if (this.#isInUse(set, key)) return true;
    let keys = this.#shared.get(set);
    if (keys === undefined) {
      keys = new Set();
      this.#shared.set(set, keys);
    }
    if (keys.has(key)) return true;
    keys.add(key);
    return false;
  }

  #isInUse(kind: string, name: string): boolean {
    return this.#before !== null && isInUse(this.#before, kind, name);
  }
}

function listIn<V>(lists: Map<string, V[]>, name: string): V[] {
  const known = lists.get(name);
  if (known !== undefined) return known;
  const made: V[] = [];
  lists.set(name, made);
  return made;
}
