// What leads from one Snapshot to another: a patch for each ServicePort that differs, this Node and the ServiceCIDRs.
import { type Cidr, type Family, families } from "../model/address.ts";
import { same } from "../model/same.ts";
import type { ClusterNode, PortKey, Snapshot } from "../model/snapshot.ts";
import { type PortPatch, patchOf } from "./patch.ts";

export type Change = {
  readonly ports?: Readonly<Partial<Record<Family, PortPatches>>>;
  readonly serviceCIDRs?: Readonly<Partial<Record<Family, readonly Cidr[]>>>;
  /** Absent: the same. */
  readonly node?: ClusterNode | null;
};

/** A list rather than an object: a name may be any text, `__proto__` among them. */
export type PortPatches = readonly (readonly [PortKey, PortPatch])[];

/** What may differ between two Snapshots. */
export type Keys = Readonly<Record<Family, Iterable<PortKey>>>;

/** How often `changeBetween` pauses. */
const keysPerStep = 200;

/** Yields between steps of some keys, and returns null when nothing differs. `keys`: those that may differ. */
export function* changeBetween(from: Snapshot, to: Snapshot, keys: Keys): Generator<void, Change | null> {
  const ports: Partial<Record<Family, PortPatches>> = {};
  const serviceCIDRs: Partial<Record<Family, readonly Cidr[]>> = {};
  let visited = 0;
  for (const family of families) {
    const patches: [PortKey, PortPatch][] = [];
    for (const key of keys[family]) {
      const patch = patchOf(from[family].ports.get(key), to[family].ports.get(key));
      if (patch !== undefined) patches.push([key, patch]);
      if (++visited % keysPerStep === 0) yield;
    }
    if (patches.length > 0) ports[family] = patches;
    if (!same(from[family].serviceCIDRs, to[family].serviceCIDRs))
      serviceCIDRs[family] = to[family].serviceCIDRs;
  }
  const change = {
    ...(Object.keys(ports).length === 0 ? {} : { ports }),
    ...(Object.keys(serviceCIDRs).length === 0 ? {} : { serviceCIDRs }),
    ...(same(from.node, to.node) ? {} : { node: to.node }),
  };
  return Object.keys(change).length === 0 ? null : change;
}

/** Runs a generator to its end, without pauses. */
export function finished<T>(steps: Generator<void, T>): T {
  for (;;) {
    const { done, value } = steps.next();
    if (done === true) return value;
  }
}
