// What ipvs mode makes of a packet: servers prefer endpoints of this node to silence, and hold every address they serve.
import type { FamilySettings } from "../config/settings.ts";
import { type Decision, decide, type Packet } from "../routing/decide.ts";
import { isExternallyReachable, type Pool, type Pools } from "../routing/pools.ts";
import type { PortRoutes, Route, Routes, Target } from "../routing/routes.ts";
import { ipvsTraits } from "../routing/traits.ts";

export function decideServed(routes: Routes, packet: Packet): Decision {
  const decision = decide(asServed(routes, packet), ipvsTraits, packet);
  if (decision.outcome.kind !== "pass" || decision.hit !== null || !isHeld(routes, packet)) return decision;
  const because = `${packet.to.address} is on the interface kube-ipvs0, but nothing serves this port there`;
  return { ...decision, outcome: { kind: "reject" }, because: [...decision.because.slice(0, -1), because] };
}

/** The same Routes, with those of the ServicePort that the packet could meet as its virtual servers have them. */
function asServed(routes: Routes, { to }: Packet): Routes {
  const ids = [`${to.address}/${to.protocol}/${to.port}`, `node/${to.protocol}/${to.port}`];
  const keys = ids.flatMap((id) => routes.claims.get(id)?.[0]?.key ?? []);
  const ports = routes.ports.with(
    keys.map((key) => [key, served(routes.ports.get(key)!, routes.settings)] as const),
  );
  return { ...routes, ports };
}

function served(routed: PortRoutes, settings: FamilySettings): PortRoutes {
  return { ...routed, routes: routed.routes.map((route) => servedRoute(route, routed, settings)) };
}

/** One server for all senders: who sends decides about masquerading only. */
function servedRoute(route: Route, { port, pools }: PortRoutes, settings: FamilySettings): Route {
  const isInternal = route.frontend.kind === "clusterIP";
  const policy = isInternal ? port.internalPolicy : port.externalPolicy;
  const pool = policy === "cluster" ? pools.cluster : orElsewhere(pools);
  const isRefused = isInternal && policy === "local" && !isExternallyReachable(port);
  const as = (masquerade: boolean): Target =>
    pool.endpoints.length > 0 && !(isRefused && pool !== pools.local)
      ? { kind: "forward", pool, masquerade }
      : { kind: "reject" };
  if (!isInternal) {
    const target = as(policy === "cluster");
    return { ...route, from: { pod: target, node: target, outside: target } };
  }
  // The node reaches a server from the very address of that server, which no endpoint could answer.
  const { masqueradeAll, detector } = settings;
  const isOutsideMarked = masqueradeAll || detector.kind !== "none";
  return { ...route, from: { pod: as(masqueradeAll), node: as(true), outside: as(isOutsideMarked) } };
}

function orElsewhere({ local, cluster }: Pools): Pool {
  return local.endpoints.length > 0 ? local : cluster;
}

function isHeld({ ports, settings }: Routes, { to }: Packet): boolean {
  for (const { port } of ports.values()) {
    if (port.loadBalancerIPs.includes(to.address)) return true;
    if (settings.externalIPsAllowed && port.externalIPs.includes(to.address)) return true;
  }
  return false;
}
