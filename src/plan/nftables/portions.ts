// Cuts a huge change into portions of whole ServicePorts, so that neither the kernel nor we are busy with it for long.
import type { PortKey } from "../../model/snapshot.ts";
import { emptyPlan, onto } from "./plan.ts";
import type { Element, Fragment, NftPlan } from "./types.ts";

export type PortionLimits = {
  /** Changes up to this many elements are made in one go. */
  readonly whole: number;
  /** How many elements a portion holds, about. */
  readonly portion: number;
};

/** About 3 MB and 1.5 MB. */
const ordinary: PortionLimits = { whole: 65_536, portion: 32_768 };

/** A Plan to reach, and the keys by which it differs from the one before. */
export type Portion = { readonly plan: NftPlan; readonly keys: readonly PortKey[] };

/**
 * Plans to reach one after the other, the last of which is `want`. Each is complete for the ServicePorts it holds, so
 * that no packet meets a half-built Service. Everything is one portion where the constant part changes as well.
 * `before` null: there is no table yet.
 */
export function portions(
  before: NftPlan | null,
  want: NftPlan,
  keys: Iterable<PortKey>,
  limits: PortionLimits = ordinary,
): readonly Portion[] {
  const list = [...keys];
  const size = (key: PortKey) => sizeOf(want.fragments.get(key)) + sizeOf(before?.fragments.get(key));
  const total = list.reduce((sum, key) => sum + size(key), 0);
  if (total <= limits.whole || (before !== null && before.foundation !== want.foundation))
    return [{ plan: before === null ? want : onto(before, want, list), keys: list }];
  let plan = before ?? emptyPlan(want.foundation);
  return cut(list, before, want, size, limits.portion).map((some) => {
    plan = onto(plan, want, some);
    return { plan, keys: some };
  });
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
  for (const group of byClusterIP(keys, before, want)) {
    const rest = group.filter((key) => !taken.has(key));
    if (room <= 0) {
      result.push([]);
      room = limit;
    }
    result.at(-1)!.push(...rest);
    for (const key of rest) room -= size(key);
  }
  return result;
}

/** An active cluster IP rejects every port that it does not know: all its ServicePorts come together. */
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

function clusterIPOf(fragment: Fragment | undefined): string | undefined {
  return fragment?.elements.find(({ set }) => set === "cluster-ips")?.key;
}

/** Everything else waits for these: the API server and what usually runs in `kube-system`, DNS above all. */
function isUrgent(key: PortKey): boolean {
  return key.startsWith("default/kubernetes/") || key.startsWith("kube-system/");
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
    ...fragment.elements.filter(isOfMap).map(({ set, key }) => `${set} ${key}`),
    ...fragment.spreads.map(({ map, key }) => `${map} ${key}`),
  ];
}

function sizeOf(fragment: Fragment | undefined): number {
  if (fragment === undefined) return 0;
  const slots = fragment.spreads.reduce((sum, { backends }) => sum + backends.length, 0);
  return fragment.elements.length + slots + 3 * fragment.chains.length;
}
