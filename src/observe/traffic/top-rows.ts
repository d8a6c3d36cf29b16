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

/** Earlier reports, for rates; null: there is none. */
export type Earlier = {
  readonly counters: TrafficReport | null;
  /** Of another reading of conntrack. */
  readonly flows: TrafficReport | null;
};

export const nothingEarlier: Earlier = { counters: null, flows: null };

/** What the report after this one is compared with. */
export function earlierThan(next: TrafficReport, last: TrafficReport, before: Earlier): Earlier {
  return { counters: last, flows: next.flowsAt === last.flowsAt ? before.flows : last };
}

export function topRows(
  report: TrafficReport,
  earlier: Earlier,
  { sort, filter }: { readonly sort: SortOrder | null; readonly filter: string | null },
): readonly TopRow[] {
  const counters = since(earlier.counters, report, "at");
  const flows = since(earlier.flows, report, "flowsAt");
  const rows = report.ports
    .filter((port) => filter === null || nameOf(port).includes(filter))
    .map((port) => rowOf(port, report, counters, flows));
  return rows.toSorted(comparing(sort ?? (rows.some((row) => row.connections !== null) ? "rate" : "active")));
}

/** An earlier report by port, and how long it was before. */
type Since = { readonly ports: ReadonlyMap<string, PortTraffic>; readonly seconds: number };

function since(before: TrafficReport | null, report: TrafficReport, time: "at" | "flowsAt"): Since {
  const [then, now] = [before?.[time] ?? null, report[time]];
  return {
    ports: new Map(before?.ports.map((port) => [nameOf(port), port])),
    seconds: then === null || now === null ? 0 : (now - then) / 1000,
  };
}

function rateOf(
  now: number | null | undefined,
  then: number | null | undefined,
  { seconds }: Since,
): number | null {
  return now == null || then == null || seconds <= 0 ? null : Math.max(0, now - then) / seconds;
}

function rowOf(port: PortTraffic, report: TrafficReport, counters: Since, flows: Since): TopRow {
  const { counts } = port;
  // Without accounting the kernel reports flows, but no bytes of them.
  const bytes = report.flows.counted ? port.flows : null;
  const before = counters.ports.get(nameOf(port));
  const bytesBefore = flows.ports.get(nameOf(port))?.flows;
  const endpointsBefore = new Map(
    before?.endpoints.map(({ endpoint, connections }) => [endpoint, connections]),
  );
  return {
    service: `${port.namespace}/${port.name}`,
    port: portText(port),
    connections: counts?.connections ?? null,
    active: port.flows?.active ?? null,
    bytesIn: bytes?.bytesIn ?? null,
    bytesOut: bytes?.bytesOut ?? null,
    refused: refusedOf(counts),
    connectionRate: rateOf(counts?.connections, before?.counts?.connections, counters),
    bytesInRate: rateOf(bytes?.bytesIn, bytesBefore?.bytesIn, flows),
    bytesOutRate: rateOf(bytes?.bytesOut, bytesBefore?.bytesOut, flows),
    skew: skewOf(port.endpoints),
    endpoints: port.endpoints.map((each) => ({
      endpoint: each.endpoint,
      connections: each.connections,
      active: each.flows?.active ?? (report.flows.counted ? 0 : null),
      connectionRate: rateOf(each.connections, endpointsBefore.get(each.endpoint), counters),
    })),
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
