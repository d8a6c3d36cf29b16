// Opens metrics, health, Events and their servers, and connects them.
import type { ModeName } from "../config/modes.ts";
import type { Address, Family } from "../model/address.ts";
import type { Problem, ProblemKind } from "../model/problem.ts";
import type { Snapshot } from "../model/snapshot.ts";
import type { InterceptCounts } from "../routing/intercepts.ts";
import type { Source } from "../sources/source.ts";
import type { RequestFacts } from "../sources/world.ts";
import type { FlowSweep } from "../sync/flows.ts";
import type { LoopObserver } from "../sync/loop.ts";
import type { SyncRecord } from "../sync/record.ts";
import type { Clock } from "./clock.ts";
import { type Events, openEvents } from "./events/recorder.ts";
import type { HealthSettings } from "./health.ts";
import { keepIntercepts } from "./intercepts.ts";
import { type LimitUse, readLimits } from "./limits.ts";
import type { Log } from "./log/log.ts";
import { reportEvents } from "./metrics/events.ts";
import { type KernelCounters, reportKernelCounters } from "./metrics/kernel-counters.ts";
import {
  type BuildFacts,
  type GateFact,
  type Metrics,
  type OpenMetrics,
  openMetrics,
} from "./metrics/metrics.ts";
import { type ProcessView, reportProcess } from "./metrics/process.ts";
import { observeRequest } from "./metrics/requests.ts";
import { observeSweep } from "./metrics/sweeps.ts";
import { openProblemLog } from "./problem-log.ts";
import { type KnownProblems, keepProblems } from "./problems.ts";
import { openHealth, type ProxyHealth } from "./proxy-health.ts";
import type { Latency } from "./recent-latency.ts";
import type { DebugServerWorld } from "./servers/debug-server.ts";
import { openServers } from "./servers/servers.ts";
import { openServiceHealth, type ServiceHealth } from "./servers/service-health.ts";
import { openSyncObserver, type SyncObserverSettings } from "./syncs.ts";
import { watchAges } from "./watches.ts";

export type TelemetrySettings = {
  readonly mode: ModeName;
  readonly countsLocal: SyncObserverSettings["countsLocal"];
  readonly nodeName: string;
  /** Of the operating system; names the reporter of Events. */
  readonly hostname: string;
  readonly families: readonly FamilyAddresses[];
  readonly syncPeriodMs: () => number;
  readonly answers: HealthSettings["answers"];
  /** `host:port`; empty: no health server. */
  readonly healthzAddress: string;
  readonly metricsAddress: string;
  readonly hardFail: boolean;
  readonly showHidden: boolean;
  readonly gates: readonly GateFact[];
  readonly build: BuildFacts;
  readonly pages: Pick<DebugServerWorld, "config" | "flags" | "setVerbosity">;
};

/** What health check node ports of a family need to know. */
export type FamilyAddresses = {
  readonly family: Family;
  /** Where they listen now. */
  readonly addresses: () => readonly Address[];
};

export type TelemetryWorld = {
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Log;
  readonly process: ProcessView;
  readonly counters: KernelCounters;
  /** `bindAddressHardFail`, after the Event about it was sent or a second has passed. */
  readonly onHardFail: (error: Error) => void;
};

/** An observer of the sync loop. */
export type Telemetry = Omit<LoopObserver, "afterSync" | "paced"> & {
  readonly metrics: Metrics;
  readonly health: ProxyHealth;
  readonly events: Events;
  /** Problems of the current objects. */
  readonly problems: () => readonly Problem[];
  /** How many addresses of Services are also this node's or the API server's, in all families. */
  readonly intercepts: () => InterceptCounts;
  /** How long the latest changes of endpoints took to reach the kernel; null: there was none. */
  readonly latency: () => Latency | null;
  /** Limits of the machine and the process, and their use. */
  readonly limits: () => readonly LimitUse[];
  /** Counts a request to the API server: the `onRequest` of a Source's World. */
  readonly requested: (facts: RequestFacts) => void;
  /** Counts a pass over the conntrack entries. */
  readonly swept: (sweep: FlowSweep) => void;
  /** Counts the events of the cluster from now on. */
  readonly countEvents: (source: Pick<Source, "events">) => void;
  /** Measures the age of watches. Not for a Source of files, which has none. */
  readonly follow: (source: Pick<Source, "status">) => void;
  /** Opens the health and metrics servers, and keeps trying where a port is taken. */
  readonly serve: () => void;
  readonly close: () => Promise<void>;
};

/** Bookmarks come every minute, and a watch is renewed after ten at the latest. */
const silentMs = 15 * 60_000;

export function openTelemetry(settings: TelemetrySettings, world: TelemetryWorld): Telemetry {
  const { clock, log } = world;
  const gates = new Set(settings.gates.filter(({ on }) => on).map(({ name }) => name));
  const opened = openAllMetrics(settings, gates, clock);
  const { metrics } = opened;
  const timeoutMs = () => 2 * settings.syncPeriodMs();
  const health = openHealth({ timeoutMs, answers: settings.answers, silentMs }, clock);
  const events = openEvents(settings.hostname, {
    clock,
    random: world.random,
    log: log.in("observe/events/recorder.ts"),
    onDropped: (why) => metrics.eventsDropped.with({ why }).add(),
  });
  const families = settings.families.map(({ family }) => family);
  const { countsLocal, nodeName } = settings;
  const syncs = openSyncObserver({ countsLocal, families, nodeName }, metrics, health, clock);
  const parts = { metrics, health, events };
  const checks = new Map(
    settings.families.map((each) => [each.family, serviceHealth(each, nodeName, log, parts)]),
  );
  const servers = openServers(settings, world, { ...parts, opened, gates });
  const problems = reportedProblems(metrics, log);
  const externalIPsAllowed = gates.has("AllowServiceExternalIPs");
  const intercepts = keepIntercepts({ families, externalIPsAllowed }, problems.intercepts);
  metrics.intercepts.from(intercepts.samples);
  reportProcess(metrics, world.process);
  reportKernelCounters(metrics, world.counters);
  reportHealth(metrics, health);

  return {
    ...syncs,
    ...parts,
    problems: problems.all,
    intercepts: intercepts.counts,
    limits: () => readLimits(world.process),
    conflicts: problems.conflicts,
    arrived(snapshot: Snapshot) {
      for (const { arrived } of [problems, intercepts, syncs]) arrived(snapshot);
    },
    requested: (facts) => observeRequest(metrics, facts),
    swept: (sweep) => observeSweep(metrics, sweep),
    countEvents: (source) => reportEvents(metrics, families, source.events),
    follow(source) {
      const since = clock.steady();
      intercepts.serverAt(source.status().server ?? null);
      health.setWatchAges(() => watchAges(source.status(), since, clock.steady()));
    },
    synced(record: SyncRecord, snapshot: Snapshot) {
      const { family, outcome } = record;
      syncs.synced(record, snapshot);
      if (outcome.kind === "ok") void checks.get(family)!.update(syncs.local(family).checked());
    },
    serve: servers.serve,
    async close() {
      events.close();
      await Promise.all([servers, ...checks.values()].map((each) => each.close()));
    },
  };
}

function openAllMetrics(settings: TelemetrySettings, gates: ReadonlySet<string>, clock: Clock): OpenMetrics {
  const { mode, showHidden, build } = settings;
  const kubernetes = `${build.major}.${build.minor}`;
  return openMetrics({ mode, gates, kubernetes, showHidden }, build, settings.gates, clock);
}

type Parts = Pick<Telemetry, "metrics" | "health" | "events">;

/** The health check node ports of one IP family. */
function serviceHealth(
  { family, addresses }: FamilyAddresses,
  nodeName: string,
  log: Log,
  { metrics, health, events }: Parts,
): ServiceHealth {
  return openServiceHealth({
    family,
    addresses,
    healthy: () => health.verdict().healthy,
    onFailure(service, port, error) {
      const [namespace = "", name = ""] = service.split("/");
      log
        .in("observe/servers/service-health.ts")
        .error(error, "Cannot open health check node port", { service, port });
      const note = `Cannot open health check node port ${port} on node ${nodeName}: ${error.message}`;
      events.record("FailedToStartServiceHealthcheck", { kind: "Service", namespace, name }, note);
    },
    onDisplaced: () => metrics.connectionsDropped.with({ server: "healthcheck-nodeport" }).add(),
  });
}

function reportHealth(metrics: Metrics, health: ProxyHealth): void {
  metrics.watchAge.from(() =>
    [...health.watchAges()].map(([resource, value]) => ({ labels: { resource }, value: value / 1000 })),
  );
  metrics.healthy.from(() =>
    (["honest", "upstream"] as const).map((answers) => ({
      labels: { answers },
      value: health.verdict(undefined, answers).healthy ? 1 : 0,
    })),
  );
}

/** Problems are logged and counted when they change. */
function reportedProblems(metrics: Metrics, log: Log): KnownProblems {
  const logProblems = openProblemLog(log.in("observe/problem-log.ts"));
  return keepProblems((all) => {
    logProblems(all);
    countProblems(metrics, all);
  });
}

function countProblems(metrics: Metrics, problems: readonly Problem[]): void {
  const counts = new Map<ProblemKind, number>();
  for (const { kind } of problems) counts.set(kind, (counts.get(kind) ?? 0) + 1);
  metrics.problems.reset();
  for (const [kind, count] of counts) metrics.problems.with({ kind }).set(count);
}
