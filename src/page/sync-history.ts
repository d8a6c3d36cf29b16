// The Syncs and latencies since the page was opened: bounded, for charts and percentiles.
import type { SyncRecord } from "../sync/record.ts";
import type { Head, SyncPoint } from "./json.ts";

const mostSyncs = 600;
const mostLatencies = 2000;

export class SyncHistory {
  #points: SyncPoint[] = [];
  #latencies: number[] = [];

  /** `remembered`: those before, newest first. */
  constructor(remembered: readonly SyncRecord[] = []) {
    this.#points = remembered.map(pointOf).reverse();
  }

  add(record: SyncRecord, latencies: readonly number[]): void {
    this.#points.push(pointOf(record));
    if (this.#points.length > mostSyncs) this.#points = this.#points.slice(-mostSyncs / 2);
    this.#latencies.push(...latencies.slice(-mostLatencies));
    if (this.#latencies.length > mostLatencies) this.#latencies = this.#latencies.slice(-mostLatencies / 2);
  }

  get points(): readonly SyncPoint[] {
    return this.#points;
  }

  latency(): Head["latency"] {
    const samples = this.#latencies.length;
    if (samples === 0) return null;
    const sorted = this.#latencies.toSorted((a, b) => a - b);
    const at = (share: number) => sorted[Math.min(samples - 1, Math.floor(share * samples))]!;
    return { p50: at(0.5), p99: at(0.99), samples };
  }
}

export function pointOf(record: SyncRecord): SyncPoint {
  const { family, trigger, startedAt, finishedAt, changedPorts, operations, outcome } = record;
  return {
    at: finishedAt,
    ms: Math.max(0, finishedAt - startedAt),
    family,
    trigger,
    changedPorts,
    operations,
    outcome: outcome.kind === "failed" ? "failed" : outcome.refused.length > 0 ? "refused" : "ok",
    message: outcome.kind === "failed" ? outcome.message : "",
  };
}
