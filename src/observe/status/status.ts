// The status that a daemon reports on its socket, kept up to date by the sync loop.
import { readlinkSync } from "node:fs";
import type { TrafficSetting } from "../../config/resolve/settings.ts";
import type { View } from "../../explain/view.ts";
import type { HistoryEntry, HistoryHead, NoState } from "../../history/entry.ts";
import type { RemovedFrontends } from "../../history/removed.ts";
import type { Family } from "../../model/address.ts";
import type { Problem } from "../../model/problem.ts";
import { type Cause, type Causes, noCauses, type Snapshot } from "../../model/snapshot.ts";
import type { OpenRelays } from "../../modes/userspace/relays.ts";
import type { InterceptCounts } from "../../routing/intercepts.ts";
import type { SourceStatus } from "../../sources/source.ts";
import type { LoopObserver } from "../../sync/loop.ts";
import type { PaceReport } from "../../sync/pace.ts";
import type { SyncRecord } from "../../sync/record.ts";
import type { RecordedEvent } from "../events/recorder.ts";
import type { ReasonKind } from "../health.ts";
import type { LimitUse } from "../limits.ts";
import type { ProxyHealth } from "../proxy-health.ts";
import type { Latency } from "../recent-latency.ts";
import type { TrafficReport } from "../traffic/report.ts";

export const defaultStatusSocket = "/run/turnout/status.sock";

/** Where the socket serves a heap snapshot. */
export const heapPath = "/heap";

/** Identity of the daemon: does not change after start-up. */
export type StatusFacts = {
  readonly pid: number;
  readonly version: string;
  readonly node: string;
  readonly mode: string;
  /** Empty: start-up has not settled it yet. */
  readonly families: readonly Family[];
  /** As `--source` would name it. */
  readonly source: string;
  /** Whether the kernel keeps other programs from changing our table. */
  readonly ownership: "plain" | "owned";
  /** Milliseconds since 1970. */
  readonly startedAt: number;
  /** `net:[4026531833]`: commands that read the kernel enter it. Absent without /proc, and in answers of older daemons. */
  readonly networkNamespace?: string;
  /** `--traffic`; absent: off, and in answers of older daemons. */
  readonly traffic?: TrafficSetting;
};

/** That of this process, as the kernel names it. */
export function networkNamespace(): string | undefined {
  try {
    return readlinkSync("/proc/self/ns/net");
  } catch {
    return undefined;
  }
}

/** What start-up waits for, as text that follows "waits for"; times are milliseconds since 1970. */
export type Wait = {
  readonly for: string;
  readonly since: number;
  /** null: without limit. */
  readonly until: number | null;
};

export type Drift = {
  readonly at: number;
  readonly family: Family;
  readonly differences: number;
  readonly what: string;
};

/** What the health checks go by; times are milliseconds since 1970. */
export type HealthReport = {
  readonly healthy: boolean;
  readonly reasons: readonly {
    readonly kind: ReasonKind;
    readonly family: Family | null;
    readonly since: number;
    readonly message: string;
  }[];
  /** Milliseconds since the API server last sent anything about each resource; empty for files. */
  readonly watchAges: Readonly<Record<string, number>>;
};

export type Status = StatusFacts & {
  /** Absent while the daemon starts, and in answers of older daemons. */
  readonly health?: HealthReport;
  /** When the kernel was last compared with the Plan; absent in answers of older daemons. */
  readonly compared?: Readonly<Partial<Record<Family, number>>>;
  /** null: for nothing, the daemon has a Snapshot. */
  readonly waits: Wait | null;
  /** The configuration in force, as `--write-config-to` would write it. */
  readonly configuration: string;
  /** The latest, newest first. */
  readonly syncs: readonly RememberedSync[];
  /** When each family last was as wanted; null: not yet. */
  readonly lastSuccess: Readonly<Partial<Record<Family, number>>>;
  readonly problems: readonly Problem[];
  /** Changes by other programs that were repaired, newest first. */
  readonly drift: readonly Drift[];
  readonly watches: SourceStatus["resources"];
  /** Of each family after its last Sync; absent in answers of older daemons. */
  readonly pace?: Readonly<Partial<Record<Family, PaceReport>>>;
  /** Addresses of Services that are also this node's or the API server's; absent: there are none. */
  readonly intercepts?: InterceptCounts;
  /** From a change of endpoints in the cluster until the kernel follows it; null: none yet. Absent in answers of older daemons. */
  readonly latency?: Latency | null;
  /** Of the machine and the daemon; absent while it starts, and in answers of older daemons. */
  readonly limits?: readonly LimitUse[];
  /** Kubernetes Events of this daemon, newest first; absent while it starts, and in answers of older daemons. */
  readonly events?: readonly RecordedEvent[];
};

/** A Sync, and the objects whose change led to it: of many, the first. Absent: no object of the cluster. */
export type RememberedSync = SyncRecord & { readonly objects?: readonly string[] };

/** What the socket answers, by path. Relays are those of each family that has any. */
export type Answers = {
  readonly "/": Status;
  readonly "/relays": Readonly<Partial<Record<Family, OpenRelays>>>;
  /**
   * What is relevant to `?from=…&to=…`, as in `explain`; null: the query is not valid, or there is no Snapshot yet. With
   * `&at=`, in milliseconds since 1970, as it was then.
   */
  readonly "/view": View | NoState | null;
  /** Traffic of Services; null: the daemon is starting. */
  readonly "/traffic": TrafficReport | null;
};

/** What the socket streams, one JSON value per line, by path; null: there is no Snapshot yet. */
export type StreamedAnswers = {
  /** All that is known of the cluster: Views that together are the whole. With `?at=` as it was then. */
  readonly "/cluster": View | NoState | null;
  /** First the history as a whole, then its changes, newest first. The parameters: docs/history.md. */
  readonly "/history": HistoryHead | HistoryEntry | RemovedFrontends;
};

export type StatusKeeper = Pick<LoopObserver, "readBack" | "paced"> & {
  readonly taken: (family: Family, snapshot: Pick<Snapshot, "causes">) => void;
  readonly synced: (record: SyncRecord) => void;
  readonly status: () => Status;
  /** null: there was none yet. */
  readonly lastSync: () => RememberedSync | null;
};

const remembered = 20;

/** Called for each answer. */
export type StatusSources = {
  readonly source: () => SourceStatus;
  readonly configuration: () => string;
  /** What is wrong with the objects known now. */
  readonly problems: () => readonly Problem[];
  readonly waits: () => Wait | null;
  readonly intercepts?: () => InterceptCounts;
  readonly health?: () => HealthReport;
  /** What only a daemon that has started has. */
  readonly more?: () => Pick<Status, "latency" | "limits" | "events">;
  readonly now: () => number;
};

export function keepStatus(facts: StatusFacts, sources: StatusSources): StatusKeeper {
  const { source, configuration, problems, waits, intercepts, health, more, now } = sources;
  let syncs: readonly RememberedSync[] = [];
  let drift: readonly Drift[] = [];
  const refused = new Map<Family, readonly Problem[]>();
  /** Why the Snapshots differ that were taken since the last Sync. */
  const taken = new Map<Family, Causes>();
  const lastSuccess: Partial<Record<Family, number>> = {};
  const pace: Partial<Record<Family, PaceReport>> = {};
  const compared: Partial<Record<Family, number>> = {};
  return {
    taken(family, { causes }) {
      taken.set(family, causes);
    },
    synced(record) {
      // A Sync may also run without a new Snapshot: after other addresses of the node, for example.
      const causes = taken.get(record.family) ?? noCauses;
      taken.delete(record.family);
      syncs = [withObjects(record, causes), ...syncs].slice(0, remembered);
      if (record.outcome.kind !== "ok") return;
      refused.set(record.family, record.outcome.refused);
      lastSuccess[record.family] = record.finishedAt;
      if (record.readBack) compared[record.family] = record.finishedAt;
    },
    paced(family, report) {
      pace[family] = report;
    },
    readBack(family, differences, what) {
      if (differences === null) return;
      compared[family] = now();
      if (differences > 0) drift = [{ at: now(), family, differences, what }, ...drift].slice(0, remembered);
    },
    lastSync: () => syncs[0] ?? null,
    status: () => ({
      ...facts,
      waits: waits(),
      configuration: configuration(),
      syncs,
      lastSuccess,
      compared,
      ...(health === undefined ? {} : { health: health() }),
      problems: [...problems(), ...[...refused.values()].flat()],
      drift,
      watches: source().resources,
      pace,
      ...more?.(),
      ...found(intercepts?.()),
    }),
  };
}

const mostObjects = 3;

/** With `EndpointSlice shop/web-x7k2p modified`, `and 3 more`. */
function withObjects(record: SyncRecord, { objects, more }: Causes): RememberedSync {
  if (record.trigger !== "change") return record;
  const rest = objects.length - mostObjects + more;
  const texts = [...objects.slice(0, mostObjects).map(objectText), ...(rest > 0 ? [`and ${rest} more`] : [])];
  return texts.length === 0 ? record : { ...record, objects: texts };
}

function objectText({ kind, namespace, name, event }: Cause): string {
  return `${kind} ${namespace === "" ? "" : `${namespace}/`}${name} ${event}`;
}

/** As the health server answers, except that the reasons are always listed. */
export function healthReportOf(health: Pick<ProxyHealth, "verdict" | "watchAges">): HealthReport {
  const { healthy } = health.verdict();
  const { reasons } = health.verdict(undefined, "honest");
  return {
    healthy,
    reasons: reasons.map((reason) => ({ ...reason, since: reason.since.wall })),
    watchAges: Object.fromEntries(health.watchAges()),
  };
}

function found(counts: InterceptCounts | undefined): Pick<Status, "intercepts"> {
  return counts !== undefined && Object.values(counts).some((count) => count > 0)
    ? { intercepts: counts }
    : {};
}
