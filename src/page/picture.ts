// One Service as data for a picture: Frontends, Endpoints, and what happens between them to packets of each sender.
import { outsideExample, senderText } from "../explain/question.ts";
import { type BothRoutes, type Sender as ExampleSender, questionOf } from "../explain/resolve.ts";
import { type Trace, trace } from "../explain/trace.ts";
import {
  type Address,
  addressBytes,
  contains,
  formatAddress,
  joinHostPort,
  networkAddress,
} from "../model/address.ts";
import { endpointKey, type ServicePort } from "../model/snapshot.ts";
import type { Steps } from "../model/steps.ts";
import type { Mode } from "../modes/mode.ts";
import type { Packet } from "../routing/decide.ts";
import { isLocal } from "../routing/pools.ts";
import type { Frontend, PortRoutes, Route, Routes } from "../routing/routes.ts";
import type { EndpointJson, FrontendJson, Path, PortJson } from "./json.ts";
import { placeOf } from "./row.ts";

/** More would neither fit into a picture nor be read. */
export const mostEndpoints = 200;
export const mostFrontends = 20;

/** Pauses after each path: a path costs time for every Endpoint. */
export function* pictureOf(mode: Mode, both: BothRoutes, routed: PortRoutes): Steps<PortJson> {
  const picture = pictureWithoutPaths(both, routed);
  const indexes = new Map(picture.endpoints.map(({ endpoint }, i) => [endpoint, i]));
  return { ...picture, paths: yield* pathsOf(mode, both, routed, indexes) };
}

export function pictureWithoutPaths(both: BothRoutes, routed: PortRoutes): Omit<PortJson, "paths"> {
  const { port, lost } = routed;
  const { settings } = both[port.family];
  return {
    family: port.family,
    name: port.portName,
    protocol: port.protocol,
    port: port.port,
    internalPolicy: port.internalPolicy,
    externalPolicy: port.externalPolicy,
    affinitySeconds: port.affinity?.seconds ?? null,
    healthCheckNodePort: port.healthCheckNodePort,
    frontends: routed.routes.slice(0, mostFrontends).map(frontendJson),
    moreFrontends: Math.max(0, routed.routes.length - mostFrontends),
    lost: lost.slice(0, mostFrontends).map(({ frontend, holder }) => ({ place: placeOf(frontend), holder })),
    endpoints: port.endpoints.slice(0, mostEndpoints).map((each): EndpointJson => {
      const here = isLocal(each, settings);
      return { endpoint: endpointKey(each), node: each.nodeName, state: each.state, here };
    }),
    moreEndpoints: Math.max(0, port.endpoints.length - mostEndpoints),
  };
}

function frontendJson({ frontend, allowed }: Route): FrontendJson {
  return { kind: frontend.kind, place: placeOf(frontend), allowed };
}

function* pathsOf(
  mode: Mode,
  both: BothRoutes,
  { port, routes: held }: PortRoutes,
  indexes: ReadonlyMap<string, number>,
): Steps<Path[]> {
  const routes = both[port.family];
  const senders = exampleSenders(routes, port);
  const paths: Path[] = [];
  for (const [i, { frontend }] of held.slice(0, mostFrontends).entries())
    for (const sender of senders) {
      const to = destinationOf(frontend, routes);
      const question = questionOf(sender, { kind: "address", ...to }, both);
      if (!question.ok) continue;
      const found = trace(mode, routes, question.value.packet);
      const place = { frontend: i, sender: sender.kind, from: senderText(sender), to: toText(to) };
      paths.push({ ...place, ...pathOf(found, indexes) });
      yield;
    }
  return paths;
}

type TracedPath = Omit<Trace, "leftOut"> & {
  readonly leftOut: readonly { readonly endpoint: string; readonly reason: string }[];
};

/** Of the Endpoints, those with an index. */
export function pathOf(
  { outcome, because, candidates, leftOut, clientSees }: TracedPath,
  indexes: ReadonlyMap<string, number>,
): Omit<Path, "frontend" | "sender" | "from" | "to"> {
  const known = (endpoint: string) => indexes.get(endpoint) ?? -1;
  return {
    outcome,
    because,
    candidates: candidates.length,
    chosen: candidates.map(({ endpoint }) => known(endpoint)).filter((index) => index >= 0),
    masqueraded: candidates.filter(({ masquerade }) => masquerade).length,
    leftOut: leftOut
      .map(({ endpoint, reason }) => ({ endpoint: known(endpoint), reason }))
      .filter(({ endpoint }) => endpoint >= 0),
    clientSees,
  };
}

type Destination = Packet["to"] & { readonly protocol: Frontend["protocol"] };

function destinationOf(frontend: Frontend, { settings }: Routes): Destination {
  const address = frontend.kind === "nodePort" ? nodePortAddress(settings) : frontend.address;
  return { address, protocol: frontend.protocol, port: frontend.port };
}

/** One at which NodePorts answer. */
function nodePortAddress({ nodeIP, nodePortAddresses, localAddresses }: Routes["settings"]): Address {
  if (nodePortAddresses.kind === "all") return nodeIP;
  const serves = (address: Address) => nodePortAddresses.cidrs.some((cidr) => contains(cidr, address));
  return serves(nodeIP) ? nodeIP : (localAddresses.find(serves) ?? nodeIP);
}

export function toText({ address, port, protocol }: Packet["to"]): string {
  return `${joinHostPort(address, port)}${protocol === "tcp" ? "" : `/${protocol}`}`;
}

/** One of each kind; no pod where none can be recognised by its address. */
function exampleSenders({ settings }: Routes, port: ServicePort): ExampleSender[] {
  const pod = examplePod(settings, port);
  return [
    ...(pod === null ? [] : [{ kind: "pod" as const, address: pod }]),
    { kind: "node" },
    { kind: "outside", address: outsideExample[settings.family] },
  ];
}

/** An address of the pod network that is no Endpoint of this port: a pod that calls itself is treated differently. */
function examplePod({ detector }: Routes["settings"], { endpoints }: ServicePort): Address | null {
  if (detector.kind !== "cidr") return null;
  const taken = new Set(endpoints.map(({ address }) => address));
  for (let last = 250; last > 0; last--) {
    const bytes = addressBytes(networkAddress(detector.cidr))!;
    bytes[bytes.length - 1] = last;
    const address = formatAddress(bytes);
    if (!taken.has(address) && contains(detector.cidr, address)) return address;
  }
  return null;
}
