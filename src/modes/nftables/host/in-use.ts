// Which ServicePorts of a Plan connections use.
import type { PortKey } from "../../../model/snapshot.ts";
import type { NftPlan } from "../../../plan/nftables/types.ts";

/** Those with a frontend among these keys of `service-ips` and `service-nodeports`, in the order of the Plan. */
export function keysInUse(plan: NftPlan, destinations: ReadonlySet<string>): ReadonlySet<PortKey> {
  const found = new Set<PortKey>();
  if (destinations.size === 0) return found;
  for (const [key, { elements }] of plan.fragments.entries())
    if (elements.some((element) => frontendMaps.has(element.set) && destinations.has(element.key)))
      found.add(key);
  return found;
}

const frontendMaps: ReadonlySet<string> = new Set(["service-ips", "service-nodeports"]);
