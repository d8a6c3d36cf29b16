// Fills the slot maps of large ServicePorts in several steps, before any rule uses them.
import type { PortKey } from "../../model/snapshot.ts";
import type { Batch } from "./batches.ts";
import { type BackendSlots, type Fragment, isSlotMap, type NftPlan, type NftSet } from "./types.ts";

/**
 * Batches that fill new slot maps of these ServicePorts, up to the last step, which belongs to the ServicePort itself.
 * None where a map takes one step. What an unfinished Sync has filled already is not filled again.
 */
export function fillings(
  keys: readonly PortKey[],
  before: NftPlan | null,
  want: NftPlan,
  most: number,
): readonly Batch[] {
  return keys.flatMap((key) => {
    const [old, now] = [before?.fragments.get(key), want.fragments.get(key)];
    const added = now?.sets.filter((set) => isSlotMap(set) && !isUsed(old, set.name)) ?? [];
    return added.flatMap((set) => {
      const slots = now!.spreads.find(({ map }) => map === set.name)!;
      const filled = old?.spreads.find(({ map }) => map === set.name)?.backends.length ?? 0;
      return steps(filled, slots.backends.length, most).map(
        (end): Batch => ({
          keys: [key],
          size: most,
          fragmentOf: (_, fragment = nothing) => withSlots(fragment, set, slots, end),
        }),
      );
    });
  });
}

function isUsed(fragment: Fragment | undefined, map: string): boolean {
  return (
    fragment?.chains.some(({ rules }) =>
      rules.some(({ statements }) => statements.some((each) => "map" in each && each.map === map)),
    ) ?? false
  );
}

/** Up to where each step goes, without the last one. */
function steps(from: number, to: number, most: number): number[] {
  const ends: number[] = [];
  for (let end = from + most; end < to; end += most) ends.push(end);
  return ends;
}

function withSlots(
  fragment: Fragment,
  set: NftSet,
  slots: BackendSlots & { readonly map: string },
  end: number,
): Fragment {
  return {
    ...fragment,
    sets: [...fragment.sets.filter(({ name }) => name !== set.name), set],
    spreads: [
      ...fragment.spreads.filter(({ map }) => map !== set.name),
      { ...slots, backends: slots.backends.slice(0, end) },
    ],
  };
}

const nothing: Fragment = { shared: [], filled: [], chains: [], sets: [], elements: [], spreads: [] };
