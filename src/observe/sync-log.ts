// Logs Syncs: the first of each IP family, failures, recoveries and repairs; every other Sync only from -v=2 on.
import { formatDuration } from "../config/units/duration.ts";
import type { Family } from "../model/address.ts";
import type { Problem } from "../model/problem.ts";
import type { Snapshot } from "../model/snapshot.ts";
import type { SyncRecord } from "../sync/record.ts";
import { familyLabels } from "./family.ts";
import type { Log } from "./log/log.ts";

export type SyncLog = (record: SyncRecord, snapshot: Snapshot) => void;

type FamilyState = {
  hasSynced: boolean;
  /** Failed Syncs since the last one that succeeded. */
  failures: number;
  /** Objects the kernel refuses, with the reason. */
  refused: ReadonlyMap<string, string>;
};

export function openSyncLog(log: Log): SyncLog {
  const states = new Map<Family, FamilyState>();
  return (record, snapshot) => {
    const { family, outcome } = record;
    const state = states.get(family) ?? { hasSynced: false, failures: 0, refused: new Map() };
    states.set(family, state);
    if (outcome.kind === "failed") {
      state.failures++;
      logFailure(log, record, outcome.message);
      return;
    }
    logRefusals(log, state, outcome.refused);
    logSuccess(log, state, record, snapshot);
    state.hasSynced = true;
    state.failures = 0;
  };
}

function logFailure(log: Log, { family, trigger, ...record }: SyncRecord, message: string): void {
  log.error(new Error(message), "Sync failed; retrying", {
    family: familyLabels[family],
    trigger,
    duration: durationOf(record),
  });
}

function logSuccess(log: Log, state: FamilyState, record: SyncRecord, snapshot: Snapshot): void {
  const { family, trigger, servicePorts, endpoints, changedPorts, operations, bytes } = record;
  const fields = { family: familyLabels[family], duration: durationOf(record) };
  if (!state.hasSynced) {
    const services = countServices(snapshot, family);
    log.info("First Sync succeeded", { ...fields, services, servicePorts, endpoints, operations });
  } else if (state.failures > 0) {
    log.info("Sync succeeded after failures", { ...fields, failures: state.failures, operations });
  } else if (trigger === "drift" && operations > 0) {
    log.info("Repaired rules that another program changed", { ...fields, operations });
  }
  log.v(2, "Synced", { ...fields, trigger, servicePorts, endpoints, changedPorts, operations, bytes });
}

/** An object is logged when the kernel refuses it for a new reason, and again when it is accepted. */
function logRefusals(log: Log, state: FamilyState, problems: readonly Problem[]): void {
  const before = state.refused;
  state.refused = new Map(problems.map(({ object, message }) => [object, message]));
  for (const [object, message] of state.refused)
    if (before.get(object) !== message) log.error(new Error(message), "Refused by the kernel", { object });
  for (const object of before.keys())
    if (!state.refused.has(object)) log.info("No longer refused by the kernel", { object });
}

function countServices(snapshot: Snapshot, family: Family): number {
  return new Set([...snapshot[family].ports.values()].map(({ service }) => service)).size;
}

function durationOf({ startedAt, finishedAt }: Pick<SyncRecord, "startedAt" | "finishedAt">): string {
  return formatDuration(BigInt(Math.round(finishedAt - startedAt)) * 1_000_000n);
}
