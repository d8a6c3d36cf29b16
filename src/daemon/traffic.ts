// The part of the daemon that reads the traffic of Services, with its metrics.
import { readSysctl } from "../host/sysctl.ts";
import { momentOf, systemClock } from "../observe/clock.ts";
import type { Log } from "../observe/log/log.ts";
import type { Metrics } from "../observe/metrics/metrics.ts";
import { FlowAccounts } from "../observe/traffic/flow-accounts.ts";
import { TrafficKeeper } from "../observe/traffic/keeper.ts";
import { reportTraffic } from "../observe/traffic/metrics.ts";
import type { TrafficReport } from "../observe/traffic/report.ts";
import type { LoopObserver } from "../sync/loop.ts";
import { openCpuMeter } from "./cpu-meter.ts";
import type { DaemonOptions } from "./daemon.ts";
import type { Part } from "./part.ts";
import { accountingFile } from "./start/kernel-settings.ts";
import type { OpenNode } from "./start/start.ts";

export type Traffic = Part & {
  readonly observer: Partial<LoopObserver>;
  /** For the status socket. */
  readonly answer: () => Promise<TrafficReport>;
};

export function openTraffic(
  { traffic: setting = "off" }: Pick<DaemonOptions, "traffic">,
  { mode, drivers }: Pick<OpenNode, "mode" | "drivers">,
  metrics: Metrics,
  log: Log,
): Traffic {
  const noFlows =
    setting === "off" || readSysctl(accountingFile) === "1"
      ? null
      : `${accountingFile} is not 1: the kernel does not count packets and bytes of connections`;
  const flows = new FlowAccounts({
    behavior: mode.behavior,
    conntrack: mode.conntrack,
    endpoints: setting === "endpoints",
    place: {},
    now: () => momentOf(systemClock),
  });
  const keeper = new TrafficKeeper({
    setting,
    mode: mode.name,
    drivers,
    flows,
    noFlows,
    uncounted: mode.uncounted,
    clock: systemClock,
    cpuMs: openCpuMeter(),
    log,
  });
  reportTraffic(metrics, { setting, refresh: () => keeper.refresh(), report: () => keeper.report() });
  return {
    run: (signal) => keeper.run(signal),
    observer: keeper.observer,
    async answer() {
      await keeper.refreshAll();
      return keeper.report();
    },
  };
}
