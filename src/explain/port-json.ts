// A ServicePort in few words, for a daemon that tells thousands: what most have in common is left out.
import type { Family } from "../model/address.ts";
import { type Endpoint, portKey, type ServicePort } from "../model/snapshot.ts";

export type PortJson = Pick<ServicePort, Always> & Unusual & { readonly endpoints: readonly ToldEndpoint[] };

type Always = "namespace" | "name" | "portName" | "protocol" | "clusterIP" | "port";

/** Follows from the rest, or is told in another way. */
type Other = "key" | "family" | "service" | "endpoints";

/** Absent where it is as usual. */
type Unusual = { readonly [F in Exclude<keyof ServicePort, Always | Other>]: ServicePort[F] | undefined };

/** Of one that is ready and has no hints, like most, only this. */
type ToldEndpoint = readonly [Endpoint["address"], Endpoint["port"], Endpoint["nodeName"]] | Endpoint;

export function tellPort(port: ServicePort): PortJson {
  return {
    namespace: port.namespace,
    name: port.name,
    portName: port.portName,
    protocol: port.protocol,
    clusterIP: port.clusterIP,
    port: port.port,
    nodePort: port.nodePort || undefined,
    externalIPs: someOf(port.externalIPs),
    loadBalancerIPs: someOf(port.loadBalancerIPs),
    sourceRanges: someOf(port.sourceRanges),
    affinity: port.affinity ?? undefined,
    internalPolicy: port.internalPolicy === "cluster" ? undefined : port.internalPolicy,
    externalPolicy: port.externalPolicy === "cluster" ? undefined : port.externalPolicy,
    healthCheckNodePort: port.healthCheckNodePort || undefined,
    endpoints: port.endpoints.map(tellEndpoint),
  };
}

export function portTold(told: PortJson, family: Family): ServicePort {
  const { namespace, name, portName, protocol } = told;
  const service = `${namespace}/${name}`;
  return {
    key: portKey(service, protocol, portName),
    family,
    service,
    namespace,
    name,
    portName,
    protocol,
    clusterIP: told.clusterIP,
    port: told.port,
    nodePort: told.nodePort ?? 0,
    externalIPs: told.externalIPs ?? none,
    loadBalancerIPs: told.loadBalancerIPs ?? none,
    sourceRanges: told.sourceRanges ?? none,
    affinity: told.affinity ?? null,
    internalPolicy: told.internalPolicy ?? "cluster",
    externalPolicy: told.externalPolicy ?? "cluster",
    healthCheckNodePort: told.healthCheckNodePort ?? 0,
    endpoints: told.endpoints.map(endpointTold),
  };
}

function tellEndpoint(endpoint: Endpoint): ToldEndpoint {
  const { address, port, state, serving, nodeName, zoneHints, nodeHints } = endpoint;
  const isUsual = state === "ready" && serving && zoneHints.length === 0 && nodeHints.length === 0;
  return isUsual ? [address, port, nodeName] : endpoint;
}

function endpointTold(told: ToldEndpoint): Endpoint {
  if (!isShort(told)) return told;
  const [address, port, nodeName] = told;
  return { address, port, state: "ready", serving: true, nodeName, zoneHints: none, nodeHints: none };
}

function isShort(told: ToldEndpoint): told is Exclude<ToldEndpoint, Endpoint> {
  return Array.isArray(told);
}

const none: readonly never[] = [];

function someOf<T>(list: readonly T[]): readonly T[] | undefined {
  return list.length === 0 ? undefined : list;
}
