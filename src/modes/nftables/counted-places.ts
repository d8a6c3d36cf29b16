// The places in the kernel that count for a ServicePort: elements of counted sets and maps, and named counters.
import { endpointKey } from "../../model/snapshot.ts";
import { type ElementKey, slotKey } from "../../plan/nftables/key.ts";
import type { Chain, Fragment, NftSet } from "../../plan/nftables/types.ts";
import { countedSet } from "./names.ts";

/** seen: first packets of flows to a frontend, before it is known whether an endpoint is found. */
export type CountKind = "seen" | "refused" | "outOfRange" | "endpoint";

export type CountedPlace = {
  /** null: a named counter. */
  readonly set: NftSet | null;
  readonly key: ElementKey;
  /** Of a slot map. */
  readonly slot: number | null;
  /** The whole key within its set. */
  readonly id: ElementKey;
  readonly kind: CountKind;
  /** `address:port` of the endpoint that it counts; null: it counts a frontend. */
  readonly endpoint: string | null;
};

/** Places that are read together. */
export type CountedGroup = { readonly set: NftSet | null; readonly places: readonly CountedPlace[] };

const kinds: ReadonlyMap<string, CountKind> = new Map([
  [countedSet.ips, "seen"],
  [countedSet.nodePorts, "seen"],
  [countedSet.refusedIPs, "refused"],
  [countedSet.refusedNodePorts, "refused"],
  [countedSet.outOfRange, "outOfRange"],
]);

/** `sets`: those that all ServicePorts share, by name. */
export function* placesOf(
  { elements, spreads, sets: own, counters, chains }: Fragment,
  sets: ReadonlyMap<string, NftSet>,
): Generator<CountedPlace> {
  for (const { set: name, key } of elements) {
    const kind = kinds.get(name);
    const set = kind === undefined ? undefined : sets.get(name);
    if (set !== undefined) yield { set, key, slot: null, id: key, kind: kind!, endpoint: null };
  }
  for (const { map, key, backends } of spreads) {
    const set = sets.get(map) ?? own.find(({ name }) => name === map);
    if (!set?.counted) continue;
    for (const [slot, backend] of backends.entries()) {
      if (backend === undefined) continue;
      yield { set, key, slot, id: slotKey(key, slot), kind: "endpoint", endpoint: endpointKey(backend) };
    }
  }
  if (counters === undefined) return;
  const byName = new Map(chains.map((chain) => [chain.name, chain]));
  for (const name of counters) {
    const endpoint = endpointOf(byName.get(name));
    if (endpoint !== null) yield { set: null, key: name, slot: null, id: name, kind: "endpoint", endpoint };
  }
}

/** A counter has the name of the chain that translates to one endpoint. */
function endpointOf(chain: Chain | undefined): string | null {
  for (const { statements } of chain?.rules ?? [])
    for (const statement of statements) if (statement.kind === "dnat") return endpointKey(statement);
  return null;
}
