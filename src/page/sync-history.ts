// The Syncs since the page was opened, and the few that the daemon remembers: bounded, for charts.
import type { RememberedSync } from "../observe/status/status.ts";
import type { SyncPoint } from "./json.ts";

const mostSyncs = 600;

export class SyncHistory {
  #points: SyncPoint[] = [];

  /** `remembered`: those before, newest first. */
  constructor(remembered: readonly RememberedSync[] = []) {
    this.#points = remembered.map(pointOf).reverse();
  }

  add(record: RememberedSync): void {
    this.#points.push(pointOf(record));
    if (this.#points.length > mostSyncs) this.#points = this.#points.slice(-mostSyncs / 2);
  }

  get points(): readonly SyncPoint[] {
    return this.#points;
  }
}

export function pointOf(record: RememberedSync): SyncPoint {
  const { family, trigger, startedAt, finishedAt, changedPorts, operations, outcome, objects = [] } = record;
  return {
    at: finishedAt,
    ms: Math.max(0, finishedAt - startedAt),
    family,
    trigger,
    objects,
    changedPorts,
    operations,
    outcome: outcome.kind === "failed" ? "failed" : outcome.refused.length > 0 ? "refused" : "ok",
    message: outcome.kind === "failed" ? outcome.message : "",
  };
}
