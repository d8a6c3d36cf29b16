// One line of the table of Services: what a Service is, and what is unusual about it on this node.
import { joinHostPort } from "../model/address.ts";
import { type Problem, printProblem } from "../model/problem.ts";
import { type Endpoint, type EndpointState, portLabel, type ServicePort } from "../model/snapshot.ts";
import type { Frontend, PortRoutes } from "../routing/routes.ts";
import type { EndpointCounts, Level, ServiceRow, ServiceType } from "./json.ts";

const mostFrontends = 4;

/** Of at least one ServicePort, all of one Service; `problems` are those of the Service. */
export function rowOf(ports: readonly PortRoutes[], problems: readonly Problem[]): ServiceRow {
  const sorted = [...ports].sort((a, b) => compare(sortKey(a), sortKey(b)));
  const places = [
    ...new Set(sorted.flatMap(({ routes }) => routes.map(({ frontend }) => placeOf(frontend)))),
  ];
  const endpoints = countEndpoints(sorted.map(({ port }) => port));
  const findings = [
    ...problems.map((problem) => finding("trouble", printProblem(problem))),
    ...sorted.flatMap((routed) => findingsOf(routed, sorted.length > 1)),
    ...stateFindings(endpoints),
  ];
  const reasons = new Map(findings.map((each) => [each.text, each]));
  const ranked = [...reasons.values()].sort((a, b) => levels.indexOf(a.level) - levels.indexOf(b.level));
  return {
    service: sorted[0]!.port.service,
    type: typeOf(sorted.map(({ port }) => port)),
    frontends: places.slice(0, mostFrontends),
    moreFrontends: Math.max(0, places.length - mostFrontends),
    endpoints,
    level: ranked[0]?.level ?? "ok",
    reasons: ranked.map(({ text }) => text),
  };
}

export const levels: readonly Level[] = ["trouble", "warning", "ok"];

/** `172.30.0.10:80`; the protocol only where it is not TCP. */
export function placeOf(frontend: Frontend): string {
  const place =
    frontend.kind === "nodePort" ? `*:${frontend.port}` : joinHostPort(frontend.address, frontend.port);
  return frontend.protocol === "tcp" ? place : `${place}/${frontend.protocol}`;
}

type Finding = { readonly level: Level; readonly text: string };

function finding(level: Level, text: string): Finding {
  return { level, text };
}

function findingsOf({ port, pools, routes, lost }: PortRoutes, several: boolean): Finding[] {
  const which = several ? `${portName(port)}: ` : "";
  const found = lost.map(({ frontend, holder }) =>
    finding("trouble", `${placeOf(frontend)} is held by ${holder.split("/").slice(0, 2).join("/")}`),
  );
  if (routes.some(({ from }) => from.pod.kind === "reject"))
    found.push(finding("trouble", `${which}rejects: no usable endpoint`));
  if (routes.some(({ from }) => from.pod.kind === "drop" || from.node.kind === "drop"))
    found.push(
      finding("warning", `${which}drops traffic of this node: no usable endpoint on it, policy Local`),
    );
  else if (routes.some(({ from }) => from.outside.kind === "drop"))
    found.push(finding("ok", `${which}drops outside traffic: no usable endpoint on this node, policy Local`));
  for (const { because } of [pools.cluster, pools.local]) {
    if (because.startsWith("no endpoint")) found.push(finding("warning", `${which}${because}`));
    else if (because.includes("hinted")) found.push(finding("ok", `${which}${because}`));
  }
  return found;
}

function portName(port: ServicePort): string {
  return port.portName === "" ? `${port.port}/${port.protocol}` : portLabel(port).split(":").at(-1)!;
}

function stateFindings({ draining, unready, ready }: EndpointCounts): Finding[] {
  return [
    ...(draining > 0 && ready > 0 ? [finding("warning", `${draining} terminating`)] : []),
    ...(unready > 0 && ready + draining > 0 ? [finding("warning", `${unready} not ready`)] : []),
  ];
}

/** An address counts as ready only if it is for all ports that have it. */
function countEndpoints(ports: readonly ServicePort[]): EndpointCounts {
  const { family } = ports[0]!;
  const states = new Map<string, EndpointState>();
  for (const port of ports) {
    if (port.family !== family) continue;
    for (const { address, state } of port.endpoints) states.set(address, worse(states.get(address), state));
  }
  const counts = { ready: 0, draining: 0, unready: 0 };
  for (const state of states.values()) counts[state]++;
  return counts;
}

const worst: readonly EndpointState[] = ["unready", "draining", "ready"];

function worse(a: EndpointState | undefined, b: Endpoint["state"]): EndpointState {
  return a !== undefined && worst.indexOf(a) < worst.indexOf(b) ? a : b;
}

function typeOf(ports: readonly ServicePort[]): ServiceType {
  if (ports.some((port) => port.loadBalancerIPs.length > 0 || port.healthCheckNodePort !== 0))
    return "LoadBalancer";
  return ports.some(({ nodePort }) => nodePort !== 0) ? "NodePort" : "ClusterIP";
}

function sortKey({ port }: PortRoutes): string {
  return `${port.family} ${String(port.port).padStart(5, "0")} ${port.key}`;
}

export function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
