// What changed about a ServicePort, this Node or the ServiceCIDRs, in words.
import { type Address, families, joinHostPort } from "../model/address.ts";
import { same } from "../model/same.ts";
import { type Endpoint, endpointKey, type ServicePort } from "../model/snapshot.ts";
import { choosePools, isExternallyReachable, type Place, type Pool } from "../routing/pools.ts";
import type { PortStep, Step } from "./past.ts";

/** Names of pods by address. */
export type Pods = ReadonlyMap<Address, string>;

/** Each continues the name of the ServicePort. */
export function portWords(
  { before, after }: PortStep,
  pods: Pods,
  node: { before: Place; after: Place },
): string[] {
  if (after === undefined) return [`removed; it had ${count(before!.endpoints.length, "endpoint")}`];
  if (before === undefined)
    return [`added: ${placesOf(after).join(", ")}; ${count(after.endpoints.length, "endpoint")}`];
  return [
    ...fieldWords(before, after),
    ...limited(endpointWords(before.endpoints, after.endpoints, pods)),
    ...hintWords(before, after),
    ...outcomeWords(before, after, node),
  ];
}

/** What changed about this Node and the ServiceCIDRs. */
export function otherWords({ node: { before, after }, serviceCIDRs }: Step): string[] {
  const cidrs = families.flatMap((family) => {
    const { before: old, after: now } = serviceCIDRs[family];
    return same(old, now) ? [] : [`ServiceCIDRs (${family}) ${listed(old)} → ${listed(now)}`];
  });
  if (same(before, after)) return cidrs;
  if (before === null || after === null)
    return [`Node ${(before ?? after)!.name} ${before === null ? "added" : "removed"}`, ...cidrs];
  const from = `Node ${after.name}`;
  const fields = [
    arrow("zone", before.zone || "none", after.zone || "none"),
    arrow("addresses", listed(before.addresses), listed(after.addresses)),
    arrow("other addresses", listed(before.otherAddresses ?? []), listed(after.otherAddresses ?? [])),
    arrow("podCIDRs", listed(before.podCIDRs), listed(after.podCIDRs)),
    arrow(
      "load balancers",
      before.eligibleForLoadBalancers ? "eligible" : "excluded",
      after.eligibleForLoadBalancers ? "eligible" : "excluded",
    ),
  ];
  return [...fields.flat().map((words) => `${from}: ${words}`), ...cidrs];
}

function placesOf(port: ServicePort): string[] {
  const external = [...port.loadBalancerIPs, ...port.externalIPs];
  return [
    `cluster IP ${joinHostPort(port.clusterIP, port.port)}`,
    ...external.map((address) => joinHostPort(address, port.port)),
    ...(port.nodePort === 0 ? [] : [`node port ${port.nodePort}`]),
  ];
}

function fieldWords(before: ServicePort, after: ServicePort): string[] {
  const policy = (value: ServicePort["internalPolicy"]) => (value === "local" ? "Local" : "Cluster");
  const sticky = ({ affinity }: ServicePort) =>
    affinity === null ? "none" : `ClientIP, ${affinity.seconds} s`;
  const number = (value: number) => (value === 0 ? "none" : String(value));
  return [
    arrow(
      "cluster IP",
      joinHostPort(before.clusterIP, before.port),
      joinHostPort(after.clusterIP, after.port),
    ),
    arrow("node port", number(before.nodePort), number(after.nodePort)),
    arrow("external IPs", listed(before.externalIPs), listed(after.externalIPs)),
    arrow("load-balancer IPs", listed(before.loadBalancerIPs), listed(after.loadBalancerIPs)),
    arrow("source ranges", listed(before.sourceRanges, "any"), listed(after.sourceRanges, "any")),
    arrow("session affinity", sticky(before), sticky(after)),
    arrow("internalTrafficPolicy", policy(before.internalPolicy), policy(after.internalPolicy)),
    arrow("externalTrafficPolicy", policy(before.externalPolicy), policy(after.externalPolicy)),
    arrow("health check node port", number(before.healthCheckNodePort), number(after.healthCheckNodePort)),
  ].flat();
}

function arrow(name: string, before: string, after: string): string[] {
  return before === after ? [] : [`${name} ${before} → ${after}`];
}

function listed(values: readonly string[], none = "none"): string {
  const most = 10;
  if (values.length <= most) return values.join(", ") || none;
  return `${values.slice(0, most).join(", ")} and ${values.length - most} more`;
}

function endpointWords(before: readonly Endpoint[], after: readonly Endpoint[], pods: Pods): string[] {
  const old = new Map(before.map((endpoint) => [endpointKey(endpoint), endpoint]));
  const now = new Map(after.map((endpoint) => [endpointKey(endpoint), endpoint]));
  return [...new Set([...old.keys(), ...now.keys()])].flatMap((key) => {
    const [was, is] = [old.get(key), now.get(key)];
    const words = transition(was, is);
    const { address, nodeName } = (is ?? was)!;
    const pod = pods.get(address);
    const who = [...(pod === undefined ? [] : [`pod ${pod}`]), ...(nodeName === "" ? [] : [nodeName])];
    const label = `${key}${who.length === 0 ? "" : ` (${who.join(", ")})`}`;
    return words === null ? [] : [`${words[0]} endpoint ${label}${words[1] === "" ? "" : `: ${words[1]}`}`];
  });
}

/** A verb and the reason; null: nothing that matters differs. */
function transition(was: Endpoint | undefined, is: Endpoint | undefined): readonly [string, string] | null {
  if (was === undefined) return ["gained", is!.state === "ready" ? "" : stateWords[is!.state]];
  if (is === undefined)
    return ["lost", was.state === "ready" ? "removed" : `removed, it was ${stateWords[was.state]}`];
  if (was.state !== is.state) {
    if (is.state === "ready") return ["gained", "ready"];
    return [was.state === "unready" ? "gained" : "lost", stateWords[is.state]];
  }
  if (was.nodeName !== is.nodeName) return ["moved", `from ${was.nodeName || "no node"}`];
  return was.serving === is.serving ? null : ["changed", is.serving ? "serving" : "not serving"];
}

const stateWords = {
  ready: "ready",
  draining: "terminating",
  unready: "not ready",
} as const satisfies Record<Endpoint["state"], string>;

/** Of a long list the beginning, and how many more there are. */
function limited(words: readonly string[]): readonly string[] {
  const most = 20;
  if (words.length <= most) return words;
  return [...words.slice(0, most), `and ${words.length - most} more changes of endpoints`];
}

function hintWords(before: ServicePort, after: ServicePort): string[] {
  const old = new Map(before.endpoints.map((endpoint) => [endpointKey(endpoint), endpoint]));
  const changed = after.endpoints.filter((endpoint) => {
    const was = old.get(endpointKey(endpoint));
    return (
      was !== undefined &&
      !(same(was.zoneHints, endpoint.zoneHints) && same(was.nodeHints, endpoint.nodeHints))
    );
  });
  return changed.length === 0 ? [] : [`topology hints of ${count(changed.length, "endpoint")} changed`];
}

/** What the change means for traffic on this node. */
function outcomeWords(
  before: ServicePort,
  after: ServicePort,
  node: { before: Place; after: Place },
): string[] {
  const [old, now] = [choosePools(before, node.before), choosePools(after, node.after)];
  if (old.anyUsable !== now.anyUsable)
    return [
      now.anyUsable ? "has usable endpoints again" : "has no usable endpoint: connections are rejected",
    ];
  const isMoved = node.before.zone !== node.after.zone;
  const words = (kind: "cluster" | "local", policy: string) =>
    poolWords(old[kind], now[kind], isMoved, after.endpoints.length, node.after, policy);
  const isLocal =
    after.internalPolicy === "local" || (after.externalPolicy === "local" && isExternallyReachable(after));
  return [...words("cluster", ""), ...(isLocal ? words("local", " for policy Local") : [])];
}

/** `isMoved`: the node is in another zone, so that the same reason may lead to other endpoints. */
function poolWords(
  old: Pool,
  now: Pool,
  isMoved: boolean,
  all: number,
  { nodeName }: Place,
  policy: string,
): string[] {
  if (now.because === "not needed by any frontend") return [];
  if (old.because === now.because && !(isMoved && !same(old.endpoints, now.endpoints))) return [];
  return [`${nodeName} uses ${now.endpoints.length} of ${count(all, "endpoint")}${policy} (${now.because})`];
}

function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? "" : "s"}`;
}
