// Turns what happens to Snapshots and Syncs into metrics and health: the few calls that `sync/` is wired to.
import type { Family } from "../model/address.ts";
import type { Problem, ProblemKind } from "../model/problem.ts";
import type { Snapshot } from "../model/snapshot.ts";
import type { Clock } from "./clock.ts";
import { familyLabels } from "./family.ts";
import { type LocalEndpoints, openLocalEndpoints } from "./local-endpoints.ts";
import type { ModeName } from "./metrics/define.ts";
import type { Metrics } from "./metrics/metrics.ts";
import type { ProxyHealth } from "./proxy-health.ts";

/** What observing needs to know of a Sync; a SyncRecord has it all. */
export type SyncFacts = {
  readonly family: Family;
  /** Milliseconds since 1970. */
  readonly startedAt: number;
  readonly finishedAt: number;
  readonly trigger: "change" | "resync" | "retry" | "first" | "drift";
  readonly servicePorts: number;
  readonly endpoints: number;
  readonly operations: number;
  readonly bytes: number;
  readonly outcome:
    | { readonly kind: "ok"; readonly refused?: readonly Problem[] }
    | { readonly kind: "failed"; readonly message: string; readonly refused?: readonly Problem[] };
};

export type SyncObserver = {
  /** The family's sync loop started. */
  readonly started: (family: Family) => void;
  /** A Sync was asked for. */
  readonly queued: (family: Family) => void;
  /** A Snapshot arrived, whether or not it will be synced by itself. */
  readonly arrived: (snapshot: Snapshot) => void;
  /** A Sync ended that was made of this Snapshot and everything before. */
  readonly synced: (facts: SyncFacts, snapshot: Snapshot) => void;
  /** Reading back found this many differences between the kernel and the Plan. */
  readonly readBack: (family: Family, differences: number, message: string) => void;
  /** What this node has of each Service, as of the last successful Sync. */
  readonly local: (family: Family) => LocalEndpoints;
};

export type SyncObserverSettings = {
  readonly mode: ModeName;
  readonly families: readonly Family[];
  readonly nodeName: string;
};

/** Should Syncs hang, samples of latency must not fill the memory. */
const mostTriggers = 10_000;

export function openSyncObserver(
  { mode, families, nodeName }: SyncObserverSettings,
  metrics: Metrics,
  health: ProxyHealth,
  clock: Clock,
): SyncObserver {
  const openedAt = clock.wall();
  let problems: readonly Problem[] = [];
  const perFamily = new Map(families.map((family) => [family, openFamily(nodeName)]));
  const of = (family: Family) => perFamily.get(family)!;

  return {
    started(family) {
      health.tell({ kind: "started", family });
      metrics.lastQueued.with(label(family)).set(clock.wall() / 1000);
    },
    queued(family) {
      health.tell({ kind: "queued", family });
      metrics.lastQueued.with(label(family)).set(clock.wall() / 1000);
    },
    arrived(snapshot) {
      const { arrivals } = snapshot;
      // As upstream: each family's tracker sees every Service event, but only the slices of its own addresses.
      metrics.serviceChanges.add(arrivals.serviceEvents * families.length);
      metrics.endpointChanges.add(arrivals.sliceEvents);
      metrics.serviceChangesPending.add(arrivals.serviceChanges);
      metrics.endpointChangesPending.add(arrivals.sliceChanges);
      for (const [family, one] of perFamily) {
        const room = mostTriggers - one.triggers.length;
        one.triggers.push(...arrivals.triggeredAt[family].filter((at) => at > openedAt).slice(0, room));
        for (const key of snapshot[family].changed) one.changed.add(key);
      }
      if (snapshot.problems !== problems) tellProblems(metrics, snapshot.problems);
      problems = snapshot.problems;
      health.setNode(snapshot.node);
    },
    synced(facts, snapshot) {
      const one = of(facts.family);
      tellSync(metrics, mode, facts);
      metrics.serviceChangesPending.set(0);
      metrics.endpointChangesPending.set(0);
      const triggers = one.triggers.splice(0);
      if (facts.outcome.kind === "failed") {
        health.tell({ kind: "failed", family: facts.family, message: facts.outcome.message });
        return;
      }
      for (const at of triggers) {
        metrics.programmingDuration.with(label(facts.family)).observe((facts.finishedAt - at) / 1000);
      }
      one.local.update(snapshot[facts.family].ports, one.changed);
      one.changed.clear();
      tellWithoutLocal(metrics, mode, facts.family, one.local);
      const refused = (facts.outcome.refused ?? []).map(({ object, message }) => `${object}: ${message}`);
      health.tell({ kind: "synced", family: facts.family, refused });
      metrics.lastSynced.with(label(facts.family)).set(facts.finishedAt / 1000);
    },
    readBack(family, differences, message) {
      metrics.readBacks.with(label(family)).add();
      metrics.readBackDifferences.with(label(family)).add(differences);
      if (differences > 0) health.tell({ kind: "differs", family, message });
    },
    local: (family) => of(family).local,
  };
}

function openFamily(nodeName: string) {
  return {
    local: openLocalEndpoints(nodeName),
    /** Ports that changed since the last successful Sync. */
    changed: new Set<string>(),
    /** When the changes that wait to be synced were triggered, in ms since 1970. */
    triggers: [] as number[],
  };
}

function label(family: Family): { ip_family: string } {
  return { ip_family: familyLabels[family] };
}

function tellSync(metrics: Metrics, mode: ModeName, facts: SyncFacts): void {
  const family = label(facts.family);
  const seconds = Math.max(0, facts.finishedAt - facts.startedAt) / 1000;
  const isFull = facts.trigger !== "change";
  const { outcome } = facts;
  metrics.syncDuration.with(family).observe(seconds);
  metrics[isFull ? "fullSyncDuration" : "partialSyncDuration"].with(family).observe(seconds);
  metrics.syncs.with({ ...family, trigger: facts.trigger, outcome: outcome.kind }).add();
  metrics.syncOperations.with(family).observe(facts.operations);
  metrics.syncBytes.with(family).observe(facts.bytes);
  metrics.servicePorts.with(family).set(facts.servicePorts);
  metrics.endpoints.with(family).set(facts.endpoints);
  metrics.refusedPorts.with(family).set(outcome.refused?.length ?? 0);
  if (facts.trigger === "drift" && outcome.kind === "ok") metrics.driftRepaired.with(family).add();
  if (outcome.kind === "ok") return;
  if (mode === "nftables") metrics.nftablesFailures.with(family).add();
  if (mode === "iptables") metrics.restoreFailures.with(family).add();
  if (mode === "iptables" && !isFull) metrics.partialRestoreFailures.with(family).add();
}

function tellWithoutLocal(metrics: Metrics, mode: ModeName, family: Family, local: LocalEndpoints): void {
  const { internal, external } = local.without(mode === "ipvs" ? "services" : "ports");
  metrics.noLocalEndpoints.with({ traffic_policy: "internal", ...label(family) }).set(internal);
  metrics.noLocalEndpoints.with({ traffic_policy: "external", ...label(family) }).set(external);
}

function tellProblems(metrics: Metrics, problems: readonly Problem[]): void {
  const counts = new Map<ProblemKind, number>();
  for (const { kind } of problems) counts.set(kind, (counts.get(kind) ?? 0) + 1);
  metrics.problems.reset();
  for (const [kind, count] of counts) metrics.problems.with({ kind }).set(count);
}
