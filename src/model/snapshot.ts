// What is known of the cluster at one moment: ServicePorts with their Endpoints, this Node, the ServiceCIDRs.
import type { Address, Cidr, Family } from "./address.ts";
import { flatText } from "./flat-text.ts";
import type { Keyed } from "./keyed.ts";
import type { Problem } from "./problem.ts";

export type Protocol = "tcp" | "udp" | "sctp";

export const protocols: readonly Protocol[] = ["tcp", "udp", "sctp"];

export type TrafficPolicy = "cluster" | "local";

/** `namespace/name` of a Service. */
export type ServiceName = string;

/** Identity of a ServicePort within its family: `namespace/name/protocol/portName`. */
export type PortKey = string;

/** ready: takes new traffic. draining: serving while it terminates, a fallback. unready: never chosen. */
export type EndpointState = "ready" | "draining" | "unready";

/** One address and port that can answer. */
export type Endpoint = {
  readonly address: Address;
  readonly port: number;
  readonly state: EndpointState;
  /** The `serving` condition alone: UDP flows to a serving endpoint are kept. */
  readonly serving: boolean;
  /** Name of the node it runs on; empty when unknown. */
  readonly nodeName: string;
  /** Zones it is hinted for; empty when there is no hint. */
  readonly zoneHints: readonly string[];
  /** Nodes it is hinted for; empty when there is no hint. */
  readonly nodeHints: readonly string[];
};

/** null: no affinity. */
export type Affinity = { readonly seconds: number } | null;

/** One port of one Service in one family, with its Endpoints. */
export type ServicePort = {
  readonly key: PortKey;
  readonly family: Family;
  readonly service: ServiceName;
  readonly namespace: string;
  readonly name: string;
  readonly portName: string;
  readonly protocol: Protocol;
  readonly clusterIP: Address;
  readonly port: number;
  /** 0: none. */
  readonly nodePort: number;
  readonly externalIPs: readonly Address[];
  readonly loadBalancerIPs: readonly Address[];
  /** Sources allowed to use the load-balancer addresses; empty means every client. */
  readonly sourceRanges: readonly Cidr[];
  readonly affinity: Affinity;
  readonly internalPolicy: TrafficPolicy;
  readonly externalPolicy: TrafficPolicy;
  /** 0: none. */
  readonly healthCheckNodePort: number;
  /** Sorted bytewise by `address:port`, without duplicates. */
  readonly endpoints: readonly Endpoint[];
};

/** The Node this proxy runs on, as the cluster describes it; null when the cluster does not have it (yet). */
export type ClusterNode = {
  readonly name: string;
  /** Label `topology.kubernetes.io/zone`; empty when absent. */
  readonly zone: string;
  /** InternalIPs, then ExternalIPs: the first, and the first of the other family. */
  readonly addresses: readonly Address[];
  /** All others, if any. */
  readonly otherAddresses?: readonly Address[];
  readonly podCIDRs: readonly Cidr[];
  readonly eligibleForLoadBalancers: boolean;
};

/** The part of a Snapshot that concerns one family. */
export type FamilySnapshot = {
  readonly ports: Keyed<ServicePort>;
  /** Keys whose ServicePort differs from the Snapshot before, including those that are gone. */
  readonly changed: ReadonlySet<PortKey>;
  readonly serviceCIDRs: readonly Cidr[];
};

/** Annotation `endpoints.kubernetes.io/last-change-trigger-time` of slices that changed, in ms since 1970. */
export type Triggers = Readonly<Record<Family, readonly number[]>>;

export const noTriggers: Triggers = { ipv4: [], ipv6: [] };

/** An object whose change led to a Snapshot. */
export type Cause = {
  readonly kind: "Service" | "EndpointSlice" | "Node" | "ServiceCIDR";
  /** Empty for Nodes and ServiceCIDRs. */
  readonly namespace: string;
  readonly name: string;
  readonly event: "added" | "modified" | "deleted";
  /** Empty where the Source has none, as files do not. */
  readonly resourceVersion: string;
  /** When the last event of the object was received, in ms since 1970; 0: unknown. */
  readonly receivedAt: number;
};

/** The first objects that changed since the Snapshot before, and how many more did; none of the first Snapshot. */
export type Causes = {
  readonly objects: readonly Cause[];
  readonly more: number;
  /** Names of the pods in the EndpointSlices among the objects, before and after, by address. */
  readonly pods?: () => ReadonlyMap<Address, string>;
};

export const noCauses: Causes = { objects: [], more: 0 };

/** Immutable; parts that did not change are the same objects as in the Snapshot before. */
export type Snapshot = {
  readonly ipv4: FamilySnapshot;
  readonly ipv6: FamilySnapshot;
  readonly node: ClusterNode | null;
  /** Of the slices that changed since the Snapshot before; for metrics of their delay. */
  readonly triggeredAt: Triggers;
  /** Why it differs from the Snapshot before. */
  readonly causes: Causes;
  /** Everything wrong with the objects known now. */
  readonly problems: readonly Problem[];
};

/** `namespace/name` or `namespace/name:portName`, the name of a ServicePort for users and in logs. */
export function portLabel(port: Pick<ServicePort, "service" | "portName">): string {
  return port.portName === "" ? port.service : `${port.service}:${port.portName}`;
}

export function portKey(service: ServiceName, protocol: Protocol, portName: string): PortKey {
  return flatText("/", service, protocol, portName);
}

/** Everything else waits for these: the API server and what usually runs in `kube-system`, DNS above all. */
export function isUrgent(key: PortKey): boolean {
  return key.startsWith("default/kubernetes/") || key.startsWith("kube-system/");
}

/** `address:port`, the identity of an Endpoint within its ServicePort. */
export function endpointKey(endpoint: Pick<Endpoint, "address" | "port">): string {
  return endpoint.address.includes(":")
    ? `[${endpoint.address}]:${endpoint.port}`
    : `${endpoint.address}:${endpoint.port}`;
}

/** Compares as the bytes of their `endpointKey`s do, without making those: `10.0.1.10:80` comes before `10.0.1.1:80`. */
export function compareEndpoints(a: Endpoint, b: Endpoint): number {
  if (a.address === b.address) return a.port === b.port ? 0 : String(a.port) < String(b.port) ? -1 : 1;
  if (a.address.length < b.address.length && b.address.startsWith(a.address)) return -compareAfter(a, b);
  if (b.address.length < a.address.length && a.address.startsWith(b.address)) return compareAfter(b, a);
  return a.address < b.address ? -1 : 1;
}

/** Where one address is a prefix of the other, the longer one continues where the shorter has its `:` or `]`. */
function compareAfter(short: Endpoint, long: Endpoint): number {
  const end = short.address.includes(":") ? "]" : ":";
  return long.address[short.address.length]! < end ? -1 : 1;
}
