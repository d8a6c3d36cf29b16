// A ServicePort as compact JSON, for a daemon that sends thousands: common values are left out.
import type { Family } from "../model/address.ts";
import { type Endpoint, portKey, type ServicePort } from "../model/snapshot.ts";

export type PortJson = Pick<ServicePort, Always> & Unusual & { readonly endpoints: readonly EndpointJson[] };

type Always = "namespace" | "name" | "portName" | "protocol" | "clusterIP" | "port";

/** Follows from the rest, or has another form. */
type Other = "key" | "family" | "service" | "endpoints";

/** Absent where it is as usual. */
type Unusual = { readonly [F in Exclude<keyof ServicePort, Always | Other>]: ServicePort[F] | undefined };

/** Of one that is ready and has no hints, like most, only this. */
type EndpointJson = readonly [Endpoint["address"], Endpoint["port"], Endpoint["nodeName"]] | Endpoint;

export function portToJson(port: ServicePort): PortJson {
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
    endpoints: port.endpoints.map(endpointToJson),
  };
}

export function portFromJson(json: PortJson, family: Family): ServicePort {
  const { namespace, name, portName, protocol } = json;
  const service = `${namespace}/${name}`;
  return {
    key: portKey(service, protocol, portName),
    family,
    service,
    namespace,
    name,
    portName,
    protocol,
    clusterIP: json.clusterIP,
    port: json.port,
    nodePort: json.nodePort ?? 0,
    externalIPs: json.externalIPs ?? none,
    loadBalancerIPs: json.loadBalancerIPs ?? none,
    sourceRanges: json.sourceRanges ?? none,
    affinity: json.affinity ?? null,
    internalPolicy: json.internalPolicy ?? "cluster",
    externalPolicy: json.externalPolicy ?? "cluster",
    healthCheckNodePort: json.healthCheckNodePort ?? 0,
    endpoints: json.endpoints.map(endpointFromJson),
  };
}

function endpointToJson(endpoint: Endpoint): EndpointJson {
  const { address, port, state, serving, nodeName, zoneHints, nodeHints } = endpoint;
  const isUsual = state === "ready" && serving && zoneHints.length === 0 && nodeHints.length === 0;
  return isUsual ? [address, port, nodeName] : endpoint;
}

function endpointFromJson(json: EndpointJson): Endpoint {
  if (!isShort(json)) return json;
  const [address, port, nodeName] = json;
  return { address, port, state: "ready", serving: true, nodeName, zoneHints: none, nodeHints: none };
}

function isShort(json: EndpointJson): json is Exclude<EndpointJson, Endpoint> {
  return Array.isArray(json);
}

const none: readonly never[] = [];

function someOf<T>(list: readonly T[]): readonly T[] | undefined {
  return list.length === 0 ? undefined : list;
}
