// Time since the API server last sent anything about each resource, from the status of the Source.
import type { Kind } from "../manifests/objects.ts";
import type { SourceStatus } from "../sources/source.ts";
import type { WatchAges } from "./health.ts";

const resources = {
  Service: "services",
  EndpointSlice: "endpointslices",
  Node: "nodes",
  ServiceCIDR: "servicecidrs",
} as const satisfies Record<Kind, string>;

/** `since` is when watching began, for resources without any response; both times are of the steady clock. */
export function watchAges({ resources: known }: SourceStatus, since: number, now: number): WatchAges {
  const ages = new Map<string, number>();
  for (const kind of Object.keys(resources) as Kind[]) {
    const status = known[kind];
    // Clusters before 1.33 do not serve ServiceCIDRs: their age means nothing.
    if (status === undefined || (status.refused && kind === "ServiceCIDR")) continue;
    ages.set(resources[kind], now - (status.heardAt ?? since));
  }
  return ages;
}
