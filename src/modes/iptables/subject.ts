// What the rules of one ServicePort depend on, worked out once.
import type { FamilySettings } from "../../config/resolve/settings.ts";
import { portLabel, type ServicePort } from "../../model/snapshot.ts";
import type { ChainName } from "../../plan/iptables/types.ts";
import { isExternallyReachable, type Pools } from "../../routing/pools.ts";
import type { PortRoutes } from "../../routing/routes.ts";
import type { Counters } from "./foundation.ts";
import { type ChainNames, chainNames } from "./names.ts";

export type Subject = {
  readonly port: ServicePort;
  readonly routed: PortRoutes;
  readonly pools: Pools;
  readonly settings: FamilySettings;
  readonly counters: Counters;
  readonly names: ChainNames;
  /** `namespace/name:portName`, for comments. */
  readonly label: string;
  /** Off in large clusters: comments on the rules of single Endpoints. */
  readonly comments: boolean;
  /** Where the cluster IP leads: by its policy, to the whole cluster or to this node. */
  readonly internal: { readonly chain: ChainName; readonly served: boolean };
  /** Where external traffic leads. */
  readonly external: { readonly chain: ChainName; readonly served: boolean };
  readonly usesExternal: boolean;
  /** Source ranges only restrict the way to endpoints: without endpoints every client is rejected alike. */
  readonly usesFirewall: boolean;
};

export function subjectOf(
  routed: PortRoutes,
  settings: FamilySettings,
  counters: Counters,
  comments: boolean,
): Subject {
  const { port, pools } = routed;
  const names = chainNames(port);
  const way = (policy: ServicePort["internalPolicy"]) => ({
    chain: policy === "local" ? names.local : names.cluster,
    served: pools.anyUsable && !(policy === "local" && pools.local.endpoints.length === 0),
  });
  return {
    port,
    routed,
    pools,
    settings,
    counters,
    names,
    label: portLabel(port),
    comments,
    internal: way(port.internalPolicy),
    external: way(port.externalPolicy),
    usesExternal: pools.anyUsable && isExternallyReachable(port),
    usesFirewall: pools.anyUsable && port.loadBalancerIPs.length > 0 && port.sourceRanges.length > 0,
  };
}
