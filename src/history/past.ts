// A Snapshot with changes undone: the newest one and, for each part that differed, what it was instead.
import { type Cidr, type Family, families } from "../model/address.ts";
import type { Keyed } from "../model/keyed.ts";
import {
  type ClusterNode,
  type FamilySnapshot,
  noCauses,
  noTriggers,
  type PortKey,
  type ServicePort,
  type Snapshot,
} from "../model/snapshot.ts";
import type { Change } from "./change.ts";
import { patched } from "./patch.ts";

/** One ServicePort before and after a change. */
export type PortStep = {
  readonly family: Family;
  readonly key: PortKey;
  readonly before: ServicePort | undefined;
  readonly after: ServicePort | undefined;
};

/** What undoing one change did. */
export type Step = {
  readonly ports: readonly PortStep[];
  readonly node: { readonly before: ClusterNode | null; readonly after: ClusterNode | null };
  readonly serviceCIDRs: Readonly<
    Record<Family, { readonly before: readonly Cidr[]; readonly after: readonly Cidr[] }>
  >;
};

/** Goes back from a Snapshot, one change after another; the Snapshot stays as it is. */
export class Past {
  readonly #latest: Snapshot;
  readonly #instead: Readonly<Record<Family, Map<PortKey, ServicePort | undefined>>> = {
    ipv4: new Map(),
    ipv6: new Map(),
  };
  readonly #cidrs: Record<Family, readonly Cidr[]>;
  #node: ClusterNode | null;

  constructor(latest: Snapshot) {
    this.#latest = latest;
    this.#node = latest.node;
    this.#cidrs = { ipv4: latest.ipv4.serviceCIDRs, ipv6: latest.ipv6.serviceCIDRs };
  }

  undo({ ports = {}, serviceCIDRs = {}, node }: Change): Step {
    const [nodeAfter, cidrsAfter] = [this.#node, { ...this.#cidrs }];
    const steps = families.flatMap((family) =>
      (ports[family] ?? []).map(([key, patch]): PortStep => {
        const after = this.#portAt(family, key);
        const before = patched(after, patch, family, key);
        this.#instead[family].set(key, before);
        return { family, key, before, after };
      }),
    );
    for (const family of families) this.#cidrs[family] = serviceCIDRs[family] ?? this.#cidrs[family];
    if (node !== undefined) this.#node = node;
    const cidrsOf = (family: Family) => ({ before: this.#cidrs[family], after: cidrsAfter[family] });
    return {
      ports: steps,
      node: { before: this.#node, after: nodeAfter },
      serviceCIDRs: { ipv4: cidrsOf("ipv4"), ipv6: cidrsOf("ipv6") },
    };
  }

  /** The state reached so far; it does not change when more is undone. */
  snapshot(): Snapshot {
    const of = (family: Family): FamilySnapshot => ({
      ports: overlaid(this.#latest[family].ports, new Map(this.#instead[family])),
      changed: new Set(),
      serviceCIDRs: this.#cidrs[family],
    });
    return {
      ipv4: of("ipv4"),
      ipv6: of("ipv6"),
      node: this.#node,
      triggeredAt: noTriggers,
      causes: noCauses,
      problems: [],
    };
  }

  #portAt(family: Family, key: PortKey): ServicePort | undefined {
    const instead = this.#instead[family];
    return instead.has(key) ? instead.get(key) : this.#latest[family].ports.get(key);
  }
}

/** `base.with(instead)` would make the daemon's own map an older version, and its next write a copy of all of it. */
function overlaid<V>(base: Keyed<V>, instead: ReadonlyMap<string, V | undefined>): Keyed<V> {
  function* entries(): IterableIterator<[string, V]> {
    for (const entry of base.entries()) if (!instead.has(entry[0])) yield entry;
    for (const [key, value] of instead) if (value !== undefined) yield [key, value];
  }
  const get = (key: string) => (instead.has(key) ? instead.get(key) : base.get(key));
  let size = base.size;
  for (const [key, value] of instead) size += Number(value !== undefined) - Number(base.has(key));
  return {
    size,
    get,
    has: (key) => get(key) !== undefined,
    with: (changes) => overlaid(base, new Map([...instead, ...changes])),
    entries,
    *keys() {
      for (const [key] of entries()) yield key;
    },
    *values() {
      for (const [, value] of entries()) yield value;
    },
  };
}
