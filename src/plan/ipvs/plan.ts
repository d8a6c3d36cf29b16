// Combines Fragments: a Plan changes one Fragment at a time, and counts references to shared objects.
import type { Address, Family } from "../../model/address.ts";
import { type Keyed, keyed } from "../../model/keyed.ts";
import type { PortKey } from "../../model/snapshot.ts";
import type { IptablesPlan } from "../iptables/types.ts";
import { entryKey, serverKey } from "./names.ts";
import type { Claim, Fragment, IpvsPlan, ServerKey, SetName } from "./types.ts";

export function emptyPlan(
  family: Family,
  constants: Pick<IpvsPlan, "sets" | "excluded">,
  tables: IptablesPlan,
): IpvsPlan {
  return {
    family,
    ...constants,
    fragments: keyed<Fragment>(),
    servers: keyed<readonly Claim[]>(),
    addresses: keyed<number>(),
    entries: keyed<number>(),
    sizes: new Map(),
    tables,
    changed: new Set(),
  };
}

/** The Plan with other Fragments, and the same tables; `undefined` removes one. */
export function withFragments(
  plan: IpvsPlan,
  changes: readonly (readonly [PortKey, Fragment | undefined])[],
): IpvsPlan {
  const servers = new Map<ServerKey, readonly Claim[]>();
  const addresses = new Map<Address, number>();
  const entries = new Map<string, number>();
  for (const [key, now] of changes) {
    const old = plan.fragments.get(key);
    for (const server of old?.servers ?? []) {
      const id = serverKey(server);
      servers.set(
        id,
        claimsOf(plan, servers, id).filter(({ owner }) => owner !== key),
      );
    }
    for (const server of now?.servers ?? []) {
      const id = serverKey(server);
      servers.set(id, [...claimsOf(plan, servers, id), { owner: key, server }].sort(byRightToHold));
    }
    for (const address of old?.addresses ?? []) count(plan.addresses, addresses, address, -1);
    for (const address of now?.addresses ?? []) count(plan.addresses, addresses, address, 1);
    for (const { set, entry } of old?.entries ?? []) count(plan.entries, entries, entryKey(set, entry), -1);
    for (const { set, entry } of now?.entries ?? []) count(plan.entries, entries, entryKey(set, entry), 1);
  }
  return {
    ...plan,
    fragments: plan.fragments.with(changes),
    servers: plan.servers.with(
      [...servers].map(([id, claims]) => [id, claims.length === 0 ? undefined : claims]),
    ),
    addresses: plan.addresses.with(withoutZeros(addresses)),
    entries: plan.entries.with(withoutZeros(entries)),
    sizes: sizesAfter(plan, entries),
    changed: new Set(changes.map(([key]) => key)),
  };
}

function claimsOf(
  plan: IpvsPlan,
  touched: ReadonlyMap<ServerKey, readonly Claim[]>,
  id: ServerKey,
): readonly Claim[] {
  return touched.get(id) ?? plan.servers.get(id) ?? [];
}

/** Where a NodePort conflicts with an explicit address of a Service, the explicit one wins; otherwise the key decides. */
function byRightToHold(a: Claim, b: Claim): number {
  const rank = ({ server }: Claim) => (server.kind === "address" ? 0 : 1);
  return rank(a) - rank(b) || (a.owner < b.owner ? -1 : 1);
}

function count(before: Keyed<number>, touched: Map<string, number>, id: string, by: 1 | -1): void {
  touched.set(id, (touched.get(id) ?? before.get(id) ?? 0) + by);
}

function withoutZeros(counts: ReadonlyMap<string, number>): [string, number | undefined][] {
  return [...counts].map(([id, number]) => [id, number === 0 ? undefined : number]);
}

function sizesAfter(
  { sizes, entries }: IpvsPlan,
  touched: ReadonlyMap<string, number>,
): ReadonlyMap<SetName, number> {
  const after = new Map(sizes);
  for (const [id, number] of touched) {
    const gained = Number(number > 0) - Number(entries.has(id));
    if (gained === 0) continue;
    const set = id.slice(0, id.indexOf(" "));
    after.set(set, (after.get(set) ?? 0) + gained);
  }
  return after;
}
