// The status line of the page: is the node all right, does the kernel hold the Plan, what happened last.
import type { Status } from "../observe/status/status.ts";
import { sourceText } from "../sources/index.ts";
import type { Head } from "./json.ts";
import type { PageNode } from "./node.ts";
import { pointOf } from "./sync-history.ts";

export type Totals = Pick<Head, "services" | "endpoints">;

export function headOf(node: PageNode, totals: Totals, now: number): Head {
  const status = node.status();
  const common = {
    node: node.name,
    mode: node.mode.name,
    version: node.version,
    source: sourceText(node.spec),
    ...totals,
    problems: status?.problems.length ?? node.problems().length,
    kernel: node.kernel !== null,
  };
  if (status === null) return { ...common, ...withoutDaemon };
  const [drift] = status.drift;
  const [last] = status.syncs;
  return {
    ...common,
    state: stateOf(status),
    reasons: reasonsOf(status),
    startedAt: status.startedAt,
    comparedAt: comparedAt(status),
    drift: drift === undefined ? null : { at: drift.at, differences: drift.differences, what: drift.what },
    lastSync: last === undefined ? null : pointOf(last),
    latency: status.latency ?? null,
    watch: silentWatch(status, now),
  };
}

const withoutDaemon = {
  state: "no daemon",
  reasons: [],
  startedAt: null,
  comparedAt: null,
  drift: null,
  lastSync: null,
  latency: null,
  watch: null,
} as const;

function stateOf({ waits, health }: Status): Head["state"] {
  if (waits !== null) return "starting";
  return health === undefined || health.healthy ? "healthy" : "unhealthy";
}

function reasonsOf({ waits, health, syncs }: Status): string[] {
  if (waits !== null) return [`waits for ${waits.for}`];
  const reasons = (health?.reasons ?? []).map(
    ({ kind, family, message }) => `${kind}${family === null ? "" : `, ${family}`}: ${message}`,
  );
  const [last] = syncs;
  if (reasons.length > 0 || last?.outcome.kind !== "failed") return reasons;
  return [`last Sync failed: ${last.outcome.message}`];
}

/** null until every family was compared. */
function comparedAt({ families, compared = {} }: Status): number | null {
  const times = families.map((family) => compared[family] ?? null);
  return times.length === 0 || times.includes(null) ? null : Math.min(...(times as number[]));
}

/** In whole seconds: measured ages differ by milliseconds although nothing was received. */
function silentWatch({ health }: Status, now: number): Head["watch"] {
  const [oldest] = Object.entries(health?.watchAges ?? {}).sort(([, a], [, b]) => b - a);
  if (oldest === undefined) return null;
  const [resource, age] = oldest;
  return { resource, since: Math.round((now - age) / 1000) * 1000 };
}
