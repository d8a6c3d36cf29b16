// What is known of the traffic of each Service port: the answer of the socket at /traffic, and what metrics and `turnout top` show.
import type { TrafficSetting } from "../../config/resolve/settings.ts";
import type { CountGap } from "../../model/count-gaps.ts";
import type { PortKey, Protocol, ServicePort } from "../../model/snapshot.ts";
import type { PortCounts } from "../../modes/driver.ts";
import type { FlowNumbers } from "../../traffic/flow-totals.ts";

export type TrafficReport = {
  readonly setting: TrafficSetting;
  readonly mode: string;
  /** When the numbers were read, in milliseconds since 1970; null: not yet. */
  readonly at: number | null;
  /** When conntrack was read, which is less often if it takes long; null: not yet. */
  readonly flowsAt: number | null;
  /** Connections and refused packets, which rules in the kernel count. */
  readonly counters: Coverage;
  /** Packets, bytes and active connections, which come from conntrack. */
  readonly flows: Coverage;
  /** Those with traffic, and all others of the node when all are asked for. */
  readonly ports: readonly PortTraffic[];
};

/** Whether something is counted, and between which moments what was counted is not known. */
export type Coverage =
  | { readonly counted: true; readonly gaps: readonly CountGap[] }
  | { readonly counted: false; readonly because: string };

/** In all IP families. */
export type PortTraffic = {
  readonly namespace: string;
  readonly name: string;
  readonly portName: string;
  readonly protocol: Protocol;
  readonly port: number;
  readonly counts: Counts | null;
  readonly flows: FlowNumbers | null;
  /** Empty unless endpoints are counted. */
  readonly endpoints: readonly EndpointTraffic[];
};

/** See `PortCounts`. */
export type Counts = Omit<PortCounts, "endpoints">;

export type EndpointTraffic = {
  readonly endpoint: string;
  /** null: not counted. */
  readonly connections: number | null;
  readonly flows: FlowNumbers | null;
};

/** What one IP family knows. */
export type FamilyTraffic = {
  readonly portOf: (key: PortKey) => ServicePort | undefined;
  readonly counts: ReadonlyMap<PortKey, PortCounts>;
  /** By `flowName`. */
  readonly flowsOf: (name: string) => FlowNumbers | null;
  readonly keys: Iterable<PortKey>;
};

/** The name under which the flows of a ServicePort, or of one of its endpoints, are summed. */
export function flowName(key: PortKey, endpoint: string | null = null): string {
  return endpoint === null ? key : `${key} ${endpoint}`;
}

/** All ServicePorts that have had traffic, sorted by name. */
export function portsOf(families: readonly FamilyTraffic[]): readonly PortTraffic[] {
  const found = new Map<PortKey, PortTraffic>();
  for (const family of families) {
    for (const key of family.keys) {
      const port = family.portOf(key);
      if (port === undefined) continue;
      const traffic = trafficOf(port, family);
      if (!isUsed(traffic)) continue;
      const other = found.get(key);
      found.set(key, other === undefined ? traffic : sumOf(other, traffic));
    }
  }
  return [...found].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, traffic]) => traffic);
}

function trafficOf(port: ServicePort, { counts, flowsOf }: FamilyTraffic): PortTraffic {
  const { key, namespace, name, portName, protocol } = port;
  const counted = counts.get(key);
  const endpoints = counted?.endpoints ?? null;
  return {
    namespace,
    name,
    portName,
    protocol,
    port: port.port,
    counts:
      counted === undefined
        ? null
        : {
            connections: counted.connections,
            refused: counted.refused,
            outOfRange: counted.outOfRange,
          },
    flows: flowsOf(key),
    endpoints:
      endpoints === null
        ? []
        : [...endpoints].map(([endpoint, connections]) => ({
            endpoint,
            connections,
            flows: flowsOf(flowName(key, endpoint)),
          })),
  };
}

function isUsed({ counts, flows }: PortTraffic): boolean {
  if (counts !== null && Object.values(counts).some((value) => (value ?? 0) > 0)) return true;
  return flows !== null && (flows.active > 0 || flows.packetsIn > 0);
}

function sumOf(a: PortTraffic, b: PortTraffic): PortTraffic {
  return {
    ...a,
    counts: added(a.counts, b.counts),
    flows: added(a.flows, b.flows),
    endpoints: [...a.endpoints, ...b.endpoints],
  };
}

/** Of two records of numbers; null where neither is known. */
function added<T extends Readonly<Record<keyof T, number | null>>>(a: T | null, b: T | null): T | null {
  if (a === null || b === null) return a ?? b;
  const sum = (one: number | null, other: number | null) =>
    one === null || other === null ? (one ?? other) : one + other;
  return Object.fromEntries(
    Object.entries(a).map(([name, value]) => [name, sum(value as number | null, b[name as keyof T])]),
  ) as T;
}
