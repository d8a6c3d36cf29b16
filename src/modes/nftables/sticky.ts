// Session affinity: chains and sets of the ServicePort's own, named and built as kube-proxy does, so that pins are
// kept per client and endpoint, across frontends, syncs, restarts, and a change of program.
import type { FamilySettings } from "../../config/resolve/settings.ts";
import type { Endpoint, ServicePort } from "../../model/snapshot.ts";
import type { Chain, NftSet, Rule } from "../../plan/nftables/types.ts";
import type { Frontend, PortRoutes } from "../../routing/routes.ts";
import { commented, rule } from "./foundation.ts";
import { endpointName, serviceName } from "./names.ts";
import { shortCircuit } from "./pickers.ts";

/** The chain a frontend's traffic enters by. */
export function stickyName(frontend: Frontend, port: ServicePort): string {
  if (frontend.kind !== "clusterIP") return serviceName("external", port);
  return serviceName(port.internalPolicy === "local" ? "local" : "service", port);
}

export function stickyChains(
  routed: PortRoutes,
  settings: FamilySettings,
): { chains: readonly Chain[]; sets: readonly NftSet[]; counters?: readonly string[] } {
  const { port, pools } = routed;
  const { isExternal, usesCluster, usesLocal } = poolsInUse(routed);
  const endpoints = new Set([
    ...(usesCluster ? pools.cluster.endpoints : []),
    ...(usesLocal ? pools.local.endpoints : []),
  ]);
  return {
    chains: [
      ...(usesCluster ? [balance("service", port, pools.cluster.endpoints)] : []),
      ...(usesLocal ? [balance("local", port, pools.local.endpoints)] : []),
      ...(usesCluster && isExternal ? [external(port, usesLocal, settings)] : []),
      ...[...endpoints].map((endpoint) => endpointChain(port, endpoint, settings)),
    ],
    sets: [...endpoints].map((endpoint) => affinitySet(port, endpoint)),
    ...(settings.traffic === "endpoints"
      ? { counters: [...endpoints].map((endpoint) => endpointName("endpoint", port, endpoint)) }
      : {}),
  };
}

/** Which pools the frontends of a ServicePort forward to. */
export function poolsInUse({ port, pools, routes }: PortRoutes): {
  readonly isExternal: boolean;
  readonly usesCluster: boolean;
  readonly usesLocal: boolean;
} {
  const isExternal = routes.some(({ frontend }) => frontend.kind !== "clusterIP");
  return {
    isExternal,
    usesCluster: pools.cluster.endpoints.length > 0 && (isExternal || port.internalPolicy === "cluster"),
    usesLocal:
      pools.local.endpoints.length > 0 &&
      (port.internalPolicy === "local" || (isExternal && port.externalPolicy === "local")),
  };
}

/** Known clients first, then a random choice. */
function balance(prefix: "service" | "local", port: ServicePort, endpoints: readonly Endpoint[]): Chain {
  const known = endpoints.map((endpoint) =>
    rule(
      { kind: "in set", fields: ["saddr"], set: endpointName("affinity", port, endpoint) },
      { kind: "goto", chain: endpointName("endpoint", port, endpoint) },
    ),
  );
  const chains = endpoints.map((endpoint) => endpointName("endpoint", port, endpoint));
  return chain(serviceName(prefix, port), [...known, rule({ kind: "goto by slot", chains })]);
}

export function external(port: ServicePort, hasLocal: boolean, settings: FamilySettings): Chain {
  const whole = serviceName("service", port);
  if (port.externalPolicy === "cluster") {
    const masquerade = commented("masquerade", {
      kind: "set mark",
      how: "or",
      mark: settings.masqueradeMark,
    });
    return chain(serviceName("external", port), [masquerade, rule({ kind: "goto", chain: whole })]);
  }
  const outside = hasLocal ? [rule({ kind: "goto", chain: serviceName("local", port) })] : [];
  return chain(serviceName("external", port), [...shortCircuit(whole, settings), ...outside]);
}

function endpointChain(port: ServicePort, endpoint: Endpoint, { traffic }: FamilySettings): Chain {
  const name = endpointName("endpoint", port, endpoint);
  return chain(name, [
    rule({ kind: "remember sender", set: endpointName("affinity", port, endpoint) }),
    ...(traffic === "endpoints" ? [rule({ kind: "count", counter: name })] : []),
    rule({ kind: "dnat", protocol: port.protocol, address: endpoint.address, port: endpoint.port }),
  ]);
}

function affinitySet(port: ServicePort, endpoint: Endpoint): NftSet {
  return {
    name: endpointName("affinity", port, endpoint),
    key: ["address"],
    data: null,
    interval: false,
    timeout: port.affinity!.seconds,
    comment: null,
  };
}

function chain(name: string, rules: readonly Rule[]): Chain {
  return { name, hook: null, rules, comment: null };
}
