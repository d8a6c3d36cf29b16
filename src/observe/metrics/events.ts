// `kubeproxy_sync_proxy_rules_…_changes_…`: events of the cluster, read from the Source when somebody asks.
import type { ClusterEvents } from "../../manifests/cluster.ts";
import type { Metrics } from "./metrics.ts";

/** As upstream: each family's tracker sees every Service event, but only the slices of its own addresses. */
export function reportEvents(metrics: Metrics, families: number, events: () => ClusterEvents): void {
  const read = (value: () => number) => () => [{ labels: {}, value: value() }];
  metrics.serviceChanges.from(read(() => events().services * families));
  metrics.endpointChanges.from(read(() => events().slices));
  metrics.serviceChangesPending.from(read(() => events().servicesWaiting));
  metrics.endpointChangesPending.from(read(() => events().slicesWaiting));
}
