// Updates metrics and health from the events of the sync loop.
import type { Family } from "../model/address.ts";
import type { LoopObserver } from "../sync/loop.ts";
import type { SyncRecord } from "../sync/record.ts";
import type { Clock } from "./clock.ts";
import { familyLabels } from "./family.ts";
import { type LocalEndpoints, openLocalEndpoints, type WithoutLocal } from "./local-endpoints.ts";
import type { Metrics } from "./metrics/metrics.ts";
import type { ProxyHealth } from "./proxy-health.ts";
import { type Latency, RecentLatency } from "./recent-latency.ts";

export type SyncObserver = Omit<LoopObserver, "conflicts" | "afterSync" | "paced"> & {
  /** What this node has of each Service, as of the last successful Sync. */
  readonly local: (family: Family) => LocalEndpoints;
  /** How long the latest changes of endpoints took to reach the kernel; null: there was none. */
  readonly latency: () => Latency | null;
};

export type SyncObserverSettings = {
  /** What is counted that has endpoints, but none on this node. */
  readonly countsLocal: Parameters<LocalEndpoints["without"]>[0];
  readonly families: readonly Family[];
  readonly nodeName: string;
};

export function openSyncObserver(
  { countsLocal, families, nodeName }: SyncObserverSettings,
  metrics: Metrics,
  health: ProxyHealth,
  clock: Clock,
): SyncObserver {
  const openedAt = clock.wall();
  const perFamily = new Map(families.map((family) => [family, openFamily(nodeName)]));
  const of = (family: Family) => perFamily.get(family)!;
  const latency = new RecentLatency();

  return {
    started(family) {
      health.report({ kind: "started", family });
      metrics.lastQueued.with(label(family)).set(clock.wall() / 1000);
    },
    queued(family) {
      health.report({ kind: "queued", family });
      metrics.lastQueued.with(label(family)).set(clock.wall() / 1000);
    },
    arrived(snapshot) {
      health.setNode(snapshot.node);
    },
    taken(family, { triggeredAt, [family]: { changed } }) {
      const one = of(family);
      for (const at of triggeredAt[family]) if (at > openedAt) one.triggers.push(at);
      for (const key of changed) one.changed.add(key);
    },
    synced(record, snapshot) {
      const { family, outcome, finishedAt } = record;
      const one = of(family);
      reportSync(metrics, record);
      const triggers = one.triggers.splice(0);
      if (outcome.kind === "failed") {
        health.report({ kind: "failed", family, message: outcome.message });
        return;
      }
      one.local.update(snapshot[family].ports, one.changed);
      one.changed.clear();
      reportWithoutLocal(metrics, family, one.local.without(countsLocal));
      const refused = outcome.refused.map(({ object, message }) => `${object}: ${message}`);
      health.report({ kind: "synced", family, refused });
      reportSuccess({ metrics, latency }, family, finishedAt, triggers);
      metrics.driftRepaired.with(label(family)).add(one.differences);
      one.differences = 0;
    },
    drifted(family, message) {
      health.report({ kind: "drifted", family, message });
    },
    readBack(family, differences, message) {
      if (differences !== null) health.report({ kind: "compared", family });
      metrics.readBacks.with(label(family)).add();
      metrics.readBackDifferences.with(label(family)).add(differences ?? 0);
      of(family).differences += differences ?? 0;
      if (differences !== 0) health.report({ kind: "differs", family, message });
    },
    local: (family) => of(family).local,
    latency: () => latency.read(),
  };
}

function openFamily(nodeName: string) {
  return {
    local: openLocalEndpoints(nodeName),
    /** Ports that changed since the last successful Sync. */
    changed: new Set<string>(),
    /** When the changes that wait to be synced were triggered, in ms since 1970. */
    triggers: [] as number[],
    /** Found by reading back, and not yet known to be repaired. */
    differences: 0,
  };
}

function label(family: Family): { ip_family: string } {
  return { ip_family: familyLabels[family] };
}

/** What has no meaning in a mode is not exposed there. */
function reportSync(metrics: Metrics, record: SyncRecord): void {
  const { outcome, trigger } = record;
  const family = label(record.family);
  const seconds = Math.max(0, record.finishedAt - record.startedAt) / 1000;
  const isFull = trigger !== "change";
  metrics.syncDuration.with(family).observe(seconds);
  metrics[isFull ? "fullSyncDuration" : "partialSyncDuration"].with(family).observe(seconds);
  metrics.syncs.with({ ...family, trigger, outcome: outcome.kind }).add();
  metrics.syncOperations.with(family).observe(record.operations);
  metrics.syncBytes.with(family).observe(record.bytes);
  metrics.servicePorts.with(family).set(record.servicePorts);
  metrics.endpoints.with(family).set(record.endpoints);
  for (const { table, held, written } of record.rules ?? []) {
    metrics.iptablesRules.with({ table, ...family }).set(held);
    metrics.iptablesRulesWritten.with({ table, ...family }).set(written);
  }
  const failures = (record.retries ?? 0) + (outcome.kind === "failed" ? 1 : 0);
  if (failures > 0) metrics.nftablesFailures.with(family).add(failures);
  const restores = (record.retries ?? 0) + (outcome.kind === "failed" && outcome.ofRules === true ? 1 : 0);
  if (restores > 0) metrics.restoreFailures.with(family).add(restores);
  if (restores > 0 && !isFull) metrics.partialRestoreFailures.with(family).add();
  if (outcome.kind === "ok") metrics.refusedPorts.with(family).set(outcome.refused.length);
}

/** `triggers`: when the changes it contains were triggered. */
function reportSuccess(
  { metrics, latency }: { readonly metrics: Metrics; readonly latency: RecentLatency },
  family: Family,
  finishedAt: number,
  triggers: readonly number[],
): void {
  for (const at of triggers) {
    metrics.programmingDuration.with(label(family)).observe((finishedAt - at) / 1000);
    latency.add(Math.max(0, finishedAt - at));
  }
  metrics.lastSynced.with(label(family)).set(finishedAt / 1000);
}

function reportWithoutLocal(metrics: Metrics, family: Family, { internal, external }: WithoutLocal): void {
  metrics.noLocalEndpoints.with({ traffic_policy: "internal", ...label(family) }).set(internal);
  metrics.noLocalEndpoints.with({ traffic_policy: "external", ...label(family) }).set(external);
}
