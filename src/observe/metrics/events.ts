// `kubeproxy_sync_proxy_rules_…_changes_…`: events of the cluster, read from the Source when they are scraped.
import type { ClusterEvents } from "../../manifests/cluster.ts";
import type { Family } from "../../model/address.ts";
import type { Metrics } from "./metrics.ts";

/** As upstream: each family's tracker sees every Service event, but only the slices of its own addresses. */
export function reportEvents(
  metrics: Metrics,
  families: readonly Family[],
  events: () => ClusterEvents,
): void {
  const sum = (counts: Readonly<Record<Family, number>>) =>
    families.reduce((total, family) => total + counts[family], 0);
  const read = (value: () => number) => () => [{ labels: {}, value: value() }];
  metrics.serviceChanges.from(read(() => events().services * families.length));
  metrics.endpointChanges.from(read(() => sum(events().slices)));
  metrics.serviceChangesPending.from(read(() => events().servicesWaiting));
  metrics.endpointChangesPending.from(read(() => sum(events().slicesWaiting)));
}
