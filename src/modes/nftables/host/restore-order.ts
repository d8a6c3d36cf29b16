// Which ServicePorts are restored first when the table is gone.
import { isUrgent, type PortKey } from "../../../model/snapshot.ts";
import { clusterIPOf } from "../../../plan/nftables/batches.ts";
import type { Fragment, NftPlan } from "../../../plan/nftables/types.ts";

/** A table of so few ServicePorts is written sooner than the tracked connections are read. */
const smallTable = 200;

/** Whether all of it is written in one step. */
export function isSmall({ fragments }: NftPlan): boolean {
  return fragments.size <= smallTable;
}

/**
 * The urgent ones and those with a frontend among these keys of `service-ips` and `service-nodeports`, in the order of the
 * Plan, with all that share a cluster IP with one of them: an active cluster IP rejects its other ports.
 */
export function restoredFirst(plan: NftPlan, destinations: ReadonlySet<string>): ReadonlySet<PortKey> {
  const found = new Set<PortKey>();
  const shared = new Set<string>();
  const uses = plan.uses.get("cluster-ips");
  for (const [key, fragment] of plan.fragments.entries()) {
    if (!isUrgent(key) && !leadsFrom(fragment, destinations)) continue;
    found.add(key);
    const address = clusterIPOf(fragment);
    if (address !== undefined && (uses?.get(address) ?? 0) > 1) shared.add(address);
  }
  if (shared.size === 0) return found;
  for (const [key, fragment] of plan.fragments.entries())
    if (shared.has(clusterIPOf(fragment) ?? "")) found.add(key);
  return found;
}

const frontendMaps: ReadonlySet<string> = new Set(["service-ips", "service-nodeports"]);

function leadsFrom({ elements }: Fragment, destinations: ReadonlySet<string>): boolean {
  return elements.some(({ set, key }) => frontendMaps.has(set) && destinations.has(key));
}
