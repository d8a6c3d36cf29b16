// Removes stale conntrack entries after Syncs, and logs failures and recoveries.
import { FlowCleaner } from "../host/netlink/conntrack.ts";
import type { Family } from "../model/address.ts";
import { systemClock } from "../observe/clock.ts";
import type { Log } from "../observe/log/log.ts";
import type { Telemetry } from "../observe/telemetry.ts";
import { type FlowSweep, FlowSweeper, type FlowSweepOptions } from "../sync/flows.ts";
import type { LoopObserver } from "../sync/loop.ts";
import type { StartedNode } from "./start/start.ts";

export function removeStaleFlows(
  { mode }: Pick<StartedNode, "mode">,
  telemetry: Pick<Telemetry, "swept">,
  log: Log,
  signal: AbortSignal,
): Partial<LoopObserver> {
  if (mode.conntrack === "own") return {};
  const logSweep = openSweepLog(log);
  const swept = (sweep: FlowSweep) => {
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
  return new FlowSweeper({ clean, clock: systemClock, swept }, signal);
}

function openSweepLog(log: Log): (sweep: FlowSweep) => void {
  const failing = new Set<Family>();
  return ({ family, milliseconds, outcome }) => {
    if (outcome.kind === "failed") {
      failing.add(family);
      log.error(new Error(outcome.message), "Cannot remove stale conntrack entries; retrying", { family });
      return;
    }
    if (failing.delete(family)) log.info("Removed stale conntrack entries after failures", { family });
    log.v(2, "Searched for stale conntrack entries", { family, ms: Math.round(milliseconds), ...outcome });
  };
}
