// The metrics of each Service port, with a limit on the number of series.
import type { Metrics } from "../metrics/metrics.ts";
import type { Reading } from "../metrics/registry.ts";
import type { PortTraffic, TrafficReport } from "./report.ts";

/** Service ports that have series. */
export const mostPorts = 2000;
/** Endpoints that have series, of all Service ports together. */
export const mostEndpoints = 10_000;

export type TrafficSource = {
  /** Reads again, unless that was done a moment ago. */
  readonly refresh: () => Promise<void>;
  readonly report: () => TrafficReport;
};

type PortLabel = "namespace" | "service" | "port";
type Labels = Readonly<Record<PortLabel, string>>;

export function reportTraffic(metrics: Metrics, source: TrafficSource): void {
  const { refresh } = source;
  // Without counters there are active connections at most, from the last time that a client asked for them.
  const report = () => {
    const all = source.report();
    return all.setting === "off" ? { ...all, ports: [] } : all;
  };
  const ports = new Shown<PortTraffic>(mostPorts, labelOf);
  const each =
    <L extends string>(readings: (port: PortTraffic, labels: Labels) => readonly Reading<L>[]) =>
    async () => {
      await refresh();
      return ports.among(report().ports).shown.flatMap((port) => readings(port, labelsOf(port)));
    };
  metrics.serviceConnections.from(
    each(({ counts }, labels) => (counts === null ? [] : [{ labels, value: counts.connections }])),
  );
  metrics.serviceRefused.from(
    each(({ counts }, labels) => {
      if (counts === null) return [];
      const reasons = [
        ["no-endpoint", counts.refused],
        ["source-range", counts.outOfRange],
      ] as const;
      return reasons.flatMap(([reason, value]) =>
        value === null || value === 0 ? [] : [{ labels: { ...labels, reason }, value }],
      );
    }),
  );
  metrics.serviceActive.from(
    each(({ flows }, labels) => (flows === null ? [] : [{ labels, value: flows.active }])),
  );
  // What is not counted is absent, and not 0.
  const counted = (flows: PortTraffic["flows"]) => (report().flows.counted ? flows : null);
  metrics.serviceBytes.from(
    each(({ flows }, labels) => directed(labels, counted(flows)?.bytesIn, counted(flows)?.bytesOut)),
  );
  metrics.servicePackets.from(
    each(({ flows }, labels) => directed(labels, counted(flows)?.packetsIn, counted(flows)?.packetsOut)),
  );
  reportEndpoints(metrics, { refresh, report }, ports);
  reportLimits(metrics, { refresh, report }, ports);
}

function reportEndpoints(
  metrics: Metrics,
  { refresh, report }: TrafficSource,
  ports: Shown<PortTraffic>,
): void {
  const endpoints = new Shown<{
    readonly labels: Labels & { readonly endpoint: string };
    readonly value: number;
  }>(mostEndpoints, ({ labels }) => Object.values(labels).join("\u0000"));
  metrics.endpointConnections.from(async () => {
    await refresh();
    const all = ports
      .among(report().ports)
      .shown.flatMap((port) =>
        port.endpoints.flatMap(({ endpoint, connections }) =>
          connections === null ? [] : [{ labels: { ...labelsOf(port), endpoint }, value: connections }],
        ),
      );
    return endpoints.among(all).shown;
  });
}

/** What the limit hides, and what is not known. */
function reportLimits(metrics: Metrics, { refresh, report }: TrafficSource, ports: Shown<PortTraffic>): void {
  const hidden = async () => {
    await refresh();
    return ports.among(report().ports).hidden;
  };
  metrics.hiddenPorts.from(async () => (report().setting === "off" ? [] : [one((await hidden()).length)]));
  metrics.hiddenConnections.from(async () => {
    const some = await hidden();
    const sum = some.reduce((total, { counts }) => total + (counts?.connections ?? 0), 0);
    return report().setting === "off" ? [] : [one(sum)];
  });
  metrics.trafficUnknown.from(() =>
    (["counters", "flows"] as const).flatMap((source) => {
      const coverage = report()[source];
      if (!coverage.counted) return [];
      const seconds = coverage.gaps.reduce((sum, { from, to }) => sum + Math.max(0, to - from) / 1000, 0);
      return [{ labels: { source }, value: seconds }];
    }),
  );
}

function one(value: number): Reading<never> {
  return { labels: {}, value };
}

function directed(
  labels: Labels,
  into: number | undefined,
  out: number | undefined,
): readonly Reading<PortLabel | "direction">[] {
  if (into === undefined || out === undefined) return [];
  return [
    { labels: { ...labels, direction: "in" }, value: into },
    { labels: { ...labels, direction: "out" }, value: out },
  ];
}

function labelsOf({ namespace, name, portName, port }: PortTraffic): Labels {
  return { namespace, service: name, port: portName === "" ? String(port) : portName };
}

function labelOf(port: PortTraffic): string {
  return Object.values(labelsOf(port)).join("\u0000");
}

/** Which of many have series: those that came first, for as long as they exist, so that no series comes and goes. */
class Shown<T> {
  readonly #most: number;
  readonly #nameOf: (item: T) => string;
  #names = new Set<string>();

  constructor(most: number, nameOf: (item: T) => string) {
    this.#most = most;
    this.#nameOf = nameOf;
  }

  among(items: readonly T[]): { readonly shown: readonly T[]; readonly hidden: readonly T[] } {
    const names = new Map(items.map((item) => [this.#nameOf(item), item]));
    this.#names = new Set([...this.#names].filter((name) => names.has(name)));
    for (const name of names.keys()) {
      if (this.#names.size >= this.#most) break;
      this.#names.add(name);
    }
    const shown: T[] = [];
    const hidden: T[] = [];
    for (const [name, item] of names) (this.#names.has(name) ? shown : hidden).push(item);
    return { shown, hidden };
  }
}
