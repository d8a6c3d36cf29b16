// Routes to the Plan of userspace mode: rules that lead every Frontend to its relay, and nothing else.
import type { FamilySettings } from "../../config/resolve/settings.ts";
import { type Address, isLoopback } from "../../model/address.ts";
import { type PortKey, portLabel, type ServicePort } from "../../model/snapshot.ts";
import { emptyPlan, withFragments } from "../../plan/iptables/plan.ts";
import type { Fragment, IptablesPlan, Match, PlacedRule, Target } from "../../plan/iptables/types.ts";
import {
  type FrontendId,
  frontendId,
  type PortRoutes,
  type Route,
  type Routes,
} from "../../routing/routes.ts";
import { accept, comment, dport, drop, proto, rule, to, toThisNode, tracked } from "../iptables/rule.ts";
import { chains, foundation } from "./foundation.ts";
import { policiesOf, policyOf, type RelayPolicy } from "./relay-policy.ts";

/** The sockets of one ServicePort. */
export type Sockets = {
  /** The port each relay listens on. */
  readonly relayPorts: ReadonlyMap<RelayPolicy, number>;
  /** Frontends whose address and port some other program holds: they stay with that program. */
  readonly taken: ReadonlySet<FrontendId>;
};

export type Relaying = {
  /** The address all relays listen on; null: every address. */
  readonly bind: Address | null;
  readonly socketsOf: (key: PortKey) => Sockets;
};

/** `before` must be the Plan of the Routes before: then only changed keys are visited; without it everything is. */
export function compile(before: IptablesPlan | null, routes: Routes, relaying: Relaying): IptablesPlan {
  const keys = before === null ? [...routes.ports.keys()] : [...routes.changed];
  const changes = keys.map((key) => {
    const routed = routes.ports.get(key);
    return [key, routed === undefined ? undefined : fragmentOf(routed, routes.settings, relaying)] as const;
  });
  return withFragments(before ?? emptyPlan(routes.settings.family, foundation), foundation, changes);
}

function fragmentOf(routed: PortRoutes, settings: FamilySettings, relaying: Relaying): Fragment {
  const { port, routes } = routed;
  const { relayPorts, taken } = relaying.socketsOf(port.key);
  const redirects = routes.flatMap((route) => {
    const relayPort = relayPorts.get(policyOf(port, route));
    if (relayPort === undefined || taken.has(frontendId(route.frontend))) return [];
    const ways = { ...targets(relayPort, relaying.bind, settings), relayPort };
    return frontendRules(route, comment(portLabel(port)), ways, settings);
  });
  const placed = [
    ...redirects,
    ...[...policiesOf(routed)].flatMap((policy) => closedTo(port, relayPorts.get(policy))),
  ];
  const inNat = placed.filter(({ table }) => table === "nat").length;
  const totals = { filterRules: placed.length - inNat, natRules: inNat, endpoints: port.endpoints.length };
  return { key: port.key, placed, chains: [], totals };
}

/** Relays listen on every address: packets sent to their ports would evade nodePortAddresses and network policies. */
function closedTo(port: ServicePort, relayPort: number | undefined): PlacedRule[] {
  if (relayPort === undefined) return [];
  const match = [comment(portLabel(port)), proto(port.protocol), dport(relayPort)];
  return [{ table: "filter", chain: chains.firewall, rule: rule(...match, drop) }];
}

type Ways = { readonly pods: Target; readonly node: Target; readonly relayPort: number };

/** What starts on the node has no interface whose address a redirect could take. */
function targets(port: number, bind: Address | null, settings: FamilySettings): Omit<Ways, "relayPort"> {
  if (bind !== null) {
    const target: Target = { kind: "dnat", address: bind, port };
    return { pods: target, node: target };
  }
  return {
    pods: { kind: "redirect", port },
    node: { kind: "dnat", address: ownAddress(settings), port },
  };
}

/** The node's address, unless the node itself does not have it. */
function ownAddress({ nodeIP, localAddresses }: FamilySettings): Address {
  if (localAddresses.includes(nodeIP)) return nodeIP;
  return localAddresses.find((address) => !isLoopback(address) && !address.startsWith("fe80:")) ?? nodeIP;
}

const notBridged: Match = { kind: "notBridged" };
const isNew: Match = { kind: "state", states: "NEW" };
const isRedirected = tracked("DNAT");

function frontendRules(
  { frontend }: Route,
  label: Match,
  { pods, node, relayPort }: Ways,
  settings: FamilySettings,
): PlacedRule[] {
  const arrival = [label, proto(frontend.protocol), dport(frontend.port)] as const;
  const inNat = (chain: string, ...parts: readonly [...Match[], Target]): PlacedRule => ({
    table: "nat",
    chain,
    rule: rule(...arrival, ...parts),
  });
  switch (frontend.kind) {
    case "clusterIP":
    case "loadBalancerIP":
      return [
        inNat(chains.portals.pods, to(frontend.address), pods),
        inNat(chains.portals.node, to(frontend.address), node),
      ];
    case "externalIP":
      return [
        inNat(chains.portals.pods, to(frontend.address), notBridged, pods),
        inNat(chains.portals.pods, to(frontend.address), toThisNode, pods),
        inNat(chains.portals.node, to(frontend.address), toThisNode, node),
      ];
    case "nodePort": {
      const letIn = rule(label, proto(frontend.protocol), dport(relayPort), isNew, isRedirected, accept);
      return [
        ...nodePortPlaces(settings).flatMap((place) => [
          inNat(chains.nodePorts.pods, ...place, pods),
          inNat(chains.nodePorts.node, ...place, node),
        ]),
        { table: "filter", chain: chains.letIn, rule: letIn },
      ];
    }
  }
}

/** One rule for every address, or one for each network where NodePorts answer. */
function nodePortPlaces({ nodePortAddresses }: FamilySettings): readonly (readonly Match[])[] {
  return nodePortAddresses.kind === "all" ? [[]] : nodePortAddresses.cidrs.map((cidr) => [to(cidr)]);
}
