// What this node has of each Service, kept up to date port by port: for health check node ports and a gauge.
import type { Keyed } from "../model/keyed.ts";
import type { PortKey, ServiceName, ServicePort } from "../model/snapshot.ts";

/** A Service with a health check node port, and how many ready endpoints it has on this node. */
export type CheckedService = {
  readonly service: ServiceName;
  readonly port: number;
  readonly localEndpoints: number;
};

/** Ports (or Services) that route only to this node, have endpoints, and have none here. */
export type WithoutLocal = { readonly internal: number; readonly external: number };

export type LocalEndpoints = {
  /** Counts the ports that changed again: keys of ports that are gone count as changed too. */
  readonly update: (ports: Keyed<ServicePort>, changed: Iterable<PortKey>) => void;
  /** Sorted by Service. */
  readonly checked: () => CheckedService[];
  readonly without: (unit: "ports" | "services") => WithoutLocal;
};

/** What one port contributes; ports that contribute nothing are not kept. */
type Share = {
  readonly service: ServiceName;
  readonly checkPort: number;
  /** Addresses of ready endpoints on this node; only kept for a checked Service. */
  readonly ready: readonly string[];
  readonly internal: boolean;
  readonly external: boolean;
};

export function openLocalEndpoints(nodeName: string): LocalEndpoints {
  const shares = new Map<PortKey, Share>();
  return {
    update(ports, changed) {
      for (const key of changed) {
        const port = ports.get(key);
        const share = port === undefined ? null : shareOf(port, nodeName);
        if (share === null) shares.delete(key);
        else shares.set(key, share);
      }
    },
    checked: () => checkedServices(shares.values()),
    without: (unit) => ({
      internal: count(shares.values(), unit, (share) => share.internal),
      external: count(shares.values(), unit, (share) => share.external),
    }),
  };
}

function shareOf(port: ServicePort, nodeName: string): Share | null {
  const isLocal = (endpoint: { nodeName: string }) =>
    endpoint.nodeName !== "" && endpoint.nodeName === nodeName;
  const checkPort = port.healthCheckNodePort;
  if (checkPort === 0 && port.internalPolicy === "cluster" && port.externalPolicy === "cluster") return null;
  const usable = port.endpoints.filter((endpoint) => endpoint.state !== "unready");
  const lacking = usable.length > 0 && !usable.some(isLocal);
  const ready = usable.filter((endpoint) => endpoint.state === "ready" && isLocal(endpoint));
  return {
    service: port.service,
    checkPort,
    ready: checkPort === 0 ? [] : ready.map((endpoint) => endpoint.address),
    internal: lacking && port.internalPolicy === "local",
    external: lacking && port.externalPolicy === "local",
  };
}

function checkedServices(shares: Iterable<Share>): CheckedService[] {
  const byService = new Map<ServiceName, { port: number; addresses: Set<string> }>();
  for (const { service, checkPort, ready } of shares) {
    if (checkPort === 0) continue;
    const known = byService.get(service) ?? { port: checkPort, addresses: new Set<string>() };
    byService.set(service, known);
    for (const address of ready) known.addresses.add(address);
  }
  return [...byService]
    .map(([service, { port, addresses }]) => ({ service, port, localEndpoints: addresses.size }))
    .sort((a, b) => (a.service < b.service ? -1 : 1));
}

function count(
  shares: Iterable<Share>,
  unit: "ports" | "services",
  counts: (share: Share) => boolean,
): number {
  const counted = [...shares].filter(counts);
  return unit === "ports" ? counted.length : new Set(counted.map((share) => share.service)).size;
}
