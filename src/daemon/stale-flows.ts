// Removes stale conntrack entries after Syncs, and logs failures and recoveries.
import { FlowCleaner } from "../host/netlink/conntrack.ts";
import type { Family } from "../model/address.ts";
import { systemClock } from "../observe/clock.ts";
import type { Log } from "../observe/log/log.ts";
import type { Telemetry } from "../observe/telemetry.ts";
import { deadTcp } from "../routing/stale-flows-of.ts";
import { type FlowSweep, FlowSweeper, type FlowSweepOptions } from "../sync/flows.ts";
import type { LoopObserver } from "../sync/loop.ts";
import type { DaemonOptions } from "./daemon.ts";
import type { StartedNode } from "./start/start.ts";

export function removeStaleFlows(
  { resetDeadTcp = false }: Pick<DaemonOptions, "resetDeadTcp">,
  { mode }: Pick<StartedNode, "mode">,
  telemetry: Pick<Telemetry, "swept">,
  log: Log,
  signal: AbortSignal,
): Partial<LoopObserver> {
  if (mode.conntrack === "own") return {};
  const reporting = (logSweep: (sweep: FlowSweep) => void) => (sweep: FlowSweep) => {
    telemetry.swept(sweep);
    logSweep(sweep);
  };
  const cleaners: Readonly<Record<Family, FlowCleaner>> = {
    ipv4: new FlowCleaner(),
    ipv6: new FlowCleaner(),
  };
  const clean: FlowSweepOptions["clean"] = (query, stop) => cleaners[query.family].clean(query, stop);
  const close = () => Promise.all(Object.values(cleaners).map((cleaner) => cleaner.close()));
  signal.addEventListener("abort", () => void close(), { once: true });
  const options = { clean, clock: systemClock };
  const sweepers = [
    new FlowSweeper({ ...options, swept: reporting(openSweepLog(log, logUdp)) }, signal),
    ...(resetDeadTcp
      ? [new FlowSweeper({ ...options, swept: reporting(openSweepLog(log, logTcp)), stale: deadTcp }, signal)]
      : []),
  ];
  return {
    afterSync(sync) {
      for (const sweeper of sweepers) sweeper.afterSync(sync);
    },
  };
}

/** What deletes entries is logged by default when it follows a start or ends connections. */
type LogDeletion = (log: Log, family: Family, deleted: number, isFirst: boolean) => void;

const logUdp: LogDeletion = (log, family, entries, isFirst) => {
  if (isFirst) log.info("Deleted UDP conntrack entries that led to removed endpoints", { family, entries });
};

const logTcp: LogDeletion = (log, family, connections) =>
  log.info("Deleted TCP conntrack entries of removed endpoints; their clients are reset", {
    family,
    connections,
  });

function openSweepLog(log: Log, logDeletion: LogDeletion): (sweep: FlowSweep) => void {
  const failing = new Set<Family>();
  const done = new Set<Family>();
  return ({ family, milliseconds, outcome }) => {
    if (outcome.kind === "failed") {
      failing.add(family);
      log.error(new Error(outcome.message), "Cannot remove stale conntrack entries; retrying", { family });
      return;
    }
    if (outcome.deleted > 0) logDeletion(log, family, outcome.deleted, !done.has(family));
    done.add(family);
    if (failing.delete(family)) log.info("Removed stale conntrack entries after failures", { family });
    log.v(2, "Searched for stale conntrack entries", { family, ms: Math.round(milliseconds), ...outcome });
  };
}
