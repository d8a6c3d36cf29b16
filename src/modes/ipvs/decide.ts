// What ipvs mode makes of a packet: virtual servers know no senders, and without endpoints they refuse.
import type { FamilySettings } from "../../config/resolve/settings.ts";
import { type Address, contains } from "../../model/address.ts";
import { type Decision, decide, type Packet } from "../../routing/decide.ts";
import { isSamePool, type Pool } from "../../routing/pools.ts";
import type { PortRoutes, Route, Routes, Target } from "../../routing/routes.ts";
import { ipvsBehavior } from "./behavior.ts";

export function decideServed(routes: Routes, packet: Packet): Decision {
  const decision = decide(asServed(routes, packet), ipvsBehavior, packet);
  if (decision.hit === null && isOnLink(routes, packet)) return unserved(decision, routes, packet);
  if (decision.outcome.kind !== "forward") return decision;
  const because = isElsewhere(routes, decision)
    ? ["no endpoint is on this node, and ipvs mode uses others rather than none"]
    : [];
  const outcome = takesServiceAddress(routes, packet) ? withoutHairpin(decision) : decision.outcome;
  return { ...decision, outcome, because: [...decision.because, ...because] };
}

/** The kernel has packets of the node leave from the very address they go to, where that is on our link. */
function takesServiceAddress({ settings }: Routes, { from, to }: Packet): boolean {
  return from.origin === "node" && !settings.localAddresses.includes(to.address);
}

/** No endpoint reaches itself through the address of a Service. */
function withoutHairpin({ outcome, hit, sender }: Decision): Decision["outcome"] {
  const target = hit!.route.from[sender];
  if (outcome.kind !== "forward" || target.kind !== "forward") return outcome;
  return {
    kind: "forward",
    choices: outcome.choices.map((choice) => ({ ...choice, masquerade: target.masquerade })),
  };
}

/** The Routes with the targets that virtual servers have. */
function asServed(routes: Routes, packet: Packet): Routes {
  const { ports, settings } = routes;
  const served: Routes["ports"] = {
    size: ports.size,
    get(key) {
      const routed = ports.get(key);
      return routed === undefined ? undefined : servedPort(routed, settings, packet);
    },
    has: (key) => ports.has(key),
    keys: () => ports.keys(),
    values: () => ports.values(),
    entries: () => ports.entries(),
  };
  return { ...routes, ports: served };
}

function servedPort(routed: PortRoutes, settings: FamilySettings, packet: Packet): PortRoutes {
  const { port, pools } = routed;
  const preferred = (policy: "cluster" | "local") =>
    policy === "local" && pools.local.endpoints.length > 0 ? pools.local : pools.cluster;
  const routes = routed.routes.map((route): Route => {
    if (route.frontend.kind === "clusterIP") {
      const pool = preferred(port.internalPolicy);
      const detects = settings.detector.kind !== "none";
      return {
        ...route,
        from: {
          pod: targetOf(pool, settings.masqueradeAll),
          node: targetOf(pool, true),
          outside: targetOf(pool, settings.masqueradeAll || detects),
        },
      };
    }
    const target = targetOf(preferred(port.externalPolicy), port.externalPolicy === "cluster");
    const allowed =
      packet.from.origin === "node" ? allowedHere(route, target, settings, packet) : route.allowed;
    return { ...route, from: { pod: target, node: target, outside: target }, allowed };
  });
  return { ...routed, routes };
}

/**
 * Packets of the node meet IPVS before source ranges, which then count for the node as a whole, and only where they
 * leave from the very address they go to.
 */
function allowedHere(
  { allowed }: Route,
  target: Target,
  { nodeIP, localAddresses }: FamilySettings,
  { from, to }: Packet,
): Route["allowed"] {
  if (allowed === null || target.kind === "reject") return null;
  const leavesFromThere = from.address === to.address || !localAddresses.includes(to.address);
  return !leavesFromThere || allowed.some((range) => contains(range, nodeIP)) ? null : [];
}

function targetOf(pool: Pool, masquerade: boolean): Target {
  return pool.endpoints.length === 0 ? { kind: "reject" } : { kind: "forward", pool, masquerade };
}

/** Whether an address of a Service is what makes the packet end on this node. */
function isOnLink(routes: Routes, { to }: Packet): boolean {
  return !routes.settings.localAddresses.includes(to.address) && linkOf(routes).addresses.has(to.address);
}

type Link = { readonly addresses: ReadonlySet<Address>; readonly healthChecks: ReadonlySet<number> };

/** What is on the link, and which ports answer there all the same. */
function linkOf({ ports, servicePorts, settings }: Routes): Link {
  const known = links.get(ports);
  if (known !== undefined) return known;
  const all = [...servicePorts.values()];
  const link: Link = {
    addresses: new Set(
      all.flatMap(({ clusterIP, loadBalancerIPs, externalIPs }) => [
        clusterIP,
        ...loadBalancerIPs,
        ...(settings.externalIPsAllowed ? externalIPs : []),
      ]),
    ),
    healthChecks: new Set(all.map(({ healthCheckNodePort }) => healthCheckNodePort)),
  };
  links.set(ports, link);
  return link;
}

/** Kept for callers that decide many packets. */
const links = new WeakMap<Routes["ports"], Link>();

function unserved(decision: Decision, routes: Routes, packet: Packet): Decision {
  const because = decision.because.slice(0, -1);
  if (isHealthCheck(routes, packet)) {
    const why = "health checks are answered at every address of a Service";
    return { ...decision, outcome: { kind: "pass" }, because: [...because, why] };
  }
  const why = `${packet.to.address} is on the interface kube-ipvs0, but nothing serves this port there`;
  return { ...decision, outcome: { kind: "reject" }, because: [...because, why] };
}

function isHealthCheck(routes: Routes, { to }: Packet): boolean {
  return to.protocol !== "icmp" && linkOf(routes).healthChecks.has(to.port);
}

/** Policy Local, and endpoints that are not here. */
function isElsewhere({ ports }: Routes, { hit, sender }: Decision): boolean {
  const { port, pools } = ports.get(hit!.key)!;
  const { frontend, from } = hit!.route;
  const policy = frontend.kind === "clusterIP" ? port.internalPolicy : port.externalPolicy;
  const target = from[sender];
  return policy === "local" && target.kind === "forward" && isSamePool(target.pool, pools.cluster);
}
