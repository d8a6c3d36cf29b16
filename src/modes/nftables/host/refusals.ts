// Which ServicePorts a refused Patch of the nftables mode concerns.
import type { RefusedPart } from "../../../host/nftables/host.ts";
import type { PortKey } from "../../../model/snapshot.ts";
import { elementId } from "../../../plan/nftables/key.ts";
import type { Fragment, NftPlan } from "../../../plan/nftables/types.ts";

/** With the reason; none when the refusal concerns the foundation. Each Fragment is visited once. */
export function refusedKeysOf(parts: readonly RefusedPart[], want: NftPlan): ReadonlyMap<PortKey, string> {
  const reasons = new Map(parts.flatMap((part) => namesOf(part).map((name) => [name, part.reason] as const)));
  const refused = new Map<PortKey, string>();
  for (const [key, fragment] of want.fragments.entries()) {
    for (const name of namesIn(fragment)) {
      const reason = reasons.get(name);
      if (reason !== undefined) refused.set(key, reason);
    }
  }
  return refused;
}

/** What was refused: an element, or all that touch a set or chain when the kernel names no element. */
function namesOf({ operation, item }: RefusedPart): readonly string[] {
  switch (operation.kind) {
    case "add elements":
    case "add slots":
    case "delete elements":
      return [item === null ? `any of ${operation.set.name}` : elementId(operation.set.name, item.key)];
    case "add chain":
    case "add rules":
      return [`chain ${operation.chain.name}`];
    case "add set":
    case "remember clients":
      return [`set ${operation.set.name}`];
    case "add table":
    case "delete table":
    case "delete set":
    case "add counter":
    case "delete counter":
    case "flush chain":
    case "delete chain":
      return [];
  }
}

/** Everything of a Fragment that a refusal could name. */
function* namesIn({ elements, spreads, chains, shared, sets, filled }: Fragment): Generator<string> {
  for (const { set, key } of elements) yield* [elementId(set, key), `any of ${set}`];
  for (const { map, key } of spreads) yield* [elementId(map, key), `any of ${map}`];
  for (const { name } of chains) yield `chain ${name}`;
  for (const { name } of shared) yield `chain ${name}`;
  for (const { name } of sets) yield `set ${name}`;
  for (const { set } of filled) yield* [`set ${set.name}`, `any of ${set.name}`];
}
