// What `turnout top` shows of each Service port: totals, rates between two reports, and how uneven its endpoints are used.
import type { EndpointTraffic, PortTraffic, TrafficReport } from "./report.ts";

export const sortOrders = ["rate", "connections", "active", "bytes", "refused", "name"] as const;
export type SortOrder = (typeof sortOrders)[number];

/** null: not known, or not counted. Rates are per second. */
export type TopRow = {
  readonly service: string;
  readonly port: string;
  readonly connections: number | null;
  readonly active: number | null;
  readonly bytesIn: number | null;
  readonly bytesOut: number | null;
  /** Packets without an endpoint, and from outside the source ranges. */
  readonly refused: number | null;
  readonly connectionRate: number | null;
  readonly bytesInRate: number | null;
  readonly bytesOutRate: number | null;
  /** Connections of the busiest endpoint divided by the average of all: 1 is even. */
  readonly skew: number | null;
  readonly endpoints: readonly EndpointRow[];
};

export type EndpointRow = {
  readonly endpoint: string;
  readonly connections: number | null;
  readonly active: number | null;
  readonly connectionRate: number | null;
};

/** `before`: an earlier report, for rates. */
export function topRows(
  report: TrafficReport,
  before: TrafficReport | null,
  { sort, filter }: { readonly sort: SortOrder | null; readonly filter: string | null },
): readonly TopRow[] {
  const earlier = new Map(before?.ports.map((port) => [nameOf(port), port]));
  const seconds = before?.at == null || report.at === null ? 0 : (report.at - before.at) / 1000;
  const rows = report.ports
    .filter((port) => filter === null || nameOf(port).includes(filter))
    .map((port) =>
      rowOf(port, report, before === null ? null : (earlier.get(nameOf(port)) ?? null), seconds),
    );
  return rows.toSorted(comparing(sort ?? (rows.some((row) => row.connections !== null) ? "rate" : "active")));
}

function rowOf(
  port: PortTraffic,
  report: TrafficReport,
  before: PortTraffic | null,
  seconds: number,
): TopRow {
  const { counts } = port;
  // Without accounting the kernel reports flows, but no bytes of them.
  const bytes = report.flows.counted ? port.flows : null;
  const rate = (now: number | null | undefined, then: number | null | undefined) =>
    now == null || then == null || seconds <= 0 ? null : Math.max(0, now - then) / seconds;
  return {
    service: `${port.namespace}/${port.name}`,
    port: portText(port),
    connections: counts?.connections ?? null,
    active: port.flows?.active ?? null,
    bytesIn: bytes?.bytesIn ?? null,
    bytesOut: bytes?.bytesOut ?? null,
    refused: refusedOf(counts),
    connectionRate: rate(counts?.connections, before?.counts?.connections),
    bytesInRate: rate(bytes?.bytesIn, before?.flows?.bytesIn),
    bytesOutRate: rate(bytes?.bytesOut, before?.flows?.bytesOut),
    skew: skewOf(port.endpoints),
    endpoints: port.endpoints.map((endpoint) => {
      const then = before?.endpoints.find((each) => each.endpoint === endpoint.endpoint);
      return {
        endpoint: endpoint.endpoint,
        connections: endpoint.connections,
        active: endpoint.flows?.active ?? (report.flows.counted ? 0 : null),
        connectionRate: rate(endpoint.connections, then?.connections),
      };
    }),
  };
}

/** What the mode counts of it; null: nothing. */
function refusedOf(counts: PortTraffic["counts"]): number | null {
  const known = [counts?.refused, counts?.outOfRange].filter((value) => value != null);
  return known.length === 0 ? null : known.reduce((sum, value) => sum + value, 0);
}

function skewOf(endpoints: readonly EndpointTraffic[]): number | null {
  const counts = endpoints.map(({ connections }) => connections ?? 0);
  const sum = counts.reduce((total, count) => total + count, 0);
  const most = counts.reduce((a, b) => Math.max(a, b), 0);
  return sum === 0 ? null : (most * counts.length) / sum;
}

/** The name of a port, or `80/tcp`. */
export function portText({ portName, port, protocol }: PortTraffic): string {
  return portName === "" ? `${port}/${protocol}` : portName;
}

function nameOf(port: PortTraffic): string {
  return `${port.namespace}/${port.name}:${portText(port)}`;
}

/** Largest first; equal ones by name. */
function comparing(sort: SortOrder): (a: TopRow, b: TopRow) => number {
  const amountOf = (row: TopRow): number => {
    switch (sort) {
      case "rate":
        return row.connectionRate ?? row.connections ?? 0;
      case "connections":
        return row.connections ?? 0;
      case "active":
        return row.active ?? 0;
      case "bytes":
        return (row.bytesInRate ?? row.bytesIn ?? 0) + (row.bytesOutRate ?? row.bytesOut ?? 0);
      case "refused":
        return row.refused ?? 0;
      case "name":
        return 0;
    }
  };
  const textOf = ({ service, port }: TopRow) => `${service} ${port}`;
  return (a, b) => amountOf(b) - amountOf(a) || (textOf(a) < textOf(b) ? -1 : 1);
}
