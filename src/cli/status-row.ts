// One line about a daemon, for the table of all nodes that `kubectl turnout status` prints.

import { printableLine } from "../model/printable.ts";
import type { Status } from "../observe/status/status.ts";
import { span } from "./span.ts";

const longestField = 160;

/** Tab-separated: node, mode, health, last Sync, drift, longest silence of a watch, version. Health starts with `ok` if nothing is wrong. */
export function rowOf(status: Status, now: number): string {
  const { node, mode, version } = status;
  const fields = [
    node,
    mode,
    healthOf(status, now),
    syncOf(status, now),
    driftOf(status, now),
    watchOf(status),
    version,
  ];
  return `${fields.map(field).join("\t")}\n`;
}

function field(text: string): string {
  const line = printableLine(text);
  return line.length > longestField ? `${line.slice(0, longestField)}…` : line;
}

function healthOf({ health, waits, syncs }: Status, now: number): string {
  if (waits !== null) return `starting: waits ${span(now - waits.since)} for ${waits.for}`;
  if (health === undefined) return "unknown: the daemon is of an older version";
  const reasons = health.reasons.map(({ kind, message }) => `${kind}: ${message}`).join("; ");
  if (!health.healthy) return `unhealthy: ${reasons || "see /healthz"}`;
  const [last] = syncs;
  if (reasons === "" && last?.outcome.kind === "failed")
    return `ok, last Sync failed: ${last.outcome.message}`;
  return reasons === "" ? "ok" : `ok, ${reasons}`;
}

/** Of the family that was not synced for the longest time. */
function syncOf({ families, lastSuccess }: Status, now: number): string {
  if (families.length === 0) return "not yet";
  const times = families.map((family) => lastSuccess[family]);
  const oldest = Math.min(...times.map((at) => at ?? Number.NEGATIVE_INFINITY));
  return Number.isFinite(oldest) ? `${span(now - oldest)} ago` : "not yet";
}

function driftOf({ drift }: Status, now: number): string {
  const [last] = drift;
  if (last === undefined) return "none";
  const total = drift.reduce((sum, { differences }) => sum + differences, 0);
  return `${total} repaired, last ${span(now - last.at)} ago`;
}

function watchOf({ health }: Status): string {
  const ages = Object.values(health?.watchAges ?? {});
  return ages.length === 0 ? "-" : span(Math.max(...ages));
}
