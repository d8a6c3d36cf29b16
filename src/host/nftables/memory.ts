// A table in memory that accepts and refuses Patches like the kernel.
import type { Item, Operation } from "../../plan/nftables/diff.ts";
import type {
  Backend,
  BackendSlots,
  Chain,
  Element,
  NftFamily,
  NftSet,
  NftTable,
  Verdict,
} from "../../plan/nftables/types.ts";
import { isSlotMap } from "../../plan/nftables/types.ts";
import { chainOf, sameVerdict } from "../../plan/nftables/verdict.ts";

/** The kernel's error, and the operation it refers to. */
export class Refused extends Error {
  readonly errno: string;
  operation = -1;

  constructor(errno: string, what: string) {
    super(`${what}: ${errno}`);
    this.errno = errno;
  }
}

/** The table after a Patch: all of it, or an error and nothing of it. */
export function applyInMemory(
  have: NftTable | null,
  patch: readonly Operation[],
  family: NftFamily,
): NftTable | null {
  let table = have === null ? null : copy(have);
  for (const [index, operation] of patch.entries()) {
    try {
      if (operation.kind === "add table") table ??= empty(family);
      else if (table === null) throw new Refused("ENOENT", operation.kind);
      else if (operation.kind === "delete table") table = null;
      else applyOne(table, operation);
    } catch (error) {
      if (error instanceof Refused) error.operation = index;
      throw error;
    }
  }
  return table === null ? null : shared(table);
}

/** From now on its slots are not changed in place. */
function shared({ ownSlots: _ownSlots, ...table }: Held): NftTable {
  return table;
}

type Held = {
  readonly family: NftFamily;
  readonly sets: Map<string, NftSet>;
  readonly counters: Set<string>;
  readonly chains: Map<string, Chain>;
  readonly elements: Map<string, Map<string, Element>>;
  readonly spreads: Map<string, Map<string, BackendSlots>>;
  /** Slots that no other table shares: written in place, since a Patch may have a hundred thousand for one key. */
  readonly ownSlots: Map<BackendSlots, (Backend | undefined)[]>;
};

type TableOperation = Exclude<Operation, { kind: "add table" | "delete table" }>;

function applyOne(table: Held, operation: TableOperation): void {
  switch (operation.kind) {
    case "add set":
      table.sets.set(operation.set.name, operation.set);
      return;
    case "delete set":
      must(table.sets.delete(operation.name), "ENOENT", `delete set ${operation.name}`);
      must(!isBound(table, operation.name), "EBUSY", `delete set ${operation.name}`);
      table.elements.delete(operation.name);
      table.spreads.delete(operation.name);
      return;
    case "add counter":
      table.counters.add(operation.name);
      return;
    case "delete counter":
      must(table.counters.delete(operation.name), "ENOENT", `delete counter ${operation.name}`);
      return;
    case "add chain":
      // What exists already is left as it is.
      if (!table.chains.has(operation.chain.name))
        table.chains.set(operation.chain.name, { ...operation.chain, rules: [] });
      return;
    case "flush chain":
      table.chains.set(operation.name, { ...chainNamed(table, operation.name), rules: [] });
      return;
    case "add rules": {
      const chain = chainNamed(table, operation.chain.name);
      for (const name of operation.chain.rules.flatMap(({ statements }) => statements.flatMap(chainsNamed)))
        chainNamed(table, name);
      table.chains.set(chain.name, { ...chain, rules: [...chain.rules, ...operation.chain.rules] });
      return;
    }
    case "delete chain":
      must(table.chains.has(operation.name), "ENOENT", `delete chain ${operation.name}`);
      must(!isReferenced(table, operation.name), "EBUSY", `delete chain ${operation.name}`);
      table.chains.delete(operation.name);
      return;
    case "add elements":
      for (const item of operation.items) addItem(table, operation.set, item);
      return;
    case "add slots":
      for (const { key, backends } of operation.spreads)
        for (const [slot, data] of backends.entries())
          addItem(table, operation.set, { key, slot, data: data!, comment: null });
      return;
    case "delete elements":
      for (const item of operation.items) deleteItem(table, operation.set, item);
      return;
    case "remember clients":
      must(
        table.sets.get(operation.set.name)?.timeout != null,
        "ENOENT",
        `remember in ${operation.set.name}`,
      );
      return;
  }
}

function addItem(table: Held, set: NftSet, item: Item): void {
  must(table.sets.has(set.name), "ENOENT", `add element to ${set.name}`);
  const what = `add element ${item.key} to ${set.name}`;
  if (isSlotMap(set)) {
    const backends = slotsOf(table, set, item.key);
    must(backends[item.slot!] === undefined, "EEXIST", what);
    backends[item.slot!] = item.data as Backend;
    return;
  }
  const elements = inner(table.elements, set.name);
  const data = item.data as Verdict | null;
  must(sameVerdict(elements.get(item.key)?.data ?? data, data), "EEXIST", what);
  const chain = chainOf(data);
  if (chain !== null) chainNamed(table, chain);
  elements.set(item.key, { key: item.key, data, comment: item.comment });
}

function deleteItem(table: Held, set: NftSet, item: Item): void {
  const what = `delete element ${item.key} of ${set.name}`;
  if (!isSlotMap(set)) {
    must(table.elements.get(set.name)?.delete(item.key) === true, "ENOENT", what);
    return;
  }
  const slots = table.spreads.get(set.name)?.get(item.key);
  must(slots?.backends[item.slot!] !== undefined, "ENOENT", what);
  const backends = slotsOf(table, set, item.key);
  backends[item.slot!] = undefined;
  while (backends.length > 0 && backends.at(-1) === undefined) backends.pop();
  if (backends.length === 0) table.spreads.get(set.name)!.delete(item.key);
}

function slotsOf(table: Held, set: NftSet, key: string): (Backend | undefined)[] {
  const spreads = inner(table.spreads, set.name);
  const known = spreads.get(key);
  const own = known === undefined ? undefined : table.ownSlots.get(known);
  if (own !== undefined) return own;
  const backends = [...(known?.backends ?? [])];
  const slots = { key, backends };
  table.ownSlots.set(slots, backends);
  spreads.set(key, slots);
  return backends;
}

function chainNamed(table: Held, name: string): Chain {
  const chain = table.chains.get(name);
  must(chain !== undefined, "ENOENT", `chain ${name}`);
  return chain!;
}

/** Whether a rule or an element leads to a chain. */
export function isReferenced(table: NftTable, name: string): boolean {
  for (const chain of table.chains.values()) {
    if (chain.rules.some(({ statements }) => statements.flatMap(chainsNamed).includes(name))) return true;
  }
  for (const elements of table.elements.values()) {
    for (const { data } of elements.values()) if (chainOf(data) === name) return true;
  }
  return false;
}

function isBound(table: Held, name: string): boolean {
  return [...table.chains.values()].some(({ rules }) =>
    rules.some(({ statements }) =>
      statements.some(
        (statement) =>
          ("set" in statement && statement.set === name) || ("map" in statement && statement.map === name),
      ),
    ),
  );
}

function chainsNamed(statement: Chain["rules"][number]["statements"][number]): readonly string[] {
  if (statement.kind === "jump" || statement.kind === "goto") return [statement.chain];
  return statement.kind === "goto by slot" ? statement.chains : [];
}

function must(holds: boolean, errno: string, what: string): void {
  if (!holds) throw new Refused(errno, what);
}

function inner<V>(maps: Map<string, Map<string, V>>, name: string): Map<string, V> {
  const known = maps.get(name);
  if (known !== undefined) return known;
  const made = new Map<string, V>();
  maps.set(name, made);
  return made;
}

function copy(table: NftTable): Held {
  const deep = <V>(maps: ReadonlyMap<string, ReadonlyMap<string, V>>) =>
    new Map([...maps].map(([name, map]) => [name, new Map(map)]));
  return {
    family: table.family,
    sets: new Map(table.sets),
    counters: new Set(table.counters),
    chains: new Map(table.chains),
    elements: deep(table.elements),
    spreads: deep(table.spreads),
    ownSlots: new Map(),
  };
}

function empty(family: NftFamily): Held {
  return {
    family,
    sets: new Map(),
    counters: new Set(),
    chains: new Map(),
    elements: new Map(),
    spreads: new Map(),
    ownSlots: new Map(),
  };
}
