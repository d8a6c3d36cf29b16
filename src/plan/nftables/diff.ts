// The minimal operations from one table to another, ordered so that no packet reaches a half-built Service.
import { endpointKey } from "../../model/snapshot.ts";
import type { ElementKey } from "./key.ts";
import {
  type Backend,
  type BackendSlots,
  type Chain,
  type Client,
  type Element,
  isSlotMap,
  type NftSet,
  type NftTable,
  type Verdict,
} from "./types.ts";
import { sameVerdict } from "./verdict.ts";

/** One element of any set or map, as an operation names it. */
export type Item = {
  readonly key: ElementKey;
  /** Of a slot map. */
  readonly slot?: number | null;
  readonly data: Verdict | Backend | null;
  readonly comment: string | null;
};

export type Operation =
  | { readonly kind: "add table" }
  | { readonly kind: "delete table" }
  | { readonly kind: "add set"; readonly set: NftSet }
  | { readonly kind: "delete set"; readonly name: string }
  | { readonly kind: "add counter"; readonly name: string }
  | { readonly kind: "delete counter"; readonly name: string }
  | { readonly kind: "add chain"; readonly chain: Chain }
  | { readonly kind: "flush chain"; readonly name: string }
  | { readonly kind: "add rules"; readonly chain: Chain }
  | { readonly kind: "delete chain"; readonly name: string }
  | { readonly kind: "add elements"; readonly set: NftSet; readonly items: readonly Item[] }
  /** All slots of keys that the map does not have yet. */
  | { readonly kind: "add slots"; readonly set: NftSet; readonly spreads: readonly BackendSlots[] }
  | { readonly kind: "delete elements"; readonly set: NftSet; readonly items: readonly Item[] }
  | { readonly kind: "remember clients"; readonly set: NftSet; readonly clients: readonly Client[] };

/**
 * Operations from one table to the other; in this order any prefix that ends between two operations is safe, except
 * that a delete and a following add of the same key belong together. `have` null: there is no table.
 */
export function diff(have: NftTable | null, want: NftTable): readonly Operation[] {
  if (have === null) return [{ kind: "add table" }, ...between(emptyTable(want), want)];
  if (!canBeChangedInto(have, want)) return replacement(want);
  return between(have, want);
}

/** Operations that put a table in the place of whatever has its name. */
export function replacement(want: NftTable): readonly Operation[] {
  return [{ kind: "delete table" }, { kind: "add table" }, ...between(emptyTable(want), want)];
}

/** Slots of `want` rearranged so that as many Backends as possible stay where `have` has them. */
export function arrange(
  have: readonly (Backend | undefined)[],
  want: readonly (Backend | undefined)[],
): readonly Backend[] {
  if (have.length === 0 || isSameOrder(have, want)) return want as readonly Backend[];
  const waiting = new Map<string, Backend>();
  for (const backend of want) if (backend !== undefined) waiting.set(endpointKey(backend), backend);
  const slots: (Backend | undefined)[] = Array.from({ length: waiting.size });
  for (let i = 0; i < slots.length; i++) {
    const settled = have[i] === undefined ? undefined : waiting.get(endpointKey(have[i]!));
    if (settled === undefined) continue;
    slots[i] = settled;
    waiting.delete(endpointKey(settled));
  }
  const rest = waiting.values();
  return slots.map((backend) => backend ?? (rest.next().value as Backend));
}

function isSameOrder(a: readonly (Backend | undefined)[], b: readonly (Backend | undefined)[]): boolean {
  if (a.length !== b.length) return false;
  for (let i = 0; i < a.length; i++) {
    if (a[i] === undefined || b[i] === undefined || !sameBackend(a[i]!, b[i]!)) return false;
  }
  return true;
}

/** How many kernel objects a Patch touches. */
export function countOperations(patch: readonly Operation[]): number {
  let count = 0;
  for (const operation of patch) {
    count += sizeOf(operation);
  }
  return count;
}

/** How many kernel objects an operation touches. */
function sizeOf(operation: Operation): number {
  if ("items" in operation) return operation.items.length;
  if ("spreads" in operation)
    return operation.spreads.reduce((sum, { backends }) => sum + backends.length, 0);
  if (operation.kind === "remember clients") return operation.clients.length;
  return operation.kind === "add rules" ? operation.chain.rules.length : 1;
}

function between(have: NftTable, want: NftTable): readonly Operation[] {
  const chains = chainChanges(have, want);
  const slots = slotChanges(have, want);
  const elements = elementChanges(have, want);
  return [
    ...setsToWrite(have, want).map((set): Operation => ({ kind: "add set", set })),
    ...[...want.counters]
      .filter((name) => !have.counters.has(name))
      .map((name): Operation => ({ kind: "add counter", name })),
    ...chains.grow,
    ...slots.grow,
    // A pool's own chain uses more slots only when they exist.
    ...chains.rewrite,
    ...elements.grow,
    ...elements.shrink,
    ...slots.shrink,
    // A rule holds its sets, and a set's elements hold chains: rules go first, then sets, then chains.
    ...chains.empty,
    ...missing(want.sets, have.sets).map(({ name }): Operation => ({ kind: "delete set", name })),
    ...chains.shrink,
    ...[...have.counters]
      .filter((name) => !want.counters.has(name))
      .map((name): Operation => ({ kind: "delete counter", name })),
  ];
}

/** New sets, and those whose time-out changed: adding an existing set again updates it. */
function setsToWrite(have: NftTable, want: NftTable): NftSet[] {
  return [...want.sets.values()].filter((set) => {
    const old = have.sets.get(set.name);
    return old === undefined || old.timeout !== set.timeout;
  });
}

type Changes = { readonly grow: readonly Operation[]; readonly shrink: readonly Operation[] };

function hasRules({ rules }: Chain): boolean {
  return rules.length > 0;
}

function chainChanges(
  have: NftTable,
  want: NftTable,
): Changes & { readonly rewrite: readonly Operation[]; readonly empty: readonly Operation[] } {
  const added = missing(have.chains, want.chains);
  const gone = missing(want.chains, have.chains);
  const rewritten = [...want.chains.values()].filter((chain) => {
    const old = have.chains.get(chain.name);
    return old !== undefined && old !== chain && !sameRules(old, chain);
  });
  return {
    grow: [
      ...added.map((chain): Operation => ({ kind: "add chain", chain })),
      ...added.filter(hasRules).map((chain): Operation => ({ kind: "add rules", chain })),
    ],
    rewrite: [
      ...rewritten.map(({ name }): Operation => ({ kind: "flush chain", name })),
      ...rewritten.filter(hasRules).map((chain): Operation => ({ kind: "add rules", chain })),
    ],
    empty: gone.map(({ name }): Operation => ({ kind: "flush chain", name })),
    shrink: gone.map(({ name }): Operation => ({ kind: "delete chain", name })),
  };
}

function slotChanges(have: NftTable, want: NftTable): Changes {
  return collect(want, isSlotMap, (set, into) => {
    const old = have.spreads.get(set.name);
    const now = want.spreads.get(set.name);
    if (old === now) return;
    for (const slots of now?.values() ?? []) {
      const before = old?.get(slots.key);
      if (before !== slots) changeSlots(before?.backends ?? [], slots, into);
    }
    for (const slots of old?.values() ?? []) {
      if (!now?.has(slots.key)) changeSlots(slots.backends, { key: slots.key, backends: [] }, into);
    }
  });
}

function changeSlots(old: readonly (Backend | undefined)[], want: BackendSlots, into: ItemChanges): void {
  const now = arrange(old, want.backends);
  const item = (slot: number, data: Backend): Item => ({ key: want.key, slot, data, comment: null });
  for (let slot = 0; slot < now.length; slot++) {
    const before = old[slot];
    if (before !== undefined && sameBackend(before, now[slot]!)) continue;
    if (before !== undefined) into.replaced.push(item(slot, before));
    into.added.push(item(slot, now[slot]!));
  }
  for (let slot = now.length; slot < old.length; slot++) {
    if (old[slot] !== undefined) into.removed.push(item(slot, old[slot]!));
  }
}

function elementChanges(have: NftTable, want: NftTable): Changes {
  return collect(
    want,
    (set) => !isSlotMap(set) && set.timeout === null,
    (set, into) => {
      const old = have.elements.get(set.name);
      const now = want.elements.get(set.name);
      if (old === now) return;
      for (const element of now?.values() ?? []) {
        const before = old?.get(element.key);
        if (before !== undefined && sameElement(before, element)) continue;
        if (before !== undefined) into.replaced.push(itemOf(before));
        into.added.push(itemOf(element));
      }
      for (const element of old?.values() ?? [])
        if (!now?.has(element.key)) into.removed.push(itemOf(element));
    },
  );
}

type ItemChanges = { replaced: Item[]; added: Item[]; removed: Item[] };

/** Runs `change` for each wanted set of the right kind and makes operations of what it finds. */
function collect(
  want: NftTable,
  concerns: (set: NftSet) => boolean,
  change: (set: NftSet, into: ItemChanges) => void,
): Changes {
  const grow: Operation[] = [];
  const shrink: Operation[] = [];
  // A set that goes takes its elements along.
  for (const set of want.sets.values()) {
    if (!concerns(set)) continue;
    const into: ItemChanges = { replaced: [], added: [], removed: [] };
    change(set, into);
    // An interval set refuses an element that overlaps an existing one.
    if (set.interval) {
      into.replaced = [...into.replaced, ...into.removed];
      into.removed = [];
    }
    if (into.replaced.length > 0) grow.push({ kind: "delete elements", set, items: into.replaced });
    if (into.added.length > 0) grow.push({ kind: "add elements", set, items: into.added });
    if (into.removed.length > 0) shrink.push({ kind: "delete elements", set, items: into.removed });
  }
  return { grow, shrink };
}

function sameElement(a: Element, b: Element): boolean {
  return a.comment === b.comment && sameVerdict(a.data, b.data);
}

function itemOf({ key, data, comment }: Element): Item {
  return { key, slot: null, data, comment };
}

function missing<V extends { readonly name: string }>(
  here: ReadonlyMap<string, V>,
  there: ReadonlyMap<string, V>,
): V[] {
  return [...there.values()].filter(({ name }) => !here.has(name));
}

/** A set's type and a base chain's hook cannot be changed in place; the table is then replaced as a whole. */
export function canBeChangedInto(have: NftTable, want: NftTable): boolean {
  for (const set of want.sets.values()) {
    const old = have.sets.get(set.name);
    if (old !== undefined && old !== set && !sameType(old, set)) return false;
  }
  for (const chain of want.chains.values()) {
    const old = have.chains.get(chain.name);
    if (old !== undefined && !sameHook(old, chain)) return false;
  }
  return true;
}

function sameType(a: NftSet, b: NftSet): boolean {
  return (
    a.key.join() === b.key.join() &&
    String(a.data) === String(b.data) &&
    a.interval === b.interval &&
    a.counted === b.counted &&
    (a.timeout === null) === (b.timeout === null)
  );
}

function sameHook({ hook: a }: Chain, { hook: b }: Chain): boolean {
  if (a === null || b === null) return a === b;
  return a.type === b.type && a.hook === b.hook && a.priority === b.priority;
}

function sameRules(a: Chain, b: Chain): boolean {
  return a.rules.length === b.rules.length && JSON.stringify(a.rules) === JSON.stringify(b.rules);
}

function sameBackend(a: Backend, b: Backend): boolean {
  return a.port === b.port && a.address === b.address;
}

function emptyTable({ family }: NftTable): NftTable {
  return {
    family,
    sets: new Map(),
    counters: new Set(),
    chains: new Map(),
    elements: new Map(),
    spreads: new Map(),
  };
}
