// The way of a packet as text: which Service, which policy, which endpoints are used or left out and why, what the client sees.
import { joinHostPort } from "../model/address.ts";
import { type Endpoint, endpointKey, portLabel } from "../model/snapshot.ts";
import type { Mode } from "../modes/mode.ts";
import type { RelayedDecision, RelayedOutcome } from "../modes/userspace/decide.ts";
import type { Choice, Decision, Packet } from "../routing/decide.ts";
import { isLocal, isSamePool } from "../routing/pools.ts";
import { printFrontend } from "../routing/print-frontend.ts";
import type { PortRoutes, Route, Routes } from "../routing/routes.ts";

export type Candidate = {
  readonly endpoint: string;
  readonly node: string;
  /** 0 to 1. */
  readonly probability: number;
  readonly masquerade: boolean;
  /** Whose address the endpoint sees, and why. */
  readonly because: string;
};

export type Trace = {
  readonly node: string;
  readonly packet: Packet;
  /** How the sender was seen. */
  readonly sender: Decision["sender"];
  /** `namespace/name:port`; null when no Service was hit. */
  readonly service: string | null;
  readonly frontend: string | null;
  readonly because: readonly string[];
  readonly outcome: RelayedOutcome["kind"];
  readonly candidates: readonly Candidate[];
  readonly leftOut: readonly { readonly endpoint: string; readonly node: string; readonly reason: string }[];
  /** Seconds a client stays with its endpoint; null: not at all. */
  readonly stickySeconds: number | null;
  readonly clientSees: string;
};

export function trace(mode: Mode, routes: Routes, packet: Packet): Trace {
  return traceOf(mode.decide(routes, packet), routes, packet);
}

/** The trace of a decision that was made before. */
export function traceOf(decision: RelayedDecision, routes: Routes, packet: Packet): Trace {
  const { outcome, hit, sender, because } = decision;
  const routed = hit === null ? null : routes.ports.get(hit.key)!;
  const choices = outcome.kind === "forward" ? outcome.choices : [];
  return {
    node: routes.settings.nodeName,
    packet,
    sender,
    service: routed === null ? null : portLabel(routed.port),
    frontend: hit === null ? null : printFrontend(hit.route.frontend),
    because,
    outcome: outcome.kind,
    candidates: choices.map((choice) => candidateOf(choice, choices.length, decision, routes, packet)),
    leftOut: routed === null || outcome.kind === "pass" ? [] : leftOut(routed, hit!.route, decision, routes),
    stickySeconds: outcome.kind === "forward" ? (routed?.port.affinity?.seconds ?? null) : null,
    clientSees: clientSees(outcome.kind, packet) + ifRouted(decision),
  };
}

function candidateOf(
  { endpoint, masquerade }: Choice,
  among: number,
  decision: RelayedDecision,
  routes: Routes,
  packet: Packet,
): Candidate {
  return {
    endpoint: endpointKey(endpoint),
    node: endpoint.nodeName,
    probability: 1 / among,
    masquerade,
    because: masquerade
      ? `sees this node: ${masqueradeReason(endpoint, decision, routes, packet)}`
      : `sees ${packet.from.address}`,
  };
}

function masqueradeReason(
  endpoint: Endpoint,
  { hit, sender }: Pick<Decision, "hit" | "sender">,
  { settings, servicePorts }: Routes,
  packet: Packet,
): string {
  const target = hit!.route.from[sender];
  if (target.kind !== "forward" || !target.masquerade) {
    return endpoint.address === packet.from.address
      ? "a pod that calls itself would not accept its own answer"
      : "the proxy itself calls, for its client";
  }
  if (settings.masqueradeAll) return "masqueradeAll is on";
  const { externalPolicy } = servicePorts.get(hit!.key)!;
  if (hit!.route.frontend.kind === "clusterIP")
    return "the sender is not a pod of this node, and answers must come back here";
  if (externalPolicy === "cluster") return "externalTrafficPolicy Cluster, and answers must come back here";
  return "this node calls an external address, and answers must come back here";
}

/** Where nothing is forwarded, only those who could not have answered anyway. */
function leftOut(
  { port, pools }: PortRoutes,
  route: Route,
  { sender, outcome }: Pick<RelayedDecision, "sender" | "outcome">,
  { settings }: Routes,
): Trace["leftOut"] {
  const chosen = new Set(outcome.kind === "forward" ? outcome.choices.map((choice) => choice.endpoint) : []);
  const external = route.frontend.kind !== "clusterIP";
  const policy = external ? port.externalPolicy : port.internalPolicy;
  const target = route.from[sender];
  const onlyHere =
    policy === "local" &&
    (target.kind === "forward" ? isSamePool(target.pool, pools.local) : !external || sender === "outside");
  const field = external ? "externalTrafficPolicy" : "internalTrafficPolicy";
  const byNode = [...chosen].some((endpoint) => endpoint.nodeHints.includes(settings.nodeName));
  const reasonFor = (endpoint: Endpoint): string | null => {
    if (endpoint.state === "unready") return endpoint.serving ? "not ready" : "not ready, not serving";
    if (onlyHere && !isLocal(endpoint, settings)) return `not on this node, and ${field} is Local`;
    if (outcome.kind !== "forward") return null;
    if (endpoint.state === "draining") return "terminating, and others are ready";
    if (byNode && !endpoint.nodeHints.includes(settings.nodeName) && endpoint.nodeHints.length > 0)
      return `hinted for node ${endpoint.nodeHints.join(", ")}`;
    return `hinted for zone ${endpoint.zoneHints.join(", ")}, and this node is in zone ${settings.zone}`;
  };
  return port.endpoints.flatMap((endpoint) => {
    const reason = chosen.has(endpoint) ? null : reasonFor(endpoint);
    return reason === null ? [] : [{ endpoint: endpointKey(endpoint), node: endpoint.nodeName, reason }];
  });
}

/** Other senders get here only where cluster IPs are routed to the node. */
function ifRouted({ outcome, hit, sender }: RelayedDecision): string {
  const isFar = sender === "outside" && hit?.route.frontend.kind === "clusterIP";
  return isFar && outcome.kind === "forward" ? ", if cluster IPs are routed to this node" : "";
}

function clientSees(outcome: Trace["outcome"], { to }: Packet): string {
  const place = joinHostPort(to.address, to.port);
  switch (outcome) {
    case "forward":
      return `an answer from ${place}, whichever endpoint gave it`;
    case "reject":
      return to.protocol === "tcp"
        ? "connection refused, immediately"
        : "port unreachable (ICMP), immediately";
    case "drop":
      return "nothing: it waits until it gives up";
    case "close":
      return to.protocol === "tcp"
        ? "a connection that is closed immediately"
        : "nothing: datagrams are not answered";
    case "pass":
      return `what ${place} itself answers: Turnout does not touch this packet`;
  }
}
