// Small clusters for unit tests: ServicePorts, Endpoints and settings with everything ordinary filled in.
import type { FamilySettings } from "../../src/config/resolve/settings.ts";
import { keyed } from "../../src/model/keyed.ts";
import { type Endpoint, endpointKey, portKey, type ServicePort } from "../../src/model/snapshot.ts";
import { type Routes, route } from "../../src/routing/routes.ts";

export const ipv4Settings: FamilySettings = {
  family: "ipv4",
  nodeName: "node-a",
  zone: "",
  nodeIP: "192.168.0.2",
  localAddresses: ["127.0.0.1", "192.168.0.2"],
  detector: { kind: "cidr", cidr: "10.0.0.0/8" },
  masqueradeAll: false,
  masqueradeMark: 0x4000,
  nodePortAddresses: { kind: "all" },
  localhostNodePorts: true,
  nftLocalhost: "pass",
  externalIPsAllowed: true,
  tcpBeLiberal: false,
  traffic: "off",
};

export const ipv6Settings: FamilySettings = {
  ...ipv4Settings,
  family: "ipv6",
  nodeIP: "2001:db8::2",
  localAddresses: ["2001:db8::2", "::1"],
  detector: { kind: "cidr", cidr: "fd00::/8" },
  localhostNodePorts: false,
};

/** A ready Endpoint, `address:port`; on this node unless its address belongs to another. */
export function endpoint(at: string, more: Partial<Endpoint> = {}): Endpoint {
  const colon = at.lastIndexOf(":");
  const address = at.slice(0, colon).replace(/^\[(.*)\]$/, "$1");
  return {
    address,
    port: Number(at.slice(colon + 1)),
    state: "ready",
    serving: true,
    nodeName: /^(10\.180\.0\.|fd00:180:0:0:|fd00:180::)/.test(address) ? "node-a" : "node-b",
    zoneHints: [],
    nodeHints: [],
    ...more,
  };
}

/** A ServicePort by its label, `shop/web:http`; by default TCP port 80 of a cluster IP without Endpoints. */
export function servicePort(label: string, more: Partial<ServicePort> = {}): ServicePort {
  const [service, portName = ""] = label.split(":") as [string, string?];
  const [namespace, name] = service.split("/") as [string, string];
  const protocol = more.protocol ?? "tcp";
  const endpoints = (more.endpoints ?? []).toSorted((a, b) => (endpointKey(a) < endpointKey(b) ? -1 : 1));
  return {
    key: portKey(service, protocol, portName),
    family: "ipv4",
    service,
    namespace,
    name,
    portName,
    protocol,
    clusterIP: "172.30.0.10",
    port: 80,
    nodePort: 0,
    externalIPs: [],
    loadBalancerIPs: [],
    sourceRanges: [],
    affinity: null,
    internalPolicy: "cluster",
    externalPolicy: "cluster",
    healthCheckNodePort: 0,
    ...more,
    endpoints,
  };
}

const noServiceCIDRs: readonly string[] = [];

/** Routes of these ServicePorts; with `before`, as the next step of a history. */
export function routed(
  ports: readonly ServicePort[],
  settings: FamilySettings = ipv4Settings,
  before: Routes | null = null,
): Routes {
  const changed = new Set([...ports.map(({ key }) => key), ...(before?.ports.keys() ?? [])]);
  for (const port of ports) if (before?.ports.get(port.key)?.port === port) changed.delete(port.key);
  return route(
    before,
    { ports: keyed(ports.map((port) => [port.key, port])), changed, serviceCIDRs: noServiceCIDRs },
    settings,
  );
}
