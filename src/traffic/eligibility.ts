// Whether the endpoint of a flow would be chosen for it again today, and if not, why.
import type { FlowView } from "../model/flow.ts";
import { anyContains } from "../model/networks.ts";
import { type Endpoint, endpointKey } from "../model/snapshot.ts";
import type { Behavior } from "../routing/behavior.ts";
import { senderOf } from "../routing/decide.ts";
import { isLocal, isSamePool, type Pool } from "../routing/pools.ts";
import { type FrontendId, frontendId, type Routes, type Sender, type Target } from "../routing/routes.ts";
import type { ServiceFlow } from "./attribute.ts";

export type Eligibility =
  | {
      readonly kind: "eligible";
      /** Endpoints among which the choice is made. */
      readonly among: number;
      readonly because: string;
    }
  | { readonly kind: "excluded"; readonly reason: Exclusion; readonly because: string };

/** Why an endpoint that exists is not chosen. */
export type Exclusion = "not ready" | "draining" | "policy" | "hints" | "source ranges";

export type EligibilityOf = (flow: FlowView, attribution: ServiceFlow, endpoint: Endpoint) => Eligibility;

/** Most answers that are kept: a flow of the same client group to the same endpoint has the same one. */
const mostKept = 100_000;

/** A function for the flows of one family; build it once for a dump. */
export function eligibilityReader(routes: Routes, behavior: Behavior): EligibilityOf {
  const sendersOf = senderReader(routes);
  const kept = new Map<string, Eligibility>();
  return (flow, attribution, endpoint) => {
    const refused = outsideRanges(flow, attribution, routes, behavior);
    if (refused !== null) return refused;
    const id = frontendId(attribution.route.frontend);
    const { key, senders } = sendersOf(flow);
    const name = keptName(id, key, endpoint);
    let answer = kept.get(name);
    if (answer === undefined) {
      answer = eligibilityOf(attribution, endpoint, senders, routes);
      if (kept.size >= mostKept) kept.clear();
      kept.set(name, answer);
    }
    return answer;
  };
}

function keptName(id: FrontendId, sender: string, endpoint: Endpoint): string {
  return `${id} ${sender} ${endpointKey(endpoint)}`;
}

type Senders = { readonly key: string; readonly senders: readonly Sender[] };

const unknownSender: Senders = { key: "pod or outside", senders: ["pod", "outside"] };
const known: Readonly<Record<Sender, Senders>> = {
  pod: { key: "pod", senders: ["pod"] },
  node: { key: "node", senders: ["node"] },
  outside: { key: "outside", senders: ["outside"] },
};

/** A conntrack entry has no interface: where those identify local pods, a client that is not this node may be either. */
function senderReader({ settings }: Routes): (flow: FlowView) => Senders {
  const byAddress = new Map<string, Senders>();
  const isByInterface = settings.detector.kind.startsWith("interface");
  return ({ source: address }) => {
    let found = byAddress.get(address);
    if (found === undefined) {
      const { kind } = senderOf({ from: { origin: "elsewhere", address } }, settings);
      found = isByInterface && kind === "outside" ? unknownSender : known[kind];
      if (byAddress.size >= mostKept) byAddress.clear();
      byAddress.set(address, found);
    }
    return found;
  };
}

/** The same rule as in `decide`: for a flow that leads to an endpoint, the ranges hold wherever the Route has some. */
function outsideRanges(
  { source }: FlowView,
  { route, routed }: ServiceFlow,
  { settings }: Routes,
  behavior: Behavior,
): Eligibility | null {
  const { allowed, frontend } = route;
  if (allowed === null || frontend.kind === "nodePort") return null;
  const isExternalIP = settings.externalIPsAllowed && routed.port.externalIPs.includes(frontend.address);
  if (isExternalIP && !behavior.firewallAtExternalIPs) return null;
  if (anyContains(allowed, source)) return null;
  return {
    kind: "excluded",
    reason: "source ranges",
    because: `${source} is outside loadBalancerSourceRanges: a new connection would be dropped`,
  };
}

function eligibilityOf(
  attribution: ServiceFlow,
  endpoint: Endpoint,
  senders: readonly Sender[],
  routes: Routes,
): Eligibility {
  const targets = senders.map((sender) => attribution.route.from[sender]);
  for (const target of targets)
    if (target.kind === "forward" && keysOf(target.pool).has(endpointKey(endpoint)))
      return { kind: "eligible", among: target.pool.endpoints.length, because: target.pool.because };
  return { kind: "excluded", ...exclusionOf(attribution, endpoint, targets[0]!, routes) };
}

function exclusionOf(
  { route, routed: { port, pools } }: ServiceFlow,
  endpoint: Endpoint,
  target: Target,
  { settings }: Routes,
): { readonly reason: Exclusion; readonly because: string } {
  if (endpoint.state === "unready")
    return { reason: "not ready", because: "the endpoint is not ready and not serving while it terminates" };
  const isInternal = route.frontend.kind === "clusterIP";
  const policy = isInternal ? "internalTrafficPolicy" : "externalTrafficPolicy";
  const isLocalOnly = (isInternal ? port.internalPolicy : port.externalPolicy) === "local";
  const isWholeCluster = target.kind === "forward" && isSamePool(target.pool, pools.cluster);
  if (isLocalOnly && !isLocal(endpoint, settings) && !isWholeCluster)
    return { reason: "policy", because: `${policy} Local: the endpoint is ${placeText(endpoint)}` };
  if (endpoint.state === "draining")
    return { reason: "draining", because: "the endpoint is terminating, and others are ready" };
  return { reason: "hints", because: hintText(endpoint, target, settings) };
}

function placeText({ nodeName }: Endpoint): string {
  return nodeName === "" ? "not known to be on this node" : `on ${nodeName}`;
}

function hintText(
  { zoneHints, nodeHints }: Endpoint,
  target: Target,
  { nodeName, zone }: Routes["settings"],
): string {
  if (target.kind === "forward" && target.pool.because === "ready endpoints hinted for this node")
    return `hinted for ${listed("node", nodeHints)}; this node is ${nodeName}`;
  return `hinted for ${listed("zone", zoneHints)}; this node is in zone ${zone}`;
}

function listed(noun: string, names: readonly string[]): string {
  return `${noun}${names.length === 1 ? "" : "s"} ${names.join(", ")}`;
}

function keysOf(pool: Pool): ReadonlySet<string> {
  let keys = keysByPool.get(pool);
  if (keys === undefined) {
    keys = new Set(pool.endpoints.map(endpointKey));
    keysByPool.set(pool, keys);
  }
  return keys;
}

const keysByPool = new WeakMap<Pool, ReadonlySet<string>>();
