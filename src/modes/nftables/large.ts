// A ServicePort with many addresses and many endpoints: one slot map and one chain for each pool, instead of slots for
// each address.
import type { FamilySettings } from "../../config/resolve/settings.ts";
import type { Endpoint, ServicePort } from "../../model/snapshot.ts";
import { joinKey } from "../../plan/nftables/key.ts";
import type { Chain, Fragment, NftSet } from "../../plan/nftables/types.ts";
import type { PortRoutes } from "../../routing/routes.ts";
import { rule } from "./foundation.ts";
import { serviceName, slotMapName } from "./names.ts";
import { external, poolsInUse } from "./sticky.ts";

/** From this many slots on, a ServicePort has pools of its own. */
export const mostSharedSlots = 4096;

/** Whether slots for each address would be more than `limit`: addresses × endpoints, for each pool. */
export function isLarge({ port, routes }: PortRoutes, limit: number): boolean {
  let slots = 0;
  for (const { frontend, from } of routes) {
    if (from.node.kind === "forward") slots += from.node.pool.endpoints.length;
    const splits = frontend.kind !== "clusterIP" && port.externalPolicy === "local";
    if (splits && from.outside.kind === "forward") slots += from.outside.pool.endpoints.length;
  }
  return slots > limit;
}

/** Chains are named as kube-proxy names those of a Service, so that it takes them over. */
export function ownPools(
  routed: PortRoutes,
  settings: FamilySettings,
): Pick<Fragment, "chains" | "sets" | "spreads"> {
  const { port, pools } = routed;
  const { isExternal, usesCluster, usesLocal } = poolsInUse(routed);
  const made = [
    ...(usesCluster ? [pool("service", port, pools.cluster.endpoints, settings)] : []),
    ...(usesLocal ? [pool("local", port, pools.local.endpoints, settings)] : []),
  ];
  return {
    chains: [
      ...made.map(({ chain }) => chain),
      ...(usesCluster && isExternal ? [external(port, usesLocal, settings)] : []),
    ],
    sets: made.map(({ set }) => set),
    spreads: made.map(({ spread }) => spread),
  };
}

function pool(
  prefix: "service" | "local",
  port: ServicePort,
  endpoints: readonly Endpoint[],
  { traffic }: FamilySettings,
): { chain: Chain; set: NftSet; spread: Fragment["spreads"][number] } {
  const map = slotMapName(prefix === "service" ? "endpoints" : "local-endpoints", port, traffic);
  const pick = rule({
    kind: "dnat by slot",
    protocol: port.protocol,
    fields: [],
    slots: endpoints.length,
    map,
  });
  return {
    chain: { name: serviceName(prefix, port), hook: null, rules: [pick], comment: null },
    set: {
      name: map,
      key: ["slot"],
      data: ["address", "port"],
      interval: false,
      timeout: null,
      comment: null,
      ...(traffic === "endpoints" ? { counted: true } : {}),
    },
    spread: { map, key: joinKey([]), backends: endpoints },
  };
}
