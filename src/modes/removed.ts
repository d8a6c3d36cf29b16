// What clean-up removed from the host, counted by kind, for the log.
import type { IptablesPatch } from "../plan/iptables/types.ts";
import type { IpvsState, Operation } from "../plan/ipvs/types.ts";

export type Removed = Readonly<Record<string, number>>;

export function nothingRemoved(removed: Removed): boolean {
  return Object.values(removed).every((count) => count === 0);
}

/** Kinds of which nothing was removed are left out. */
export function sumRemoved(parts: readonly Removed[]): Removed {
  const sums = new Map<string, number>();
  for (const [kind, count] of parts.flatMap((part) => Object.entries(part)))
    if (count > 0) sums.set(kind, (sums.get(kind) ?? 0) + count);
  return Object.fromEntries(sums);
}

export function removedRules({ steps }: IptablesPatch): Removed {
  return {
    jumps: steps.reduce((sum, { remove }) => sum + remove.length, 0),
    chains: steps.reduce((sum, { doom }) => sum + doom.length, 0),
  };
}

/** With the link go the addresses on it. */
export function removedOfIpvs(
  { addresses }: Pick<IpvsState, "addresses">,
  operations: readonly Operation[],
): Removed {
  const count = (kind: Operation["kind"]) => operations.filter((operation) => operation.kind === kind).length;
  return {
    virtualServers: count("delete server"),
    addresses: count("delete link") > 0 ? addresses.size : count("delete address"),
    sets: count("destroy set"),
  };
}
