// Finds Services that take an address of this node or of the API server for themselves (CVE-2020-8554).
import type { Address } from "../model/address.ts";
import { type Keyed, keyed } from "../model/keyed.ts";
import type { Problem } from "../model/problem.ts";
import { type FamilySnapshot, type PortKey, portLabel, type ServicePort } from "../model/snapshot.ts";

/** What is known besides the Services. */
export type Surroundings = {
  /** Addresses of this Node. */
  readonly node: readonly Address[];
  /** The address of the API server in the kubeconfig; null: by a name, or there is none. */
  readonly server: { readonly address: Address; readonly port: number } | null;
  readonly externalIPsAllowed: boolean;
};

/** One address of one ServicePort that is also something else's. */
export type Interception = {
  readonly port: ServicePort;
  readonly address: Address;
  readonly kind: "external-ip" | "load-balancer-ip";
  readonly of: "node" | "api-server";
};

/** Immutable; of one family. */
export type Intercepts = {
  readonly surroundings: Surroundings;
  /** The ports of the Service `default/kubernetes`. */
  readonly apiPorts: Keyed<ServicePort>;
  readonly found: Keyed<readonly Interception[]>;
  readonly counts: InterceptCounts;
};

/** How many there are: `external-ip node`, `load-balancer-ip api-server`, … */
export type InterceptCounts = Readonly<Record<`${Interception["kind"]} ${Interception["of"]}`, number>>;

export const noIntercepts: InterceptCounts = {
  "external-ip node": 0,
  "external-ip api-server": 0,
  "load-balancer-ip node": 0,
  "load-balancer-ip api-server": 0,
};

/** `before` must be of the Snapshot before: then only changed ServicePorts are visited, unless a guarded address changed. */
export function interceptsIn(
  before: Intercepts | null,
  { ports, changed }: FamilySnapshot,
  surroundings: Surroundings,
): Intercepts {
  const apiKeys = [...(before === null ? ports.keys() : changed)].filter(isApiKey);
  const apiPorts = (before?.apiPorts ?? keyed<ServicePort>()).with(
    apiKeys.map((key) => [key, ports.get(key)]),
  );
  const isSame = before?.surroundings === surroundings && before.apiPorts === apiPorts;
  const guarded = guardedBy(surroundings, apiPorts);
  const updates = new Map<PortKey, readonly Interception[] | undefined>();
  const counts = { ...(before?.counts ?? noIntercepts) };
  for (const key of isSame ? changed : new Set([...ports.keys(), ...(before?.found.keys() ?? [])])) {
    const port = ports.get(key);
    const some = port === undefined || isApiKey(key) ? [] : interceptionsOf(port, guarded, surroundings);
    const old = before?.found.get(key) ?? [];
    if (some.length === 0 && old.length === 0) continue;
    updates.set(key, some.length > 0 ? some : undefined);
    for (const { kind, of } of old) counts[`${kind} ${of}`]--;
    for (const { kind, of } of some) counts[`${kind} ${of}`]++;
  }
  if (before !== null && isSame && updates.size === 0) return before;
  return { surroundings, apiPorts, found: (before?.found ?? keyed()).with(updates), counts };
}

/** Those to act upon. A load-balancer address of a node is normal in clusters whose nodes are the load balancer, as in k3s. */
export function problemsOf({ found }: Intercepts): Problem[] {
  return [...found.values()].flatMap((some) => some.filter(isProblem).map(problemOf));
}

function isProblem({ kind, of }: Interception): boolean {
  return kind === "external-ip" || of === "api-server";
}

type Guarded = {
  readonly node: ReadonlySet<Address>;
  /** With the ports on which the API server answers there. */
  readonly apiServer: ReadonlyMap<Address, ReadonlySet<number>>;
};

function guardedBy({ node, server }: Surroundings, apiPorts: Keyed<ServicePort>): Guarded {
  const apiServer = new Map<Address, Set<number>>();
  const add = (address: Address, port: number) =>
    apiServer.set(address, (apiServer.get(address) ?? new Set()).add(port));
  if (server !== null) add(server.address, server.port);
  for (const { clusterIP, port, endpoints } of apiPorts.values()) {
    add(clusterIP, port);
    for (const endpoint of endpoints) add(endpoint.address, endpoint.port);
  }
  return { node: new Set(node), apiServer };
}

function interceptionsOf(
  port: ServicePort,
  guarded: Guarded,
  { externalIPsAllowed }: Surroundings,
): Interception[] {
  const { externalIPs, loadBalancerIPs } = port;
  const found: Interception[] = [];
  for (const address of externalIPsAllowed ? externalIPs : []) {
    const of = guarded.apiServer.has(address) ? "api-server" : guarded.node.has(address) ? "node" : null;
    if (of !== null) found.push({ port, address, kind: "external-ip", of });
  }
  // Where the nodes are the load balancer, one of them may be the API server's; only its own port then matters.
  const isByNodes = loadBalancerIPs.some((address) => guarded.node.has(address));
  for (const address of loadBalancerIPs) {
    const apiPorts = guarded.apiServer.get(address);
    if (apiPorts !== undefined && (!isByNodes || apiPorts.has(port.port)))
      found.push({ port, address, kind: "load-balancer-ip", of: "api-server" });
    else if (guarded.node.has(address)) found.push({ port, address, kind: "load-balancer-ip", of: "node" });
  }
  return found;
}

function problemOf({ port, address, kind, of }: Interception): Problem {
  const owner = of === "node" ? "this node" : "the API server";
  return {
    kind: "intercepts",
    object: `Service ${port.service}`,
    field: kind === "external-ip" ? "spec.externalIPs" : "status.loadBalancer.ingress",
    message: `${address} is an address of ${owner}: traffic to it at ${port.protocol} port ${port.port} goes to ${portLabel(port)} (CVE-2020-8554)`,
  };
}

function isApiKey(key: PortKey): boolean {
  return key.startsWith("default/kubernetes/");
}
