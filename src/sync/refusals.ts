// Which ServicePorts a refused Patch of the nftables mode concerns.
import type { RefusedPart } from "../host/nftables/host.ts";
import type { Problem } from "../model/problem.ts";
import type { PortKey } from "../model/snapshot.ts";
import type { Fragment, NftPlan } from "../plan/nftables/types.ts";

/** With the reason; none when the refusal concerns the foundation. */
export function culpritsOf(parts: readonly RefusedPart[], want: NftPlan): readonly [PortKey, string][] {
  const culprits: [PortKey, string][] = [];
  for (const part of parts) {
    for (const [key, fragment] of want.fragments.entries()) {
      if (concerns(part, fragment)) culprits.push([key, part.reason]);
    }
  }
  return culprits;
}

export function refusal(key: PortKey, reason: string): Problem {
  return {
    kind: "refused",
    object: `Service ${key.split("/").slice(0, 2).join("/")}`,
    field: "",
    message: `the kernel refused ${key}: ${reason}; all others are in place, and this one will be tried again`,
  };
}

function concerns({ operation, item }: RefusedPart, fragment: Fragment): boolean {
  switch (operation.kind) {
    case "add elements":
    case "delete elements":
      return (
        fragment.elements.some(
          ({ set, key }) => set === operation.set.name && (item === null || key === item.key),
        ) ||
        fragment.spreads.some(
          ({ map, key }) => map === operation.set.name && (item === null || key === item.key),
        )
      );
    case "add chain":
    case "add rules":
      return [...fragment.chains, ...fragment.shared].some(({ name }) => name === operation.chain.name);
    case "add set":
    case "remember clients":
      return fragment.sets.some(({ name }) => name === operation.set.name);
    case "add table":
    case "delete table":
    case "delete set":
    case "add counter":
    case "delete counter":
    case "flush chain":
    case "delete chain":
      return false;
  }
}
