// Splits a huge change into batches of whole ServicePorts, so that neither the kernel nor the event loop is blocked for long.
import { isUrgent, type PortKey } from "../../model/snapshot.ts";
import { fillings } from "./fillings.ts";
import { isGrowth } from "./growth.ts";
import { elementId } from "./key.ts";
import { emptyPlan, withFragments } from "./plan.ts";
import type { Element, Fragment, NftPlan } from "./types.ts";

export type BatchLimits = {
  /** Changes up to this many elements are made in one batch. */
  readonly whole: number;
  /** The approximate number of elements in a batch. */
  readonly batch: number;
};

/** About 3 MB and 1.5 MB. */
export const batchSize = 32_768;
const ordinary: BatchLimits = { whole: 2 * batchSize, batch: batchSize };

/** Some ServicePorts to bring one step further. */
export type Batch = {
  readonly keys: readonly PortKey[];
  /** About how many elements it writes. */
  readonly size: number;
  /** What a ServicePort has after this batch, given what it has now. */
  readonly fragmentOf: (key: PortKey, now: Fragment | undefined) => Fragment | undefined;
  /** The host has nothing of these ServicePorts: the batch only adds. */
  readonly grows?: true;
};

/**
 * Steps from one Plan to another. After each of them every ServicePort is complete, as it was before or as wanted; at
 * most it has sets besides that nothing leads to yet. Small Services come before large ones. Everything is one batch
 * where the constant part changes as well. `before` null: there is no table yet.
 */
export function batches(
  before: NftPlan | null,
  want: NftPlan,
  keys: Iterable<PortKey>,
  limits: BatchLimits = ordinary,
): readonly Batch[] {
  const list = [...keys];
  if (isGrowth(before, want, list)) return growing(list, before, want, limits);
  const size = (key: PortKey) => sizeOf(want.fragments.get(key)) + sizeOf(before?.fragments.get(key));
  const total = list.reduce((sum, key) => sum + size(key), 0);
  const wanted = (some: readonly PortKey[]): Batch => ({
    keys: some,
    size: some.reduce((sum, key) => sum + size(key), 0),
    fragmentOf: (key) => want.fragments.get(key),
  });
  if (total <= limits.whole || (before !== null && before.foundation !== want.foundation))
    return [wanted(list)];
  return cut(list, before, want, size, limits.batch).flatMap((some) => [
    ...fillings(some, before, want, limits.batch),
    wanted(some),
  ]);
}

/** Batches of ServicePorts that the host has nothing of: nothing changes hands, so they are cut in their order. */
function growing(
  keys: readonly PortKey[],
  before: NftPlan | null,
  want: NftPlan,
  limits: BatchLimits,
): readonly Batch[] {
  const pieces = piecesToLoad(keys, want);
  const total = pieces.reduce((sum, { size }) => sum + size, 0);
  const limit = total <= limits.whole ? total : limits.batch;
  const small: { keys: PortKey[]; size: number }[] = [];
  // The constant part is written even where there is no ServicePort.
  if (pieces.length === 0) small.push({ keys: [], size: 0 });
  for (const { keys, size } of pieces) {
    if (size > limit) continue;
    if (small.length === 0 || small.at(-1)!.size >= limit) small.push({ keys: [], size: 0 });
    const part = small.at(-1)!;
    part.keys.push(...keys);
    part.size += size;
  }
  const fragmentOf = (key: PortKey) => want.fragments.get(key);
  return [
    ...small.map((part): Batch => ({ ...part, fragmentOf, grows: true })),
    ...pieces
      .filter(({ size }) => size > limit)
      .flatMap((piece) => [...fillings(piece.keys, before, want, limits.batch), { ...piece, fragmentOf }]),
  ];
}

/** ServicePorts to load together, and their size. */
type Piece = { readonly keys: PortKey[]; size: number };

/** Urgent ones first. All that share a cluster IP are one piece: an active one rejects its other ports. */
function piecesToLoad(keys: readonly PortKey[], want: NftPlan): readonly Piece[] {
  const uses = want.uses.get("cluster-ips");
  const shared = new Map<string, Piece>();
  const urgent: Piece[] = [];
  const others: Piece[] = [];
  for (const key of keys) {
    const fragment = want.fragments.get(key)!;
    const address = clusterIPOf(fragment) ?? "";
    const known = shared.get(address);
    if (known === undefined) {
      const piece = { keys: [key], size: sizeOf(fragment) };
      if ((uses?.get(address) ?? 0) > 1) shared.set(address, piece);
      (isUrgent(key) ? urgent : others).push(piece);
    } else {
      known.keys.push(key);
      known.size += sizeOf(fragment);
    }
  }
  return [...urgent, ...others];
}

/** The Plan after a batch; `applied` null: there is no table yet. */
export function after(applied: NftPlan | null, want: NftPlan, { keys, fragmentOf }: Batch): NftPlan {
  const changes = keys.map((key) => [key, fragmentOf(key, applied?.fragments.get(key))] as const);
  const isAll = applied === null && keys.length === want.fragments.size;
  if (isAll && changes.every(([key, fragment]) => fragment === want.fragments.get(key))) return want;
  return withFragments(applied ?? emptyPlan(want.foundation), want.foundation, changes);
}

function cut(
  keys: readonly PortKey[],
  before: NftPlan | null,
  want: NftPlan,
  size: (key: PortKey) => number,
  limit: number,
): PortKey[][] {
  const inseparable = entangled(keys, before, want);
  const first = keys.filter((key) => inseparable.has(key) || isUrgent(key));
  const taken = new Set(first);
  const result: PortKey[][] = [first];
  let room = limit - first.reduce((sum, key) => sum + size(key), 0);
  const groups = [...byClusterIP(keys, before, want)].map((group) => {
    const rest = group.filter((key) => !taken.has(key));
    return { rest, size: rest.reduce((sum, key) => sum + size(key), 0) };
  });
  for (const group of groups.sort((a, b) => a.size - b.size)) {
    const { rest } = group;
    // One that takes several steps does not delay others.
    if (room <= 0 || (group.size > limit && result.at(-1)!.length > 0)) {
      result.push([]);
      room = limit;
    }
    result.at(-1)!.push(...rest);
    for (const key of rest) room -= size(key);
  }
  return result;
}

/** An active cluster IP rejects every other port: all its ServicePorts are in one batch. */
function byClusterIP(
  keys: readonly PortKey[],
  before: NftPlan | null,
  want: NftPlan,
): Iterable<readonly PortKey[]> {
  const groups = new Map<string, PortKey[]>();
  for (const key of keys) {
    const address = clusterIPOf(want.fragments.get(key)) ?? clusterIPOf(before?.fragments.get(key)) ?? "";
    const group = groups.get(address);
    if (group === undefined) groups.set(address, [key]);
    else group.push(key);
  }
  return groups.values();
}

export function clusterIPOf(fragment: Fragment | undefined): string | undefined {
  return fragment?.elements.find(({ set }) => set === "cluster-ips")?.key;
}

/** ServicePorts that move to another cluster IP, and those between which a key of a map changes hands. */
function entangled(keys: readonly PortKey[], before: NftPlan | null, want: NftPlan): ReadonlySet<PortKey> {
  const found = new Set<PortKey>();
  if (before === null) return found;
  const holders = new Map<string, PortKey>();
  for (const key of keys) {
    for (const id of mapKeys(before.fragments.get(key))) holders.set(id, key);
  }
  for (const key of keys) {
    const [old, now] = [before, want].map(({ fragments }) => clusterIPOf(fragments.get(key)));
    if (old !== undefined && now !== undefined && old !== now) found.add(key);
    for (const id of mapKeys(want.fragments.get(key))) {
      const holder = holders.get(id) ?? key;
      if (holder !== key) found.add(holder).add(key);
    }
  }
  return found;
}

function mapKeys(fragment: Fragment | undefined): string[] {
  if (fragment === undefined) return [];
  const isOfMap = ({ data }: Element) => data !== null;
  return [
    ...fragment.elements.filter(isOfMap).map(({ set, key }) => elementId(set, key)),
    ...fragment.spreads.map(({ map, key }) => elementId(map, key)),
  ];
}

function sizeOf(fragment: Fragment | undefined): number {
  if (fragment === undefined) return 0;
  const slots = fragment.spreads.reduce((sum, { backends }) => sum + backends.length, 0);
  const ranges = fragment.filled.reduce((sum, { elements }) => sum + elements.size, 0);
  return fragment.elements.length + slots + ranges + 3 * fragment.chains.length;
}
