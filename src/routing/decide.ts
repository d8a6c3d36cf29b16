// The executable specification: what happens to the first packet of a connection, and why.
import type { FamilySettings } from "../config/resolve/settings.ts";
import { type Address, contains, isLoopback, joinHostPort } from "../model/address.ts";
import { type Endpoint, type PortKey, type Protocol, portLabel } from "../model/snapshot.ts";
import type { Behavior } from "./behavior.ts";
import {
  type FrontendId,
  frontendId,
  holderOf,
  type PortRoutes,
  type Route,
  type Routes,
  type Sender,
  type Target,
} from "./routes.ts";

/** The first packet of a connection. */
export type Packet = {
  readonly from: {
    /** Where it is sent: in a pod of this node, by this node itself, or anywhere else. */
    readonly origin: "pod" | "node" | "elsewhere";
    readonly address: Address;
  };
  readonly to: { readonly address: Address; readonly protocol: Protocol | "icmp"; readonly port: number };
};

export type Decision = {
  readonly outcome: Outcome;
  /** How the sender was seen. */
  readonly sender: Sender;
  /** The Frontend that was hit, if any. */
  readonly hit: { readonly key: PortKey; readonly route: Route } | null;
  /** The way to the outcome, one sentence a step. */
  readonly because: readonly string[];
};

export type Outcome =
  | { readonly kind: "forward"; readonly choices: readonly Choice[] }
  | { readonly kind: "reject" }
  | { readonly kind: "drop" }
  | { readonly kind: "pass" };

/** One Endpoint that may be chosen, all equally likely, and whether it sees this node instead of the sender. */
export type Choice = { readonly endpoint: Endpoint; readonly masquerade: boolean };

export function decide(routes: Routes, behavior: Behavior, packet: Packet): Decision {
  const sender = senderOf(packet, routes.settings);
  const found = find(routes, behavior, packet);
  const { outcome, because } =
    found === null
      ? withoutFrontend(routes, behavior, packet)
      : atFrontend(found, sender.kind, routes.settings, behavior, packet);
  return {
    outcome,
    sender: sender.kind,
    hit: found === null ? null : { key: found.routed.port.key, route: found.route },
    because: [sender.because, ...(found === null ? [] : [found.because]), because],
  };
}

type Verdict = { readonly outcome: Outcome; readonly because: string };

/** How the sender is seen: the detector decides first, then whether the address is the node's own. */
export function senderOf(
  { from }: Pick<Packet, "from">,
  settings: FamilySettings,
): { kind: Sender; because: string } {
  const { detector } = settings;
  if (detector.kind === "cidr" && contains(detector.cidr, from.address)) {
    return { kind: "pod", because: `${from.address} is in ${detector.cidr}: traffic of a pod` };
  }
  if ((detector.kind === "interface" || detector.kind === "interfacePrefix") && from.origin === "pod") {
    return { kind: "pod", because: "it comes in through a pod's interface: traffic of a pod" };
  }
  if (isNodeAddress(from.address, settings)) {
    return { kind: "node", because: `${from.address} is an address of this node` };
  }
  return { kind: "outside", because: `${from.address} is neither a known pod nor this node` };
}

type Found = {
  readonly routed: PortRoutes;
  readonly route: Route;
  /** `refusals`: the NodePort exists but does not answer on this address; only its reject or drop holds here. */
  readonly scope: "everything" | "refusals" | "localhost";
  readonly because: string;
};

function find(routes: Routes, behavior: Behavior, { to }: Packet): Found | null {
  if (to.protocol === "icmp") return null;
  const byAddress = routeAt(routes, `${to.address}/${to.protocol}/${to.port}`);
  if (byAddress !== null) {
    const because = `${joinHostPort(to.address, to.port)} is a ${byAddress.route.frontend.kind} of ${portLabel(byAddress.routed.port)}`;
    return { ...byAddress, scope: "everything", because };
  }
  if (!isNodeAddress(to.address, routes.settings)) return null;
  const byNodePort = routeAt(routes, `node/${to.protocol}/${to.port}`);
  const scope = nodePortScope(to.address, routes.settings, behavior);
  if (byNodePort === null || scope === null) return null;
  return {
    ...byNodePort,
    scope,
    because: `${to.port} is a NodePort of ${portLabel(byNodePort.routed.port)}`,
  };
}

function routeAt(routes: Routes, id: FrontendId): { routed: PortRoutes; route: Route } | null {
  const key = holderOf(routes, id);
  if (key === undefined) return null;
  const routed = routes.ports.get(key)!;
  return { routed, route: routed.routes.find((candidate) => frontendId(candidate.frontend) === id)! };
}

/** How NodePorts behave at a local address; null: they do not exist there. */
export function nodePortScope(
  address: Address,
  settings: FamilySettings,
  behavior: Behavior,
): Found["scope"] | null {
  const { nodePortAddresses: places } = settings;
  const refusals = behavior.refusesOnEveryLocalAddress ? "refusals" : null;
  if (isLoopback(address)) {
    if (behavior.loopback === "never") return null;
    if (behavior.loopback === "nftLocalhost") return settings.nftLocalhost === "pass" ? null : "localhost";
    if (behavior.loopback === "localhostNodePorts" && !settings.localhostNodePorts) return refusals;
  }
  const listed = places.kind === "all" || places.cidrs.some((cidr) => contains(cidr, address));
  return listed ? "everything" : refusals;
}

function atFrontend(
  found: Found,
  sender: Sender,
  settings: FamilySettings,
  behavior: Behavior,
  packet: Packet,
): Verdict {
  const { routed, route, scope } = found;
  if (scope === "localhost") return onLocalhost(routed, settings, packet);
  // Where a NodePort only refuses, no packet takes the short circuit that policy Local gives to this node and its pods.
  const target = route.from[scope === "refusals" ? "outside" : sender];
  const rangesHold =
    (target.kind !== "reject" || behavior.firewallWithoutEndpoints) &&
    (behavior.firewallAtExternalIPs || !isExternalIP(found, settings, packet));
  if (
    route.allowed !== null &&
    rangesHold &&
    !route.allowed.some((range) => contains(range, packet.from.address))
  ) {
    return {
      outcome: { kind: "drop" },
      because: `${packet.from.address} is outside loadBalancerSourceRanges`,
    };
  }
  if (target.kind === "forward" && scope === "refusals") {
    return { outcome: { kind: "pass" }, because: `NodePorts do not answer on ${packet.to.address}` };
  }
  if (target.kind !== "forward" && leavesUnseen(route, behavior, packet, settings)) {
    return {
      outcome: { kind: "pass" },
      because: "no endpoint, and this mode does not filter the node's own packets here",
    };
  }
  return {
    outcome: outcomeOf(target, packet, settings, behavior),
    because: targetReason(target, routed, route, behavior.localShortCircuit && sender !== "outside"),
  };
}

function isExternalIP({ routed }: Found, settings: FamilySettings, { to }: Packet): boolean {
  return settings.externalIPsAllowed && routed.port.externalIPs.includes(to.address);
}

/** nftables mode with its gate on: a listener of ours forwards, or the packet is refused and counted. */
function onLocalhost({ port, pools }: PortRoutes, settings: FamilySettings, { to }: Packet): Verdict {
  if (settings.nftLocalhost !== "serve" || port.protocol === "sctp") {
    return { outcome: { kind: "reject" }, because: "NodePorts on loopback are refused" };
  }
  const pool = port.externalPolicy === "local" ? pools.local : pools.cluster;
  if (pool.endpoints.length === 0 || !["127.0.0.1", "::1"].includes(to.address)) {
    return { outcome: { kind: "pass" }, because: "nothing listens there" };
  }
  const choices = pool.endpoints.map((endpoint) => ({ endpoint, masquerade: true }));
  return {
    outcome: { kind: "forward", choices },
    because: `served on loopback by the proxy itself: ${pool.because}`,
  };
}

function withoutFrontend(routes: Routes, behavior: Behavior, { to }: Packet): Verdict {
  if (isClusterIP(routes, to.address)) {
    const because = `${to.address} is a cluster IP, but not for this port and protocol`;
    return { outcome: { kind: behavior.undefinedPort }, because };
  }
  const cidr = routes.serviceCIDRs.find((range) => contains(range, to.address));
  if (cidr !== undefined) {
    const because = `${to.address} is inside ServiceCIDR ${cidr}, but belongs to no Service`;
    return { outcome: { kind: behavior.unallocatedAddress }, because };
  }
  const nodePort = to.protocol === "icmp" ? null : routeAt(routes, `node/${to.protocol}/${to.port}`);
  if (nodePort === null) return { outcome: { kind: "pass" }, because: "no Service is there" };
  const why = isNodeAddress(to.address, routes.settings)
    ? `NodePorts do not answer on ${to.address}`
    : `${to.address} is no address of this node`;
  const because = `${to.port} is a NodePort of ${portLabel(nodePort.routed.port)}, but ${why}`;
  return { outcome: { kind: "pass" }, because };
}

function isClusterIP({ servicePorts }: Routes, address: Address): boolean {
  const known =
    clusterIPs.get(servicePorts) ?? new Set([...servicePorts.values()].map(({ clusterIP }) => clusterIP));
  clusterIPs.set(servicePorts, known);
  return known.has(address);
}

/** Kept for callers that decide many packets. */
const clusterIPs = new WeakMap<Routes["servicePorts"], ReadonlySet<Address>>();

/** Rows 109 and 125: such a packet leaves the node unless the address is the node's own. */
function leavesUnseen(
  { frontend }: Route,
  behavior: Behavior,
  { from }: Packet,
  settings: FamilySettings,
): boolean {
  return (
    behavior.nodeToExternalWithoutEndpoints === "pass" &&
    from.origin === "node" &&
    (frontend.kind === "externalIP" || frontend.kind === "loadBalancerIP") &&
    !isNodeAddress(frontend.address, settings)
  );
}

function outcomeOf(target: Target, packet: Packet, settings: FamilySettings, behavior: Behavior): Outcome {
  if (target.kind !== "forward") return target;
  const choices = target.pool.endpoints.map((endpoint) => ({
    endpoint,
    masquerade: isMasqueraded(target.masquerade, endpoint, packet, settings, behavior),
  }));
  return { kind: "forward", choices };
}

/** A packet that ends on this node meets no postrouting unless it also started here. */
function isMasqueraded(
  marked: boolean,
  endpoint: Endpoint,
  { from }: Packet,
  settings: FamilySettings,
  behavior: Behavior,
): boolean {
  if (from.origin !== "node" && isNodeAddress(endpoint.address, settings)) return false;
  if (marked) return true;
  if (from.address !== endpoint.address) return false;
  return behavior.hairpinOfRemoteEndpoints || endpoint.nodeName === settings.nodeName;
}

const policyNames = { cluster: "Cluster", local: "Local" } as const;

function targetReason(
  target: Target,
  { port }: PortRoutes,
  { frontend }: Route,
  startsHere: boolean,
): string {
  const external = frontend.kind !== "clusterIP";
  const policy = external
    ? `externalTrafficPolicy ${policyNames[port.externalPolicy]}`
    : `internalTrafficPolicy ${policyNames[port.internalPolicy]}`;
  const shortcut = external && port.externalPolicy === "local" && startsHere;
  const rule = shortcut
    ? `${policy}, but traffic that starts on this node may use the whole cluster`
    : policy;
  switch (target.kind) {
    case "forward":
      return `${rule}: ${target.pool.because}`;
    case "drop":
      return `${rule}: no usable endpoint on this node, but elsewhere`;
    case "reject":
      return `${rule}: no usable endpoint anywhere`;
  }
}

function isNodeAddress(address: Address, settings: FamilySettings): boolean {
  return isLoopback(address) || settings.localAddresses.includes(address);
}
