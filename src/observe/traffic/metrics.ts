// The metrics of each Service port, with a limit on the number of series.
import type { TrafficSetting } from "../../config/resolve/settings.ts";
import type { FlowNumbers } from "../../traffic/flow-totals.ts";
import type { Metrics } from "../metrics/metrics.ts";
import type { Reading } from "../metrics/registry.ts";
import type { PortTraffic, TrafficReport } from "./report.ts";

/** Service ports that have series. */
export const mostPorts = 2000;
/** Endpoints that have series, of all Service ports together. */
export const mostEndpoints = 10_000;

export type TrafficSource = {
  readonly setting: TrafficSetting;
  /** Reads again, unless that was done a moment ago. */
  readonly refresh: () => Promise<void>;
  readonly report: () => TrafficReport;
};

type PortLabel = "namespace" | "service" | "port";
type Labels = Readonly<Record<PortLabel, string>>;

/** One report, for all metrics of a request. */
type Taken = Omit<TrafficReport, "ports"> & Split<PortTraffic>;

export function reportTraffic(metrics: Metrics, source: TrafficSource): void {
  // Without counters there are active connections at most, from the last time that a client asked for them.
  if (source.setting === "off") return;
  const take = takenTogether(source);
  const each =
    <L extends string>(readings: (port: PortTraffic, labels: Labels) => readonly Reading<L>[]) =>
    async () =>
      (await take()).shown.flatMap((port) => readings(port, labelsOf(port)));
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
  reportBytes(metrics, take);
  reportEndpoints(metrics, take);
  reportLimits(metrics, take);
}

/** Makes the report once for metrics that ask in the same turn, as those of one request do: it costs time for every ServicePort. */
function takenTogether({ refresh, report }: Pick<TrafficSource, "refresh" | "report">): () => Promise<Taken> {
  const shownPorts = new Shown<PortTraffic>(mostPorts, labelOf);
  const take = async (): Promise<Taken> => {
    await refresh();
    const { ports, ...rest } = report();
    return { ...rest, ...shownPorts.among(ports) };
  };
  let taking: Promise<Taken> | null = null;
  return () => {
    taking ??= take().finally(() => {
      taking = null;
    });
    return taking;
  };
}

/** What is not counted is absent, and not 0. */
function reportBytes(metrics: Metrics, take: () => Promise<Taken>): void {
  const each =
    (pair: (flows: FlowNumbers) => readonly [into: number, out: number]) =>
    async (): Promise<readonly Reading<PortLabel | "direction">[]> => {
      const { shown, flows: coverage } = await take();
      if (!coverage.counted) return [];
      return shown.flatMap((port) => {
        if (port.flows === null) return [];
        const labels = labelsOf(port);
        const [into, out] = pair(port.flows);
        return [
          { labels: { ...labels, direction: "in" }, value: into },
          { labels: { ...labels, direction: "out" }, value: out },
        ];
      });
    };
  metrics.serviceBytes.from(each(({ bytesIn, bytesOut }) => [bytesIn, bytesOut]));
  metrics.servicePackets.from(each(({ packetsIn, packetsOut }) => [packetsIn, packetsOut]));
}

function reportEndpoints(metrics: Metrics, take: () => Promise<Taken>): void {
  const endpoints = new Shown<{
    readonly labels: Labels & { readonly endpoint: string };
    readonly value: number;
  }>(mostEndpoints, ({ labels }) => Object.values(labels).join("\u0000"));
  metrics.endpointConnections.from(async () => {
    const all = (await take()).shown.flatMap((port) =>
      port.endpoints.flatMap(({ endpoint, connections }) =>
        connections === null ? [] : [{ labels: { ...labelsOf(port), endpoint }, value: connections }],
      ),
    );
    return endpoints.among(all).shown;
  });
}

/** What the limit hides, and what is not known. */
function reportLimits(metrics: Metrics, take: () => Promise<Taken>): void {
  metrics.hiddenPorts.from(async () => [one((await take()).hidden.length)]);
  metrics.hiddenConnections.from(async () => {
    const { hidden } = await take();
    return [one(hidden.reduce((total, { counts }) => total + (counts?.connections ?? 0), 0))];
  });
  metrics.trafficUnknown.from(async () => {
    const taken = await take();
    return (["counters", "flows"] as const).flatMap((source) => {
      const coverage = taken[source];
      if (!coverage.counted) return [];
      const seconds = coverage.gaps.reduce((sum, { from, to }) => sum + Math.max(0, to - from) / 1000, 0);
      return [{ labels: { source }, value: seconds }];
    });
  });
}

function one(value: number): Reading<never> {
  return { labels: {}, value };
}

function labelsOf({ namespace, name, portName, port }: PortTraffic): Labels {
  return { namespace, service: name, port: portName === "" ? String(port) : portName };
}

function labelOf(port: PortTraffic): string {
  return Object.values(labelsOf(port)).join("\u0000");
}

type Split<T> = { readonly shown: readonly T[]; readonly hidden: readonly T[] };

/** Which of many have series: those that came first, for as long as they exist, so that no series comes and goes. */
class Shown<T> {
  readonly #most: number;
  readonly #nameOf: (item: T) => string;
  #names = new Set<string>();

  constructor(most: number, nameOf: (item: T) => string) {
    this.#most = most;
    this.#nameOf = nameOf;
  }

  among(items: readonly T[]): Split<T> {
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
