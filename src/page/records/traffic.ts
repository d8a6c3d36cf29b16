// Traffic of Services for the page: read while it is asked for, with the rates that `turnout top` shows.
import type { TrafficSetting } from "../../config/resolve/settings.ts";
import type { Clock } from "../../model/clock.ts";
import type { ServiceName } from "../../model/snapshot.ts";
import { readEveryMs } from "../../observe/traffic/keeper.ts";
import type { TrafficReport } from "../../observe/traffic/report.ts";
import {
  type Earlier,
  earlierThan,
  nothingEarlier,
  portText,
  type TopRow,
  topRows,
} from "../../observe/traffic/top-rows.ts";
import type { PortTrafficJson, RowTraffic, ServiceTraffic, TrafficState, TrafficView } from "../json.ts";

export type TrafficRecords = {
  readonly setting: TrafficSetting;
  /** As `/traffic` of the status socket. */
  readonly read: () => Promise<TrafficReport>;
};

/** Shortest time between two readings. */
const gapMs = 2_000;
/** Reading takes at most this part of the time, a twentieth, unless the gap would be longer than the daemon's own. */
const share = 20;
const longestGapMs = readEveryMs;
/** A rate over a longer time would hide what happens now. */
const longestMs = 60_000;

/** Reads only when it is asked; keeps the last report and the one before. */
export class TrafficSampler {
  readonly #records: TrafficRecords;
  readonly #clock: Clock;
  #reading: Promise<void> | null = null;
  #sample: Sample | null = null;
  #readAt = Number.NEGATIVE_INFINITY;
  #tookMs = 0;

  constructor(records: TrafficRecords, clock: Clock) {
    this.#records = records;
    this.#clock = clock;
  }

  /** The latest sample; begins to read the next one when it is time. */
  ask(): Sample | null {
    const age = this.#clock.steady() - this.#readAt;
    const gap = Math.min(longestGapMs, Math.max(gapMs, this.#tookMs * share));
    if (this.#reading === null && age >= gap) this.#reading = this.#read();
    return this.#sample;
  }

  /** Waits for the first sample. */
  async first(): Promise<Sample | null> {
    if (this.ask() === null) await this.#reading;
    return this.#sample;
  }

  async #read(): Promise<void> {
    const start = this.#clock.steady();
    try {
      const report = await this.#records.read();
      if (this.#sample?.report.at !== report.at) this.#sample = sampleOf(report, this.#sample);
    } finally {
      this.#readAt = this.#clock.steady();
      this.#tookMs = this.#readAt - start;
      this.#reading = null;
    }
  }
}

/** One report, by Service. */
export type Sample = {
  readonly report: TrafficReport;
  readonly earlier: Earlier;
  readonly byService: ReadonlyMap<ServiceName, readonly PortTrafficJson[]>;
};

function sampleOf(report: TrafficReport, last: Sample | null): Sample {
  const lastAt = last?.report.at ?? null;
  const isRecent = lastAt !== null && report.at !== null && report.at - lastAt <= longestMs;
  const earlier = isRecent ? earlierThan(report, last!.report, last!.earlier) : nothingEarlier;
  const rows = topRows(report, earlier, { sort: "name", filter: null });
  const traffic = new Map(
    report.ports.map((port) => [`${port.namespace}/${port.name} ${portText(port)}`, port]),
  );
  const byService = new Map<ServiceName, PortTrafficJson[]>();
  for (const row of rows) {
    const ports = byService.get(row.service) ?? [];
    ports.push({ ...traffic.get(`${row.service} ${row.port}`)!, row });
    byService.set(row.service, ports);
  }
  return { report, earlier, byService };
}

export function stateOf(sampler: TrafficSampler | null, records: TrafficRecords | null): TrafficState {
  if (records === null) return { counted: false, because: "not counted: there is no daemon" };
  if (sampler === null)
    return { counted: false, because: "not counted; start the daemon with --traffic=services" };
  return { counted: true, at: sampler.ask()?.report.at ?? null };
}

/** Of all ports of a Service together; null: not read yet. */
export function rowTraffic(sample: Sample | null, service: ServiceName): RowTraffic | null {
  if (sample === null) return null;
  const rows = (sample.byService.get(service) ?? []).map(({ row }) => row);
  const isCounted = sample.report.counters.counted;
  const sum = (of: (row: TopRow) => number | null): number | null => {
    const known = rows.map(of).filter((value) => value !== null);
    return known.length === 0 ? null : known.reduce((total, value) => total + value, 0);
  };
  // What had no traffic is not in the report.
  const none = rows.length === 0 ? 0 : null;
  return {
    active: sum((row) => row.active) ?? none,
    connections: sum((row) => row.connections) ?? (isCounted ? none : null),
    connectionRate: sum((row) => row.connectionRate) ?? (isCounted ? none : null),
    refused: sum((row) => row.refused) ?? (isCounted ? none : null),
    skew: rows.reduce<number | null>(
      (most, { skew }) => (skew === null ? most : Math.max(most ?? 0, skew)),
      null,
    ),
  };
}

export async function trafficView(
  sampler: TrafficSampler | null,
  records: TrafficRecords | null,
  service: ServiceName,
): Promise<TrafficView> {
  const state = stateOf(sampler, records);
  const sample = (await sampler?.first()) ?? null;
  if (!state.counted || sample === null) return { state, traffic: null };
  const { ports: _ports, ...report } = sample.report;
  const traffic: ServiceTraffic = { ...report, ports: sample.byService.get(service) ?? [] };
  return { state: { counted: true, at: report.at }, traffic };
}
