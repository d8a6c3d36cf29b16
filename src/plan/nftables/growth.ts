// The operations that add ServicePorts of which the host has nothing yet, straight from their Fragments.
import type { PortKey } from "../../model/snapshot.ts";
import { diff, type Operation } from "./diff.ts";
import { isInUse, tableOf } from "./plan.ts";
import type {
  BackendSlots,
  Chain,
  Element,
  FilledSet,
  Foundation,
  Fragment,
  NftPlan,
  NftSet,
} from "./types.ts";

/** Whether the host has nothing of these ServicePorts, and all of them come with a Fragment. */
export function isGrowth(before: NftPlan | null, want: NftPlan, keys: readonly PortKey[]): boolean {
  if (before !== null && before.foundation !== want.foundation) return false;
  return keys.every((key) => want.fragments.has(key) && before?.fragments.has(key) !== true);
}

/**
 * A change that only adds, in one or more Patches: each has the operations of `diff`, in the same order of kinds, but no
 * tables are made and compared. See docs/decisions/0010-first-load.md.
 */
export class Growth {
  readonly #want: NftPlan;
  readonly #inUse: (kind: string, name: string) => boolean;
  #isBegun: boolean;
  /** Chains, filled sets and elements that several ServicePorts share and that an earlier Patch added, by kind. */
  readonly #added = new Map<string, Set<string>>();

  /** `before` null: there is no table yet. */
  constructor(before: NftPlan | null, want: NftPlan) {
    this.#want = want;
    this.#inUse = (kind, name) => before !== null && isInUse(before, kind, name);
    this.#isBegun = before !== null;
  }

  /** Adds these ServicePorts; call it once for each. */
  patch(keys: readonly PortKey[]): readonly Operation[] {
    const { foundation, fragments } = this.#want;
    const base = this.#isBegun ? [] : diff(null, tableOf(foundation, []));
    this.#isBegun = true;
    const pieces = new Pieces((kind, name) => this.#isNew(kind, name));
    for (const key of keys) pieces.add(fragments.get(key)!);
    return [...base, ...pieces.operations(foundation)];
  }

  #isNew(kind: string, name: string): boolean {
    if (this.#inUse(kind, name)) return false;
    let names = this.#added.get(kind);
    if (names === undefined) {
      names = new Set();
      this.#added.set(kind, names);
    }
    return names.size !== names.add(name).size;
  }
}

/** What some Fragments add, sorted by the operation that adds it. */
class Pieces {
  readonly #isNew: (kind: string, name: string) => boolean;
  readonly #sets = new Map<string, NftSet>();
  readonly #chains: Chain[] = [];
  readonly #counters: string[] = [];
  readonly #elements = new Map<string, Element[]>();
  readonly #spreads = new Map<string, BackendSlots[]>();

  constructor(isNew: (kind: string, name: string) => boolean) {
    this.#isNew = isNew;
  }

  add({ shared, filled, chains, sets, elements, spreads, counters }: Fragment): void {
    for (const counter of counters ?? []) this.#counters.push(counter);
    for (const chain of shared) if (this.#isNew("chain", chain.name)) this.#chains.push(chain);
    for (const chain of chains) this.#chains.push(chain);
    for (const set of sets) this.#sets.set(set.name, set);
    for (const each of filled) this.#fill(each);
    for (const element of elements) {
      if (element.data === null && !this.#isNew(element.set, element.key)) continue;
      listIn(this.#elements, element.set).push(element);
    }
    for (const slots of spreads) listIn(this.#spreads, slots.map).push(slots);
  }

  operations(foundation: Foundation): readonly Operation[] {
    const known = new Map(foundation.sets.map((set) => [set.name, set]));
    const setNamed = (name: string) => known.get(name) ?? this.#sets.get(name)!;
    return [
      ...[...this.#sets.values()].map((set): Operation => ({ kind: "add set", set })),
      ...this.#counters.map((name): Operation => ({ kind: "add counter", name })),
      ...this.#chains.map((chain): Operation => ({ kind: "add chain", chain })),
      ...this.#chains
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

  #fill({ set, elements }: FilledSet): void {
    if (!this.#isNew("filled set", set.name)) return;
    this.#sets.set(set.name, set);
    this.#elements.set(set.name, [...elements.values()]);
  }
}

function listIn<V>(lists: Map<string, V[]>, name: string): V[] {
  const known = lists.get(name);
  if (known !== undefined) return known;
  const made: V[] = [];
  lists.set(name, made);
  return made;
}
